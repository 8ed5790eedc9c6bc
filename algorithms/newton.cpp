#include "algorithms/newton.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "engine/assert.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/reduce.h"

namespace orrery::newton {
namespace {

// Products are dear where a dense preconditioner is not worth its while, but so are steps that end too soon.
constexpr Clock kMostProductsDense = 8, kMostProductsDiagonal = 24;
// Rows of the sample for each parameter; fewer where rows are long, but not below the least, which would mislead.
constexpr std::uint64_t kSampleRows = 40, kLeastSampleRows = 2;
// The matrix may cost so many additions for each entry of the data: as a preconditioner, and as the model itself.
constexpr std::uint64_t kPreconditionerCost = 4, kModelCost = 16;
// A model of fewer rows than this would be no model, whatever it costs.
constexpr std::uint64_t kLeastModelRows = 1 << 14;
// How much of the gradient a step may leave. Less costs more products a step than it saves steps.
constexpr double kForcing = 0.2;
// Share of the descent that the slope promises which a trial must bring (Armijo).
constexpr double kSufficient = 1e-4;
// Points of the line that one pass looks at, from the trial back to the kept point.
constexpr std::array<double, 16> kLineSteps = {0.75, 0.5,  0.35, 0.25, 0.18, 0.12, 0.08, 0.05,
                                               0.03, 0.02, 0.01, 5e-3, 2e-3, 5e-4, 1e-4, 1e-5};

constexpr const char* kWeightsSection = "weights";
constexpr const char* kProgressSection = "newton";
constexpr const char* kBestSection = "best";

/// Beside the weights: what a resumed training cannot find again by a pass over the data.
struct SavedProgress {
  double objective, first_gradient, gradient_norm, best_objective, best_gradient_norm;
  std::uint64_t is_settled, is_separable;
};

Bytes bytes_of(std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

void copy_back(const StateSection& section, std::span<float> values) {
  if (section.bytes.size() != values.size_bytes()) {
    throw Error(ErrorKind::data, "the checkpoint's section '" + section.name + "' is not of this model's size");
  }
  std::memcpy(values.data(), section.bytes.data(), section.bytes.size());
}

template <class T, class Add>
void add_to(std::vector<T>& to, const std::vector<T>& from, Add&& add) {
  for (std::size_t i = 0; i < to.size(); ++i) add(to[i], from[i]);
}

/// Sums one vector of every worker along the fixed tree, into the first worker's.
template <class Sums, class T, class Add>
const std::vector<T>& combine(std::vector<Sums>& sums, std::vector<T> Sums::*part, Add&& add) {
  std::vector<std::vector<T>*> vectors;
  for (Sums& of_worker : sums) vectors.push_back(&(of_worker.*part));
  return *tree_combine(std::span{vectors}, [&](std::vector<T>* a, const std::vector<T>* b) {
    add_to(*a, *b, add);
    return a;
  });
}

constexpr auto kPlus = [](double& a, double b) { a += b; };

}  // namespace

NewtonTrainee::NewtonTrainee(RowLoss& loss, Penalty penalty, std::vector<float> start, Report report,
                             std::string no_minimum)
    : loss_(loss),
      penalty_(penalty),
      report_(std::move(report)),
      no_minimum_(std::move(no_minimum)),
      per_row_(1.0 / static_cast<double>(loss.rows())),
      weights_(std::move(start)),
      trial_(weights_),
      direction_(weights_.size()),
      sums_(loss.workers()),
      slopes_(weights_.size()),
      gradient_(weights_.size()),
      place_(weights_.size()) {
  plan_sample();
}

void NewtonTrainee::plan_sample() {
  const std::uint64_t n = weights_.size(), length = std::max<std::uint64_t>(1, loss_.row_length());
  const auto affordable = [&](std::uint64_t cost) {
    return std::max<std::uint64_t>(1, 2 * cost * loss_.rows() / length);
  };
  if (penalty_.l1 > 0) {
    sample_every_ = std::max<std::uint64_t>(1, loss_.rows() / std::max(kLeastModelRows, affordable(kModelCost)));
    return;
  }
  const std::uint64_t wanted = std::min(kSampleRows * n, affordable(kPreconditionerCost));
  const bool is_dense =
      n > 0 && loss_.penalised() <= kMostDense && (wanted >= kLeastSampleRows * n || wanted >= loss_.rows());
  if (is_dense) sample_every_ = std::max<std::uint64_t>(1, loss_.rows() / wanted);
  most_products_ = is_dense ? kMostProductsDense : kMostProductsDiagonal;
}

void NewtonTrainee::run_unit(const WorkUnit& unit, UnitContext&) {
  Sums& sums = sums_[unit.worker];
  switch (pass_) {
    case Pass::first:
    case Pass::trial:
    case Pass::line_trial:
      sums.slopes.assign(weights_.size(), Slope{});
      sums.rows = loss_.differentiate(unit.worker, trial_, sums.slopes);
      break;
    case Pass::curvature:
      sums.curvature.assign(block_.size() * block_.size(), 0.0);
      loss_.add_curvature(unit.worker, place_, sample_every_, block_.size(), sums.curvature);
      break;
    case Pass::product:
      sums.product.assign(weights_.size(), 0.0);
      loss_.multiply(unit.worker, direction_, sums.product);
      break;
    case Pass::line:
      sums.losses.assign(kLineSteps.size(), 0.0);
      loss_.search(unit.worker, kLineSteps, sums.losses);
      break;
    case Pass::none:
      break;
  }
}

void NewtonTrainee::commit(Clock clock, std::span<const Bytes>) {
  switch (pass_) {
    case Pass::first:
      take_slopes();
      accept();
      start_step();
      break;
    case Pass::curvature:
      take_curvature();
      break;
    case Pass::product:
      take_product();
      break;
    case Pass::trial:
    case Pass::line_trial:
      take_slopes();
      judge_trial();
      break;
    case Pass::line:
      take_line();
      break;
    case Pass::none:
      break;
  }
  if ((clock + 1) % clocks_per_iteration() != 0) return;
  ORRERY_CHECK(pass_ == Pass::none);  // an iteration has passes for a whole step
  start_step();
}

/// Sums of the workers to slopes of the mean and the objective, at the trial.
void NewtonTrainee::take_slopes() {
  const auto add = [](Slope& a, const Slope& b) {
    a.gradient += b.gradient;
    a.curvature += b.curvature;
  };
  slopes_ = combine(sums_, &Sums::slopes, add);
  for (Slope& slope : slopes_) {
    slope.gradient *= per_row_;
    slope.curvature *= per_row_;
  }
  std::vector<RowSums> rows;
  for (const Sums& sums : sums_) rows.push_back(sums.rows);
  sums_[0].rows = tree_combine(std::span{rows}, [](const RowSums& a, const RowSums& b) {
    return RowSums{a.loss + b.loss, std::min(a.least_margin, b.least_margin)};
  });
  trial_objective_ = sums_[0].rows.loss * per_row_ + penalty_of(trial_);
}

double NewtonTrainee::penalty_of(std::span<const float> weights) const {
  double absolute = 0, squares = 0;
  for (const float w : weights.first(loss_.penalised())) {
    absolute += std::abs(double{w});
    squares += double{w} * double{w};
  }
  return penalty_.l1 * absolute + 0.5 * penalty_.l2 * squares;
}

double NewtonTrainee::smooth_gradient(std::size_t j) const {
  return slopes_[j].gradient + l2_of(j) * double{weights_[j]};
}

/// The subgradient of least size: 0 for every coefficient is the condition of a minimum.
double NewtonTrainee::pseudo_gradient(std::size_t j) const {
  const double smooth = smooth_gradient(j);
  if (penalty_.l1 == 0 || j >= loss_.penalised()) return smooth;
  if (weights_[j] != 0) return smooth + (weights_[j] > 0 ? penalty_.l1 : -penalty_.l1);
  if (smooth > penalty_.l1) return smooth - penalty_.l1;
  return smooth < -penalty_.l1 ? smooth + penalty_.l1 : 0.0;
}

/// The trial becomes the point of the training; its slopes are known.
void NewtonTrainee::accept() {
  weights_ = trial_;
  objective_ = trial_objective_;
  loss_.keep_trial();
  double squares = 0;
  for (std::size_t j = 0; j < weights_.size(); ++j) {
    gradient_[j] = pseudo_gradient(j);
    squares += gradient_[j] * gradient_[j];
  }
  gradient_norm_ = std::sqrt(squares);
  first_gradient_ = std::max(first_gradient_, gradient_norm_);
  if (penalty_.l1 == 0 && penalty_.l2 == 0 && sums_[0].rows.least_margin > 0) is_separable_ = is_settled_ = 1;
}

/// Between clocks, at a kept point whose slopes, second derivatives and margins are at hand.
void NewtonTrainee::start_step() {
  pass_ = Pass::none;
  if (is_settled_ != 0) return;
  if (std::all_of(gradient_.begin(), gradient_.end(), [](double g) { return g == 0; })) {
    is_settled_ = 1;
    return;
  }
  if (sample_every_ != 0) {
    choose_block();
    pass_ = Pass::curvature;
    return;
  }
  std::vector<double> diagonal(slopes_.size());
  for (std::size_t j = 0; j < diagonal.size(); ++j) diagonal[j] = slopes_[j].curvature + l2_of(j);
  preconditioner_.set_diagonal(diagonal);
  start_products();
}

/// Without l1: everything. With it: what can move, and of too many the parameters that promise most.
void NewtonTrainee::choose_block() {
  block_.clear();
  for (std::uint32_t j = 0; j < weights_.size(); ++j) {
    if (penalty_.l1 == 0 || j >= loss_.penalised() || weights_[j] != 0 || gradient_[j] != 0) block_.push_back(j);
  }
  if (penalty_.l1 > 0 && block_.size() > kMostDense) {
    const auto promise = [&](std::uint32_t j) {
      const double curvature = slopes_[j].curvature + l2_of(j);
      if (j >= loss_.penalised()) return std::numeric_limits<double>::infinity();
      return curvature > 0 ? gradient_[j] * gradient_[j] / curvature : 0.0;
    };
    const auto more = [&](std::uint32_t a, std::uint32_t b) {
      const double of_a = promise(a), of_b = promise(b);
      return of_a != of_b ? of_a > of_b : a < b;
    };
    std::nth_element(block_.begin(), block_.begin() + kMostDense, block_.end(), more);
    block_.resize(kMostDense);
    std::sort(block_.begin(), block_.end());
  }
  std::fill(place_.begin(), place_.end(), kNoPlace);
  for (std::uint32_t at = 0; at < block_.size(); ++at) place_[block_[at]] = at;
}

void NewtonTrainee::take_curvature() {
  std::vector<double> lower = combine(sums_, &Sums::curvature, kPlus);
  const double per_sample = 1.0 / static_cast<double>((loss_.rows() + sample_every_ - 1) / sample_every_);
  for (double& value : lower) value *= per_sample;
  for (std::size_t at = 0; at < block_.size(); ++at) {
    double& diagonal = lower[at * block_.size() + at];
    // A rare column that the sample has missed: its diagonal is known all the same.
    if (diagonal < 0.5 * slopes_[block_[at]].curvature) diagonal = slopes_[block_[at]].curvature;
    diagonal += l2_of(block_[at]);
  }
  if (penalty_.l1 > 0) {
    propose_block_step(lower);
    return;
  }
  preconditioner_.set_dense(lower);
  start_products();
}

void NewtonTrainee::start_products() {
  products_ = 0;
  if (!solver_.start(gradient_, preconditioner_)) {
    is_settled_ = 1;
    pass_ = Pass::none;
    return;
  }
  std::copy(solver_.direction().begin(), solver_.direction().end(), direction_.begin());
  pass_ = Pass::product;
}

void NewtonTrainee::take_product() {
  std::vector<double> product = combine(sums_, &Sums::product, kPlus);
  for (std::size_t j = 0; j < product.size(); ++j) {
    product[j] = product[j] * per_row_ + l2_of(j) * solver_.direction()[j];
  }
  const bool is_done = solver_.advance(product, kForcing, preconditioner_);
  if (is_done || ++products_ == most_products_) {
    std::vector<double> target(weights_.begin(), weights_.end());
    for (std::size_t j = 0; j < target.size(); ++j) target[j] += solver_.step()[j];
    propose(target);
    return;
  }
  std::copy(solver_.direction().begin(), solver_.direction().end(), direction_.begin());
}

void NewtonTrainee::propose_block_step(std::span<const double> lower) {
  const std::size_t n = block_.size();
  std::vector<double> matrix(lower.begin(), lower.end()), gradient(n), weights(n);
  std::vector<double> target(weights_.begin(), weights_.end());
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) matrix[j * n + i] = matrix[i * n + j];
    gradient[i] = smooth_gradient(block_[i]);
    weights[i] = double{weights_[block_[i]]};
  }
  const auto end = std::lower_bound(block_.begin(), block_.end(), static_cast<std::uint32_t>(loss_.penalised()));
  const auto penalised = static_cast<std::size_t>(end - block_.begin());
  const std::vector<double> of_block = coordinate_descent(matrix, gradient, weights, penalised, penalty_.l1);
  for (std::size_t i = 0; i < n; ++i) target[block_[i]] = of_block[i];
  propose(target);
}

