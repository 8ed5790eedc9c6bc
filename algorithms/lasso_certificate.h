// The proof of how far a trained Lasso is from its minimum, from data and coefficients alone: nothing that the training
// kept goes into it. Used at the end of a training and again by `orrery verify`.
#pragma once

#include <span>
#include <vector>

#include "algorithms/certificate.h"
#include "algorithms/lasso_design.h"
#include "algorithms/lasso_gap.h"

namespace orrery::lasso {

/// The response as it is fitted: y, less its mean when there is an intercept.
struct Response {
  Response(std::span<const double> labels, bool has_intercept);
  std::vector<double> values;
  double mean = 0;  ///< 0 without an intercept
  double square;    ///< |values|² / n: twice the objective of coefficients that are all 0
};

/// Objective, gap and norm of the least subgradient at `coefficients`, standardised, by column. The gap is NaN without
/// a penalty: there is no such bound. Cost: a pass over the data.
Certificate certify(const Design& design, const Response& response, std::span<const double> coefficients,
                    Penalty penalty, const ParallelFor& parallel);

}  // namespace orrery::lasso
