// A CPU mask of whatever length the kernel uses; the C library's cpu_set_t ends at 1024 CPUs. Inside numa/ only.
#pragma once

#include <climits>
#include <cstddef>
#include <vector>

namespace orrery::detail {

inline constexpr std::size_t kMaskBits = sizeof(unsigned long) * CHAR_BIT;
using CpuMask = std::vector<unsigned long>;

/// Mask of a thread (0: the calling one). Empty, with errno set, when the kernel refuses.
CpuMask thread_mask(int thread);
/// False, with errno set, when the kernel refuses.
bool set_thread_mask(int thread, const CpuMask& mask) noexcept;
CpuMask mask_of(const std::vector<unsigned>& cpus);
std::vector<unsigned> cpus_of(const CpuMask& mask);

}  // namespace orrery::detail
