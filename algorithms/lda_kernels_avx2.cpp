// Gibbs sampling kernels for AVX2 and FMA; see lda_kernels.inc.
#include <immintrin.h>

#include "algorithms/lda_kernels.h"

namespace orrery::lda {
namespace {

constexpr std::size_t kLanes = 8;

struct Wide {
  __m256 v;
  static Wide zero() { return {_mm256_setzero_ps()}; }
  static Wide splat(float x) { return {_mm256_set1_ps(x)}; }
  static Wide load(const float* p) { return {_mm256_load_ps(p)}; }
  static Wide load_counts(const std::int32_t* p) {
    return {_mm256_cvtepi32_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  static Wide gather(const float* base, const std::uint32_t* at) {
    return {_mm256_i32gather_ps(base, _mm256_load_si256(reinterpret_cast<const __m256i*>(at)), 4)};
  }
  void store(float* p) const { _mm256_store_ps(p, v); }
  static Wide fma(Wide a, Wide b, Wide c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
  friend Wide operator+(Wide a, Wide b) { return {_mm256_add_ps(a.v, b.v)}; }
  friend Wide operator*(Wide a, Wide b) { return {_mm256_mul_ps(a.v, b.v)}; }
  /// Lane l becomes the sum of the lanes up to it.
  Wide prefix() const {
    // Within each half by shifts, then the low half's sum to the high half.
    __m256 sum = _mm256_add_ps(v, _mm256_castsi256_ps(_mm256_slli_si256(_mm256_castps_si256(v), 4)));
    sum = _mm256_add_ps(sum, _mm256_castsi256_ps(_mm256_slli_si256(_mm256_castps_si256(sum), 8)));
    const __m128 low = _mm256_castps256_ps128(sum);
    const __m256 carry = _mm256_set_m128(_mm_shuffle_ps(low, low, 0xFF), _mm_setzero_ps());
    return {_mm256_add_ps(sum, carry)};
  }
  float last() const {
    const __m128 high = _mm256_extractf128_ps(v, 1);
    return _mm_cvtss_f32(_mm_shuffle_ps(high, high, 0xFF));
  }
  /// The lane becomes smaller by x.
  Wide less_at(std::size_t lane, float x) const {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256 here = _mm256_castsi256_ps(_mm256_cmpeq_epi32(lanes, _mm256_set1_epi32(static_cast<int>(lane))));
    return {_mm256_sub_ps(v, _mm256_and_ps(here, _mm256_set1_ps(x)))};
  }
  /// The first lane above x, kLanes if there is none. Lanes ascend.
  std::size_t first_above(float x) const {
    const int above = _mm256_movemask_ps(_mm256_cmp_ps(v, _mm256_set1_ps(x), _CMP_GT_OQ));
    return static_cast<std::size_t>(__builtin_ctz(static_cast<unsigned>(above) | 0x100U));
  }
};

/// The first i = first, first + step, … < count with running[i * kLanes + lane] - (i < from ? 0 : less) > x, else
/// count; these values ascend. Whole vectors are compared, though only one lane matters: they have just been stored,
/// and single floats of theirs would have to wait until the stores have left for the cache.
inline std::size_t first_above_by_steps(const float* running, std::size_t lane, const Steps& steps, float x,
                                        std::size_t from, float less) {
  const __m256 low = _mm256_set1_ps(x), high = _mm256_set1_ps(x + less);
  for (std::size_t begin = steps.first; begin < steps.count; begin += 32 * steps.step) {
    unsigned above = 0, bit = 0;
    for (std::size_t i = begin; bit < 32 && i < steps.count; i += steps.step, ++bit) {
      const __m256 sums = _mm256_load_ps(running + i * kLanes);
      const auto mask =
          static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(sums, i < from ? low : high, _CMP_GT_OQ)));
      above |= ((mask >> lane) & 1U) << bit;
    }
    if (above != 0) return begin + steps.step * static_cast<std::size_t>(__builtin_ctz(above));
  }
  return steps.count;
}

#include "algorithms/lda_list.inc"

#include "algorithms/lda_kernels.inc"

}  // namespace

const Kernels& avx2_kernels() {
  static constexpr Kernels kTable{sample_dense, sample_sparse};
  return kTable;
}

}  // namespace orrery::lda
