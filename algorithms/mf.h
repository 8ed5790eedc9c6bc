// Matrix factorisation with mean, biases and factors: ratings in, predictions out. This file says what can be set; the
// solvers are in mf_sgd.h (rotation), mf_data_parallel.h (the same on tables) and mf_als.h (alternating least squares),
// what comes back from the files in mf_model.h.
#pragma once

#include <memory>
#include <optional>

#include "algorithms/algorithm.h"

namespace orrery {

namespace mf {

enum class Solver { sgd, als };

struct MfParams {
  int rank = 16;
  std::optional<double> reg;        ///< empty: default_reg of the solver
  std::optional<double> reg_power;  ///< empty: default_reg_power of the solver
  double bias_damping = 3.0;
  Solver solver = Solver::sgd;
  double rate = 0.12;
  double rate_decay = 0.2;
  double gain = 0.01;
  std::optional<int> clocks;  ///< of an iteration, schedules data and hybrid of sgd; empty: default_clocks
  bool clip = false;
  bool keep_seen = true;
};

/// Descent stops early by itself, its steps fade out; exact minimisation needs more of a penalty to generalise as well.
constexpr double default_reg(Solver solver) { return solver == Solver::als ? 0.3 : 0.025; }
constexpr double default_reg_power(Solver solver) { return solver == Solver::als ? 0.75 : 1.0; }

/// Of the schedules data and hybrid: groups disagree less than workers do, and gains of whole blocks cost more.
constexpr int default_clocks(bool on_tables) { return on_tables ? 64 : 4; }

}  // namespace mf

/// The algorithm `mf` of the registry.
std::unique_ptr<Algorithm> make_mf();
/// A model that `mf` wrote. @throws Error (data) when files are missing or do not fit together.
std::unique_ptr<Model> open_mf(const ModelReader& reader);

}  // namespace orrery
