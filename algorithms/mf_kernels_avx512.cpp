// Matrix factorisation kernels for AVX-512 (F, DQ, BW, VL) and FMA; see mf_kernels.inc.
#include <immintrin.h>

#include "algorithms/mf_kernels.h"

namespace orrery::mf {
namespace {

constexpr std::size_t kLanes = 16;

struct Wide {
  __m512 v;
  static Wide zero() { return {_mm512_setzero_ps()}; }
  static Wide splat(float x) { return {_mm512_set1_ps(x)}; }
  static Wide load(const float* p) { return {_mm512_load_ps(p)}; }
  void store(float* p) const { _mm512_store_ps(p, v); }
  static Wide fma(Wide a, Wide b, Wide c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  friend Wide operator*(Wide a, Wide b) { return {_mm512_mul_ps(a.v, b.v)}; }
};

/// Half the lanes added to the other half. (The intrinsic casts make GCC 12 warn of an uninitialised value.)
inline __m256 fold(const Wide& x) {
  return _mm256_add_ps(__builtin_shufflevector(x.v, x.v, 0, 1, 2, 3, 4, 5, 6, 7),
                       __builtin_shufflevector(x.v, x.v, 8, 9, 10, 11, 12, 13, 14, 15));
}

#include "algorithms/mf_eight.inc"
#include "algorithms/mf_kernels.inc"
#include "algorithms/mf_solve.inc"

}  // namespace

const Kernels& avx512_kernels() {
  static constexpr Kernels kTable{train_cell, measure, solve_row, dot};
  return kTable;
}

}  // namespace orrery::mf
