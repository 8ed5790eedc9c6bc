// Matrix factorisation with mean, biases and factors: ratings in, predictions out. This file says what can be set; the
// solvers are in mf_sgd.h (rotation) and mf_als.h (alternating least squares), what comes back from the files in mf_model.h.
#pragma once

#include <memory>

#include "algorithms/algorithm.h"

namespace orrery {

namespace mf {

enum class Solver { sgd, als };

struct MfParams {
  int rank = 16;
  double reg = 0.025;
  double reg_power = 1.0;
  double bias_damping = 3.0;
  Solver solver = Solver::sgd;
  double rate = 0.12;
  double rate_decay = 0.2;
  double gain = 0.01;
  bool clip = false;
  bool keep_seen = true;
};

}  // namespace mf

/// The algorithm `mf` of the registry.
std::unique_ptr<Algorithm> make_mf();
/// A model that `mf` wrote. @throws Error (data) when files are missing or do not fit together.
std::unique_ptr<Model> open_mf(const ModelReader& reader);

}  // namespace orrery