/// The next trial. The promise is the change of a linear model: negative, or rounding is all that is left.
void NewtonTrainee::propose(std::span<const double> target) {
  promised_ = 0;
  for (std::size_t j = 0; j < weights_.size(); ++j) {
    const double from = weights_[j];
    trial_[j] = static_cast<float>(target[j]);
    const double to = trial_[j];
    promised_ += smooth_gradient(j) * (to - from);
    if (j < loss_.penalised()) promised_ += penalty_.l1 * (std::abs(to) - std::abs(from));
  }
  is_settled_ = promised_ < 0 ? 0 : 1;
  pass_ = is_settled_ != 0 ? Pass::none : Pass::trial;
}

void NewtonTrainee::judge_trial() {
  const double needed = pass_ == Pass::trial ? kSufficient * promised_ : 0.0;
  const bool descends = trial_objective_ <= objective_ + needed && trial_objective_ < objective_;
  if (descends) {
    accept();
    pass_ = Pass::none;
  } else if (pass_ == Pass::trial) {
    pass_ = Pass::line;
  } else {
    is_settled_ = 1;
    pass_ = Pass::none;
  }
}

/// The best point of the line becomes the trial, if there is one below the kept point.
void NewtonTrainee::take_line() {
  const std::vector<double> losses = combine(sums_, &Sums::losses, kPlus);
  const std::vector<float> far = trial_;
  double best = objective_;
  bool found = false;
  std::vector<float> point(far.size());
  for (std::size_t k = 0; k < kLineSteps.size(); ++k) {
    for (std::size_t j = 0; j < far.size(); ++j) {
      const double from = weights_[j];
      point[j] = static_cast<float>(from + kLineSteps[k] * (double{far[j]} - from));
    }
    const double objective = losses[k] * per_row_ + penalty_of(point);
    if (!(objective < best)) continue;
    best = objective;
    trial_ = point;
    found = true;
  }
  if (!found) is_settled_ = 1;
  pass_ = found ? Pass::line_trial : Pass::none;
}

