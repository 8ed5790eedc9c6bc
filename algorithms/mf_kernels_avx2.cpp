// Matrix factorisation kernels for AVX2 and FMA; see mf_kernels.inc.
#include <immintrin.h>

#include "algorithms/mf_kernels.h"

namespace orrery::mf {
namespace {

constexpr std::size_t kLanes = 8;

struct Wide {
  __m256 v;
  static Wide zero() { return {_mm256_setzero_ps()}; }
  static Wide splat(float x) { return {_mm256_set1_ps(x)}; }
  static Wide load(const float* p) { return {_mm256_load_ps(p)}; }
  void store(float* p) const { _mm256_store_ps(p, v); }
  static Wide fma(Wide a, Wide b, Wide c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
  friend Wide operator*(Wide a, Wide b) { return {_mm256_mul_ps(a.v, b.v)}; }
};

inline __m256 fold(const Wide& x) { return x.v; }

#include "algorithms/mf_eight.inc"
#include "algorithms/mf_kernels.inc"
#include "algorithms/mf_solve.inc"

}  // namespace

const Kernels& avx2_kernels() {
  static constexpr Kernels kTable{train_cell, measure, solve_row, dot};
  return kTable;
}

}  // namespace orrery::mf
