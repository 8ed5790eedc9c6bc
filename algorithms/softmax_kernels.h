// The inner loops of softmax regression, at three instruction levels behind one table of function pointers; what was
// said of bits in logistic_kernels.h holds here too. Weights lie by column and, in a column, by class, so that an entry
// of a row touches one run of memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "algorithms/newton_sums.h"
#include "algorithms/rows_view.h"
#include "engine/simd.h"

namespace orrery::softmax {

/// A point of the training, or a direction.
struct ConstPoint {
  const float* weights;
  const float* intercepts;  ///< by class; null: none
};

/// Memory for one row: twice the number of classes of each.
struct Scratch {
  double* doubles;
  float* floats;
};

/// One level's kernels. `classes`: how many there are; `labels`: the class of each row; scores and probabilities by row
/// and, in a row, by class. With s = x·w + b by class and p = exp(s) / Σ exp(s): the loss of a row of class y is
/// log Σ exp(s) − s_y, its derivative by s is p − e_y, its second one diag(p) − p pᵀ.
struct Kernels {
  /// Adds every row's first and second derivatives to slopes[column, class] and, if not null, to those of the
  /// intercepts; keeps its scores and probabilities. In blocks of 16 rows.
  newton::RowSums (*differentiate)(const RowsView& rows, const std::uint32_t* labels, std::size_t classes,
                                   ConstPoint at, newton::Slope* slopes, newton::Slope* intercept_slopes, float* scores,
                                   float* probabilities, Scratch scratch);
  /// The same with first derivatives only, for many columns: pairs[2 column, class] is the weight, the derivative is
  /// added to pairs[2 column + 1, class], which is in the cache by then; `intercepts`, if not null, the same pairs.
  newton::RowSums (*find_gradient)(const RowsView& rows, const std::uint32_t* labels, std::size_t classes, float* pairs,
                                   float* intercepts, float* scores, float* probabilities, Scratch scratch);
  /// product[column, class] += Σ x (diag(p) − p pᵀ) (x·d + d_b), and the same for the intercepts, if not null.
  void (*multiply)(const RowsView& rows, std::size_t classes, ConstPoint direction, const float* probabilities,
                   double* product, double* intercept_product, Scratch scratch);
  /// The same in pairs of direction and product.
  void (*multiply_pairs)(const RowsView& rows, std::size_t classes, float* pairs, float* intercepts,
                         const float* probabilities, Scratch scratch);
  /// x·w + b for every row and class.
  void (*predict)(const RowsView& rows, std::size_t classes, ConstPoint at, float* scores);
  /// Σ loss at s = from + step (to − from).
  double (*losses)(const float* from, const float* to, double step, const std::uint32_t* labels, std::size_t rows,
                   std::size_t classes, Scratch scratch);
};

/// The table of a level. Requires that this processor has the level (engine/simd.h).
const Kernels& kernels(SimdLevel level);

/// Used by kernels() only: each lives in a source file compiled for its level.
const Kernels& portable_kernels();
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();

}  // namespace orrery::softmax
