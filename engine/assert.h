// Broken invariants stop the program: these are our faults, never the caller's (those are Errors). Levels: off, light
// (cheap, on in releases), heavy (costly checks such as owner tags; on in dev and sanitizer builds).
#pragma once

#include <cstdio>
#include <cstdlib>

namespace orrery {

[[noreturn]] inline void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "orrery: broken invariant at %s:%d: %s\n", file, line, condition);
  std::abort();
}

#if defined(ORRERY_ASSERT_HEAVY)
inline constexpr int kAssertLevel = 2;
#elif defined(ORRERY_ASSERT_LIGHT)
inline constexpr int kAssertLevel = 1;
#else
inline constexpr int kAssertLevel = 0;
#endif

}  // namespace orrery

#define ORRERY_ASSERT_AT(level, condition)                                          \
  do {                                                                              \
    if constexpr (::orrery::kAssertLevel >= (level)) {                              \
      if (!(condition)) ::orrery::assertion_failed(#condition, __FILE__, __LINE__); \
    }                                                                               \
  } while (false)
#define ORRERY_CHECK(condition) ORRERY_ASSERT_AT(1, condition)
#define ORRERY_HEAVY_CHECK(condition) ORRERY_ASSERT_AT(2, condition)
