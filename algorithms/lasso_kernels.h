// The inner loops of the Lasso, at three instruction levels behind one table of function pointers. A kernel's result
// depends on its arguments and its level alone ("bits per level", design section 5): sums have a fixed order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/simd.h"

namespace orrery::lasso {

/// The entries of a column in a sparse matrix, or, without `rows`, all of its values.
struct ColumnView {
  const std::uint32_t* rows;
  const float* values;  ///< null: every entry is 1
  std::size_t count;
};

/// One level's kernels.
struct Kernels {
  /// Σ x_i r_i over the entries.
  double (*dot)(const ColumnView& x, const double* r);
  /// r_i += scale x_i over the entries.
  void (*add)(const ColumnView& x, double scale, double* r);
  /// out[4 i + j] += Σ_k a[i·stride_a + k] b[j·stride_b + k] for 4 rows of each, in single precision; every sum is a
  /// function of its two rows alone, whichever of them is `a`.
  void (*tile)(const float* a, std::size_t stride_a, const float* b, std::size_t stride_b, std::size_t count,
               float* out);
  /// q_i += scale x_i for i < count.
  void (*add_row)(const float* x, double scale, double* q, std::size_t count);
  /// out_k = (x_k − mean) scale for k < count.
  void (*standardise)(const float* x, double mean, double scale, float* out, std::size_t count);
  /// Σ r_k².
  double (*squares)(const double* r, std::size_t count);
};

/// The table of a level. Requires that this processor has the level (engine/simd.h).
const Kernels& kernels(SimdLevel level);

/// Used by kernels() only: each lives in a source file compiled for its level.
const Kernels& portable_kernels();
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();

}  // namespace orrery::lasso
