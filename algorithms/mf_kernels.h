// The inner loops of matrix factorisation, at three instruction levels behind one table of function pointers. Keeps the
// promise "bits per level" (design, section 5): what a kernel writes depends on its arguments and its level alone;
// there is no approximate reciprocal and no library function whose result differs between processors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/simd.h"

namespace orrery::mf {

/// Factor rows are padded to a multiple of this many floats; padding is zero and stays zero.
inline constexpr std::size_t kRowAlignment = 16;
/// Length in floats of a padded factor row.
constexpr std::size_t padded_rank(std::size_t rank) {
  return (rank + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
}

/// What a row or column carries beside its factors. 16 bytes, so that eight of them transpose in registers.
struct alignas(16) Side {
  float bias = 0.0F;
  float energy = 0.0F;      ///< sum of squared errors seen so far, times StepRule::gain: the AdaGrad accumulator
  float decay = 0.0F;       ///< L2 weight of one rating of this row: lambda · n^(p-1)
  float bias_decay = 0.0F;  ///< the same for the bias
};

/// A contiguous range of factor rows; both arrays aligned to 64 bytes. Owned by the caller.
struct FactorRows {
  float* factors;  ///< rows × padded rank
  Side* sides;     ///< rows
};
struct ConstFactorRows {
  const float* factors;
  const Side* sides;
};

/// A cell as the kernels read it; see Cell in mf_layout.h.
struct CellView {
  const std::uint32_t* batches;  ///< 8 counts: batches[n-1] batches of n ratings; stored by falling n
  const std::uint32_t* rows;
  const std::uint16_t* columns;
  const float* values;  ///< normalised: mean 0, standard deviation about 1; readable 8 beyond the end
};

/// The step of stochastic gradient descent, the same for all rows.
struct StepRule {
  float rate;  ///< step of a row that has seen no error yet
  float gain;  ///< how fast a step shrinks: step = rate / sqrt(1 + energy), energy += gain · e²
};

/// The ratings of one row (or column) for solve_row: rating k is of the other side's row `others[k]`.
struct RatedBy {
  const float* const* others;  ///< padded factor rows, 64-byte aligned
  const float* targets;        ///< rating minus the other side's bias
  std::size_t count;
};

/// Floats of scratch that solve_row needs, 64-byte aligned: a batch of ratings and the normal equations.
inline constexpr std::size_t kSolveBatch = 64;
constexpr std::size_t solve_scratch_floats(std::size_t stride) {
  return (kSolveBatch + stride + kRowAlignment) * (stride + kRowAlignment);
}

/// What is left to explain: sums over a range of ratings.
struct ErrorSums {
  double squares = 0.0;   ///< Σ e²
  double absolute = 0.0;  ///< Σ |e|
};

/// One level's kernels. All are re-entrant; none allocates or throws.
struct Kernels {
  /// Trains one cell. For each batch (row u, columns i of n ≤ 8 ratings, all read before any is written):
  ///   e_i = r_i − b_u − b_i − w_u·h_i,  s_u = rate/sqrt(1+energy_u),  s_i = rate/sqrt(1+energy_i)
  ///   w_u += s_u (Σ e_i h_i − n decay_u w_u)       b_u += s_u (Σ e_i − n bias_decay_u b_u)
  ///   h_i += s_i (e_i w_u − decay_i h_i)           b_i += s_i (e_i − bias_decay_i b_i)
  ///   energy_u += gain Σ e_i²                      energy_i += gain e_i²
  /// Batches follow each other in the order of the cell. `stride` = padded rank. About 2·rank·8 flops a rating.
  /// @return Σ e² over the cell, each e as it was before its step: what the progress line's training error is made of
  double (*train_cell)(const CellView& cell, FactorRows rows, FactorRows columns, std::size_t stride,
                       const StepRule& step);
  /// Σ e² and Σ |e| over `count` held-out ratings with ids into the whole model, in order, in double.
  ErrorSums (*measure)(const std::uint32_t* rows, const std::uint32_t* columns, const float* values, std::size_t count,
                       ConstFactorRows row_model, ConstFactorRows column_model, std::size_t stride);
  /// The exact minimiser of Σ_k (target_k − b − w·h_k)² + ridge |w|² + bias_ridge b² in (w, b). Normal equations in
  /// register tiles, then Cholesky; directions that the ratings do not determine become 0. About
  /// count · rank² + rank³ / 3 multiplications and additions.
  void (*solve_row)(const RatedBy& ratings, std::size_t rank, std::size_t stride, float ridge, float bias_ridge,
                    float* scratch, float* factors, float* bias);
  /// Inner product of two padded rows.
  float (*dot)(const float* a, const float* b, std::size_t stride);
};

/// The table of a level. Requires that this processor has the level (engine/simd.h).
const Kernels& kernels(SimdLevel level);

/// Used by kernels() only: each lives in a source file compiled for its level.
const Kernels& portable_kernels();
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();

}  // namespace orrery::mf
