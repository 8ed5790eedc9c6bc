// The inner loops of logistic regression, at three instruction levels behind one table of function pointers. A kernel's
// result depends on its arguments and its level alone ("bits per level", design section 5): sums have a fixed order,
// and exp and log1p are our own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "algorithms/newton_sums.h"
#include "algorithms/rows_view.h"
#include "engine/simd.h"

namespace orrery::logistic {

/// A point of the training, or a direction.
struct ConstPoint {
  const float* weights;  ///< null: all are 0
  float intercept;
};

/// Sums over rows that belong to the intercept, whatever the columns.
struct InterceptSums {
  newton::RowSums rows;
  newton::Slope slope;
};

/// One level's kernels. `signs`: −1 or 1 by row, the class. With m = w·x + b, z = sign·m and p = 1 / (1 + exp z):
/// loss = log(1 + exp(−z)), its derivative by m is −sign·p, its second one p (1 − p).
struct Kernels {
  /// Adds every row's derivatives to slopes[column] and keeps its z and second derivative. One pass: rows are taken in
  /// blocks of 16, which are still in the first-level cache when their derivatives are spread.
  InterceptSums (*differentiate)(const RowsView& rows, const float* signs, ConstPoint at, newton::Slope* slopes,
                                 float* margins, float* curvature);
  /// The same with first derivatives only, for many columns: pairs[2 column] is the weight, the derivative is added to
  /// pairs[2 column + 1], which is in the cache by then.
  InterceptSums (*find_gradient)(const RowsView& rows, const float* signs, float* pairs, float intercept,
                                 float* margins, float* curvature);
  /// product[column] += Σ curvature (d·x + d_b) x. @return the same sum for the intercept
  double (*multiply)(const RowsView& rows, ConstPoint direction, const float* curvature, double* product);
  /// The same in pairs of direction and product.
  double (*multiply_pairs)(const RowsView& rows, float* pairs, float intercept, const float* curvature);
  /// w·x + b for every row.
  void (*predict)(const RowsView& rows, ConstPoint at, float* margins);
  /// Σ loss at z = from + step (to − from).
  double (*losses)(const float* from, const float* to, double step, std::size_t rows);
};

/// The table of a level. Requires that this processor has the level (engine/simd.h).
const Kernels& kernels(SimdLevel level);

/// Used by kernels() only: each lives in a source file compiled for its level.
const Kernels& portable_kernels();
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();

}  // namespace orrery::logistic
