// Gibbs sampling kernels for AVX-512 (F, DQ, BW, VL) and FMA; see lda_kernels.inc.
#include <immintrin.h>

#include "algorithms/lda_kernels.h"

namespace orrery::lda {
namespace {

constexpr std::size_t kLanes = 16;

struct Wide {
  __m512 v;
  static Wide zero() { return {_mm512_setzero_ps()}; }
  static Wide splat(float x) { return {_mm512_set1_ps(x)}; }
  static Wide load(const float* p) { return {_mm512_load_ps(p)}; }
  static Wide load_counts(const std::int32_t* p) { return {_mm512_maskz_cvtepi32_ps(0xFFFF, _mm512_load_si512(p))}; }
  static Wide gather(const float* base, const std::uint32_t* at) {
    return {_mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xFFFF, _mm512_load_si512(at), base, 4)};
  }
  void store(float* p) const { _mm512_store_ps(p, v); }
  static Wide fma(Wide a, Wide b, Wide c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  friend Wide operator+(Wide a, Wide b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend Wide operator*(Wide a, Wide b) { return {_mm512_mul_ps(a.v, b.v)}; }
  /// Lane l becomes the sum of the lanes up to it.
  Wide prefix() const {
    __m512 sum = v;
    sum = _mm512_add_ps(sum, shifted<1>(sum));
    sum = _mm512_add_ps(sum, shifted<2>(sum));
    sum = _mm512_add_ps(sum, shifted<4>(sum));
    return {_mm512_add_ps(sum, shifted<8>(sum))};
  }
  float last() const { return v[15]; }
  /// The lane becomes smaller by x.
  Wide less_at(std::size_t lane, float x) const {
    return {_mm512_mask_sub_ps(v, static_cast<__mmask16>(1U << lane), v, _mm512_set1_ps(x))};
  }
  /// The first lane above x, kLanes if there is none. Lanes ascend.
  std::size_t first_above(float x) const {
    const unsigned above = _mm512_cmp_ps_mask(v, _mm512_set1_ps(x), _CMP_GT_OQ);
    return static_cast<std::size_t>(__builtin_ctz(above | 0x10000U));
  }

 private:
  /// Lanes moved up by N, zeros below.
  template <int N>
  static __m512 shifted(__m512 x) {
    const __m512i zero = _mm512_setzero_si512();
    return _mm512_castsi512_ps(_mm512_maskz_alignr_epi32(0xFFFF, _mm512_castps_si512(x), zero, 16 - N));
  }
};

/// The first i = first, first + step, … < count with running[i * kLanes + lane] - (i < from ? 0 : less) > x, else
/// count; these values ascend. Whole vectors are compared, though only one lane matters: they have just been stored,
/// and single floats of theirs would have to wait until the stores have left for the cache.
inline std::size_t first_above_by_steps(const float* running, std::size_t lane, const Steps& steps, float x,
                                        std::size_t from, float less) {
  const __m512 low = _mm512_set1_ps(x), high = _mm512_set1_ps(x + less);
  for (std::size_t begin = steps.first; begin < steps.count; begin += 32 * steps.step) {
    unsigned above = 0, bit = 0;
    for (std::size_t i = begin; bit < 32 && i < steps.count; i += steps.step, ++bit) {
      const __m512 sums = _mm512_load_ps(running + i * kLanes);
      const unsigned mask = _mm512_cmp_ps_mask(sums, i < from ? low : high, _CMP_GT_OQ);
      above |= ((mask >> lane) & 1U) << bit;
    }
    if (above != 0) return begin + steps.step * static_cast<std::size_t>(__builtin_ctz(above));
  }
  return steps.count;
}

#include "algorithms/lda_list.inc"

#include "algorithms/lda_kernels.inc"

}  // namespace

const Kernels& avx512_kernels() {
  static constexpr Kernels kTable{sample_dense, sample_sparse};
  return kTable;
}

}  // namespace orrery::lda
