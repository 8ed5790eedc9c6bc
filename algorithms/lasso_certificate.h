// The proof of how far a trained Lasso is from its minimum, from data and coefficients alone: nothing that the training
// kept goes into it. Used at the end of a training and again by `orrery verify`.
#pragma once

#include <span>
#include <vector>

#include "algorithms/certificate.h"
#include "algorithms/lasso_design.h"
#include "algorithms/lasso_gap.h"
#include "engine/collective.h"

namespace orrery::lasso {

/// The response as it is fitted: y, less its mean when there is an intercept.
struct Response {
  Response(std::span<const double> labels, bool has_intercept);
  /// Two classes, −1 and 1, that count as 0 and 1.
  Response(std::vector<float> classes, bool has_intercept);
  std::vector<float> signs;  ///< of classes; else empty
  std::vector<double> values;
  double mean = 0;  ///< 0 without an intercept
  bool has_intercept = true;
  double square;  ///< |values|² / n: twice the objective of coefficients that are all 0
};

/// Objective, gap and norm of the least subgradient at `coefficients`, standardised, by column, and an intercept beside
/// centred columns (the mean of the response, for squared errors). The gap is NaN without a penalty: there is no such
/// bound. Collective: of several nodes each goes over its own columns, and has the entries of those that are not 0.
/// Cost: a pass over the data, or two for classes.
Certificate certify(const Design& design, const Response& response, std::span<const double> coefficients,
                    double intercept, Penalty penalty, const ParallelFor& parallel, const Collective& nodes = {});
/// The objective of coefficients that are all 0.
double empty_objective(const Response& response);

}  // namespace orrery::lasso
