// Softmax (multinomial logistic) regression: rows with one of several classes in, a probability of each class out. What
// can be set and how it is trained is that of every linear classifier (linear_classifier.h); the passes over the data
// are in softmax_loss.h, what comes back from the files in softmax_model.h.
#pragma once

#include <memory>

#include "algorithms/algorithm.h"

namespace orrery {

/// The algorithm `softmax` of the registry.
std::unique_ptr<Algorithm> make_softmax();
/// A model that `softmax` wrote. @throws Error (data) when files are missing or do not fit together.
std::unique_ptr<Model> open_softmax(const ModelReader& reader);

}  // namespace orrery
