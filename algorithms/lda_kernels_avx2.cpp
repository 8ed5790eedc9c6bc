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
/// count; these values ascend, so as many are passed over as are not above x. Every lane counts for itself, with and
/// without `less`: that takes fewer instructions than one lane alone. Whole vectors are compared: they have just been
/// stored, and single floats of theirs would have to wait until the stores have left for the cache.
inline std::size_t first_above_by_steps(const float* running, std::size_t lane, const Steps& steps, float x,
                                        std::size_t from, float less) {
  const __m256 low = _mm256_set1_ps(x), high = _mm256_set1_ps(x + less);
  __m256i up_to_low = _mm256_setzero_si256(), up_to_high = up_to_low;
  for (std::size_t i = steps.first; i < steps.count; i += steps.step) {
    const __m256 sums = _mm256_load_ps(running + i * kLanes);
    up_to_low = _mm256_sub_epi32(up_to_low, _mm256_castps_si256(_mm256_cmp_ps(sums, low, _CMP_LE_OQ)));
    up_to_high = _mm256_sub_epi32(up_to_high, _mm256_castps_si256(_mm256_cmp_ps(sums, high, _CMP_LE_OQ)));
  }
  const __m256i at = _mm256_set1_epi32(static_cast<int>(lane));
  const auto of_lane = [&](__m256i counts) {
    const __m256i first = _mm256_permutevar8x32_epi32(counts, at);
    return static_cast<std::size_t>(static_cast<unsigned>(_mm_cvtsi128_si32(_mm256_castsi256_si128(first))));
  };
  const std::size_t before = from > steps.first ? (from - steps.first + steps.step - 1) / steps.step : 0;
  const std::size_t low_ones = of_lane(up_to_low), high_ones = of_lane(up_to_high);
  const std::size_t passed = (low_ones < before ? low_ones : before) + (high_ones > before ? high_ones - before : 0);
  const std::size_t found = steps.first + passed * steps.step;
  return found < steps.count ? found : steps.count;
}

#include "algorithms/lda_list.inc"

#include "algorithms/lda_kernels.inc"

}  // namespace

const Kernels& avx2_kernels() {
  static constexpr Kernels kTable{sample_dense, sample_sparse};
  return kTable;
}

}  // namespace orrery::lda
