// The penalties that a Lasso goes through, from the least at which every coefficient is 0 down to the one that is
// wanted: each starts where the last one ended (Friedman, Hastie and Tibshirani, J. Stat. Softw. 2010).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "algorithms/lasso_gap.h"

namespace orrery::lasso {

/// What was asked for.
struct PathRequest {
  std::optional<double> lambda;  ///< this one alone; empty: a path
  std::vector<double> lambdas;   ///< the path, if it is known already; else it follows from the data and what is below
  std::int64_t points = 100;
  double smallest = 1e-2;  ///< of the path, against the largest
  double l1_ratio = 1;

  Penalty penalty(double at) const { return {at * l1_ratio, at * (1 - l1_ratio)}; }
};

/// One penalty on the way.
struct Stage {
  double lambda = 0;
  bool is_point = true;  ///< wanted; else only a step towards one
};

/// The stages, largest lambda first. `largest`: the least lambda at which all coefficients are 0.
/// `is_long_way`: a single lambda is approached in steps (findings: Newton's steps on a support that is too large
/// fail).
std::vector<Stage> stages_of(const PathRequest& request, double largest, bool is_long_way);

/// A solution, as it was left.
struct PathPoint {
  double lambda = 0, objective = 0, gap = 0;  ///< gap: against the objective of the empty model
  double explained = 0;                       ///< share of the empty model's loss
  std::vector<std::uint32_t> columns;         ///< whose coefficients are not 0, ascending
  std::vector<double> coefficients;           ///< standardised
  double intercept = 0;                       ///< beside centred columns
};

}  // namespace orrery::lasso
