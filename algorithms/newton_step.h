// One Newton step, seen from the coefficients alone: the system H s = -g is solved by preconditioned conjugate
// gradients (Nocedal and Wright, Numerical Optimization, 2006, algorithms 5.3 and 7.1). Products with H are passes over
// the data and come from outside, one at a time; nothing here knows of rows or threads.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace orrery::newton {

/// A cheap stand-in for the inverse of H.
class Preconditioner {
 public:
  /// The inverse of the diagonal. Entries that are not positive (a column without a value and no penalty) count as 1.
  void set_diagonal(std::span<const double> diagonal);
  /// The inverse of a dense approximation of H, given by its lower triangle, row by row. Scaled to a unit diagonal
  /// first, so that columns of any size are treated alike, and lifted by a little where it is singular. Cost: n³ / 3.
  void set_dense(std::span<const double> lower);
  /// out = M⁻¹ in. Cost: n, or n² when dense.
  void apply(std::span<const double> in, std::span<double> out) const;

 private:
  std::vector<double> inverse_;  ///< diagonal; dense: its root, the scaling on both sides
  std::vector<double> factor_;   ///< dense: Cholesky factor of the scaled matrix, by columns; else empty
};

/// The iteration, driven from outside: start(), then multiply H by direction() and hand the product to advance() until
/// it says that it is done.
class ConjugateGradients {
 public:
  /// @return false when the gradient is 0: there is no step.
  bool start(std::span<const double> gradient, const Preconditioner& preconditioner);
  std::span<const double> direction() const { return direction_; }
  /// @return true when the residual, measured by the preconditioner, is `tolerance` of what it was, or when H has no
  /// curvature along the direction.
  bool advance(std::span<const double> product, double tolerance, const Preconditioner& preconditioner);
  std::span<const double> step() const { return step_; }

 private:
  std::vector<double> step_, residual_, scaled_, direction_;
  double size_ = 0, first_size_ = 0;
};

/// Where a penalised quadratic is least: weights + s of the s that minimises gradient·s + s H s / 2 + l1 Σ |weight + s|
/// over the first `penalised` ones and without the last term over the others, by cyclic coordinate descent (Friedman,
/// Hastie and Tibshirani, J. Stat. Softw. 2010) until a sweep brings little. `matrix`: H, symmetric, row by row; its
/// diagonal may hold zeros. Cost: n for each coordinate that moves.
std::vector<double> coordinate_descent(std::span<const double> matrix, std::span<const double> gradient,
                                       std::span<const double> weights, std::size_t penalised, double l1);

}  // namespace orrery::newton
