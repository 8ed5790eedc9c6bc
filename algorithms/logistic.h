// Binary logistic regression: rows with a class each in, probabilities out. This file says what can be set; the method
// is in newton.h or, on tables, in logistic_adaptive.h, the passes over the data in logistic_loss.h, what comes back
// from the files in logistic_model.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "algorithms/algorithm.h"
#include "algorithms/newton.h"

namespace orrery {

namespace logistic {

enum class Regulariser { l2, l1, elastic };
enum class Solver { newton, sgd };

struct LogisticParams {
  std::optional<double> lambda;  ///< empty: 1 / rows
  Regulariser penalty = Regulariser::l2;
  double l1_ratio = 0.5;
  bool intercept = true;
  Solver solver = Solver::newton;
  double rate = 0.1;
  std::int64_t batch = 64;
  std::string label;
};

/// Weights of |w| and w²/2 in the objective for data of so many rows.
newton::Penalty penalty_of(const LogisticParams& params, std::uint64_t rows);

}  // namespace logistic

/// The algorithm `logistic` of the registry.
std::unique_ptr<Algorithm> make_logistic();
/// A model that `logistic` wrote. @throws Error (data) when files are missing or do not fit together.
std::unique_ptr<Model> open_logistic(const ModelReader& reader);

}  // namespace orrery
