// Binary logistic regression: rows with a class each in, probabilities out. What can be set and how it is trained is
// that of every linear classifier (linear_classifier.h); the passes over the data are in logistic_loss.h, what comes
// back from the files in logistic_model.h.
#pragma once

#include <memory>

#include "algorithms/algorithm.h"

namespace orrery {

/// The algorithm `logistic` of the registry.
std::unique_ptr<Algorithm> make_logistic();
/// A model that `logistic` wrote. @throws Error (data) when files are missing or do not fit together.
std::unique_ptr<Model> open_logistic(const ModelReader& reader);

}  // namespace orrery
