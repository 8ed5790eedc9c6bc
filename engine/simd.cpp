#include "engine/simd.h"

#include <array>
#include <string>

#include "engine/error.h"

namespace orrery {

namespace {
constexpr std::array kLevels{SimdLevel::portable, SimdLevel::avx2, SimdLevel::avx512};
}

SimdLevel detect_simd() {
#if defined(__x86_64__)
  // These built-ins also check XGETBV, so a level that the operating system does not save is not reported.
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return SimdLevel::portable;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return wide ? SimdLevel::avx512 : SimdLevel::avx2;
#else
  return SimdLevel::portable;
#endif
}

std::string_view to_string(SimdLevel level) {
  switch (level) {
    case SimdLevel::portable:
      return "portable";
    case SimdLevel::avx2:
      return "avx2";
    case SimdLevel::avx512:
      return "avx512";
  }
  return "unknown";
}

std::optional<SimdLevel> parse_simd(std::string_view name) {
  for (const SimdLevel level : kLevels) {
    if (name == to_string(level)) return level;
  }
  return std::nullopt;
}

SimdLevel resolve_simd(std::string_view requested) {
  const SimdLevel best = detect_simd();
  if (requested == "auto") return best;
  const std::optional<SimdLevel> level = parse_simd(requested);
  if (!level) {
    throw usage_error("--simd: expected auto, portable, avx2 or avx512, got " + quoted(requested));
  }
  if (*level > best) {
    throw usage_error("--simd: this machine has no " + std::string{requested} + "; its highest level is " +
                      std::string{to_string(best)});
  }
  return *level;
}

}  // namespace orrery
