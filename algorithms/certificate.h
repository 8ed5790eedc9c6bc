// A proof of how far a trained linear model is from its minimum, as it is written with the model and found again from
// the files. How it is computed stands with each model (logistic_certificate.h, softmax_certificate.h).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/newton.h"

namespace orrery {

struct Certificate {
  double objective = 0;
  double gradient = 0;  ///< norm of the least subgradient; 0 at a minimum
  double gap = 0;       ///< objective − D: at least the distance from the minimum. NaN without a penalty: no bound
  /// The gap against the objective.
  double relative_gap() const { return gap == 0 ? 0.0 : gap / objective; }
};

/// The square of the least subgradient of objective + penalty by a coefficient, from the slope of the mean loss.
double squared_subgradient(double weight, double slope, newton::Penalty penalty);
/// What a penalised coefficient adds to the objective.
double penalty_at(double weight, newton::Penalty penalty);

/// What `verify` says of a certificate computed anew against the one that the training ended with.
std::vector<Check> compare(const Certificate& reached, const Certificate& now);
/// Of numbers that rounding may tell apart; two NaN agree.
bool agree(double a, double b, double relative, double absolute);
std::string expected_and_found(double expected, double got);

}  // namespace orrery
