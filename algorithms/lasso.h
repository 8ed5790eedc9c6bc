// Lasso and elastic net: linear or logistic regression in which coefficients are 0 unless they earn their place. This
// file says what can be set; how it is solved stands in lasso_trainee.h, what comes back from the files in
// lasso_model.h.
#pragma once

#include <memory>

#include "algorithms/algorithm.h"

namespace orrery {

/// The algorithm `lasso` of the registry.
std::unique_ptr<Algorithm> make_lasso();
/// A model that `lasso` wrote. @throws Error (data) when files are missing or do not fit together.
std::unique_ptr<Model> open_lasso(const ModelReader& reader);

}  // namespace orrery
