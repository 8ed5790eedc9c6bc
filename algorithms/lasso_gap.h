// How far coefficients can be from the minimum: the duality gap of the Lasso and the elastic net.
//
//   P(β) = |r|²/2n + l1 |β|₁ + l2 |β|²/2,  r = ỹ − X̃β,  g_j = x̃_j·r/n
//
// Any multiple t of the residual gives two lower bounds of P: with the l2 part as further rows of X̃, where t must keep
// every |t (g_j − l2 β_j)| ≤ l1 (Fercoq, Gramfort and Salmon, ICML 2015); and with it in the conjugate of the penalty,
// which needs l2 > 0 and no scaling. The better one counts. All that they need is these sums, for ỹ·r/n = |r|²/n + Σ
// β_j g_j.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "algorithms/newton.h"

namespace orrery::lasso {

using newton::Penalty;

struct GapSums {
  double square = 0;    ///< |r|² / n
  double product = 0;   ///< Σ β g
  double absolute = 0;  ///< Σ |β|
  double norm = 0;      ///< Σ β²
  double largest = 0;   ///< max |g − l2 β|
  double beyond = 0;    ///< Σ max(|g| − l1, 0)²

  /// A column's share of all but the square.
  void add(double coefficient, double gradient, Penalty penalty) {
    add_coefficient(coefficient, gradient);
    add_inactive(gradient - penalty.l2 * coefficient, gradient, penalty);
  }
  void add_coefficient(double coefficient, double gradient) {
    product += coefficient * gradient;
    absolute += std::abs(coefficient);
    norm += coefficient * coefficient;
  }
  /// The same of a column whose coefficient is 0, but for products.
  void add_inactive(double slope, double gradient, Penalty penalty) {
    largest = std::max(largest, std::abs(slope));
    const double over = std::max(std::abs(gradient) - penalty.l1, 0.0);
    beyond += over * over;
  }
};

/// The penalty's share of P.
inline double penalised(const GapSums& sums, Penalty penalty) {
  return penalty.l1 * sums.absolute + 0.5 * penalty.l2 * sums.norm;
}

inline double primal_value(const GapSums& sums, Penalty penalty) {
  return 0.5 * sums.square + penalised(sums, penalty);
}

/// The multiple of the residual that is the best feasible dual point.
inline double dual_scale(const GapSums& sums, Penalty penalty) {
  const double square = sums.square + penalty.l2 * sums.norm;
  if (!(square > 0)) return 0;
  const double best = (sums.square + sums.product) / square;
  const double most = sums.largest > 0 ? penalty.l1 / sums.largest : std::numeric_limits<double>::infinity();
  return std::clamp(best, -most, most);
}

inline double dual_value(const GapSums& sums, Penalty penalty) {
  const double t = dual_scale(sums, penalty), target = sums.square + sums.product;
  double value = t * target - 0.5 * t * t * (sums.square + penalty.l2 * sums.norm);
  if (penalty.l2 > 0) value = std::max(value, target - 0.5 * sums.square - 0.5 * sums.beyond / penalty.l2);
  return value;
}

/// Where a coordinate is best while all others stay: of curvature a/2 β² − (slope + a β_now) β + penalty.
inline double best_coefficient(double now, double gradient, double curvature, Penalty penalty) {
  const double free = gradient + curvature * now;
  const double over = std::abs(free) - penalty.l1;
  return over > 0 ? std::copysign(over, free) / (curvature + penalty.l2) : 0.0;
}

}  // namespace orrery::lasso