Evaluation NewtonTrainee::evaluate(Engine& engine, bool exact) {
  Evaluation out;
  out.objective = objective_;
  out.extra.emplace_back("gradient", first_gradient_ > 0 ? gradient_norm_ / first_gradient_ : 0.0);
  report_(engine, weights_, exact, out);
  if (is_separable_ != 0) engine.warn(no_minimum_);
  return out;
}

void NewtonTrainee::keep_best() { best_ = {weights_, objective_, gradient_norm_}; }

void NewtonTrainee::restore_best() {
  weights_ = best_.weights;
  objective_ = best_.objective;
  gradient_norm_ = best_.gradient_norm;
}

std::vector<StateSection> NewtonTrainee::save_state() const {
  const SavedProgress progress{objective_,          first_gradient_, gradient_norm_, best_.objective,
                               best_.gradient_norm, is_settled_,     is_separable_};
  std::vector<StateSection> sections{{kWeightsSection, bytes_of(weights_)}, {kProgressSection, Bytes(sizeof progress)}};
  std::memcpy(sections[1].bytes.data(), &progress, sizeof progress);
  if (!best_.weights.empty()) sections.push_back({kBestSection, bytes_of(best_.weights)});
  return sections;
}

// Slopes and margins of the kept point are found again by the first pass, which an iteration has room for.
void NewtonTrainee::load_state(const std::vector<StateSection>& sections) {
  int found = 0;
  for (const StateSection& section : sections) {
    if (section.name == kWeightsSection) {
      copy_back(section, weights_);
      ++found;
    } else if (section.name == kProgressSection && section.bytes.size() == sizeof(SavedProgress)) {
      SavedProgress progress{};
      std::memcpy(&progress, section.bytes.data(), sizeof progress);
      objective_ = progress.objective;
      first_gradient_ = progress.first_gradient;
      gradient_norm_ = progress.gradient_norm;
      best_.objective = progress.best_objective;
      best_.gradient_norm = progress.best_gradient_norm;
      is_settled_ = progress.is_settled != 0;
      is_separable_ = progress.is_separable != 0;
      ++found;
    } else if (section.name == kBestSection) {
      best_.weights.resize(weights_.size());
      copy_back(section, best_.weights);
    }
  }
  if (found != 2) throw Error(ErrorKind::data, "the checkpoint lacks the sections 'weights' and 'newton'");
  trial_ = weights_;
  pass_ = Pass::first;
}

}  // namespace orrery::newton
