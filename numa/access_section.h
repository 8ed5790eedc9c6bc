// Marks the stretches of code whose memory accesses tests/guest/numa-count.c counts as local or remote. A mark is one
// long no-op with a number that no compiler emits: 8 bytes, no register changed, nothing done; on other processors
// nothing at all.
#pragma once

namespace orrery {

/// Accesses of the calling thread count from here on. Thread and processor are one for the counter: bind the thread
/// first.
inline void access_section_begin() noexcept {
#if defined(__x86_64__)
  asm volatile("nopl 0x0a551001(%%rax,%%rax,1)" ::: "memory");
#endif
}
/// They no longer count. Sections do not nest; counts of all sections add up and are printed when the guest ends.
inline void access_section_end() noexcept {
#if defined(__x86_64__)
  asm volatile("nopl 0x0a551002(%%rax,%%rax,1)" ::: "memory");
#endif
}
/// All counts become 0.
inline void access_counts_reset() noexcept {
#if defined(__x86_64__)
  asm volatile("nopl 0x0a551003(%%rax,%%rax,1)" ::: "memory");
#endif
}
/// The counts so far are printed.
inline void access_counts_print() noexcept {
#if defined(__x86_64__)
  asm volatile("nopl 0x0a551004(%%rax,%%rax,1)" ::: "memory");
#endif
}

/// A section as a scope.
class AccessSection {
 public:
  AccessSection() noexcept { access_section_begin(); }
  ~AccessSection() { access_section_end(); }
  AccessSection(const AccessSection&) = delete;
  AccessSection& operator=(const AccessSection&) = delete;
};

}  // namespace orrery
