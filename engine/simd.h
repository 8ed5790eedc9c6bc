// The level of the kernels. Bits are promised per level (design, section 5): the level stands in run.json and in every
// checkpoint, and ranks agree on the lowest.
#pragma once

#include <optional>
#include <string_view>

namespace orrery {

/// In order: a level can do all that a lower one can. avx2 means AVX2 and FMA; avx512 means F, DQ, BW and VL on top.
enum class SimdLevel { portable = 0, avx2 = 1, avx512 = 2 };

/// The highest level that this processor and its operating system support. Cheap; asks the processor every time.
SimdLevel detect_simd();
/// "portable", "avx2" or "avx512".
std::string_view to_string(SimdLevel level);
/// The level of that name, or nothing.
std::optional<SimdLevel> parse_simd(std::string_view name);
/// What `--simd NAME` asks for: "auto" is detect_simd(). Throws a usage error for an unknown name, and for a level that
/// this machine lacks.
SimdLevel resolve_simd(std::string_view requested);

/// Of the three kinds of kernels that an algorithm has been compiled to, those of `level`. Each is a function without
/// arguments; only the one that is chosen is called.
template <class Kernels>
const Kernels& kernels_of(SimdLevel level, const Kernels& (*portable)(), const Kernels& (*avx2)(),
                          const Kernels& (*avx512)()) {
  switch (level) {
    case SimdLevel::avx512:
      return avx512();
    case SimdLevel::avx2:
      return avx2();
    case SimdLevel::portable:
      break;
  }
  return portable();
}

}  // namespace orrery
