#include "algorithms/newton.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <type_traits>
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
// How much of the gradient a step may leave: half of what the step before left of its own, within these. Less costs
// more products a step than it saves steps.
constexpr double kLeastForcing = 0.05, kMostForcing = 0.2;
// Share of the descent that the slope promises which a trial must bring (Armijo).
constexpr double kSufficient = 1e-4;
// Points of the line that one pass looks at, from the trial back to the kept point.
constexpr std::array<double, 16> kLineSteps = {0.75, 0.5,  0.35, 0.25, 0.18, 0.12, 0.08, 0.05,
                                               0.03, 0.02, 0.01, 5e-3, 2e-3, 5e-4, 1e-4, 1e-5};

constexpr const char* kWeightsSection = "weights";
constexpr const char* kProgressSection = "newton";
constexpr const char* kBestSection = "best";
constexpr const char* kDiagonalSection = "diagonal";

/// Beside the weights: what a resumed training cannot find again by a pass over the data.
struct SavedProgress {
  double objective, first_gradient, gradient_norm, best_objective, best_gradient_norm, diagonal_size, gradient_before;
  std::uint64_t is_settled, is_separable;
};

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span{values});
  return {bytes.begin(), bytes.end()};
}

template <class T>
void copy_back(const StateSection& section, std::vector<T>& values) {
  if (section.bytes.size() != values.size() * sizeof(T)) {
    throw Error(ErrorKind::data, "the checkpoint's section '" + section.name + "' is not of this model's size");
  }
  std::memcpy(values.data(), section.bytes.data(), section.bytes.size());
}

}  // namespace

NewtonTrainee::NewtonTrainee(Engine& engine, RowLoss& loss, Penalty penalty, std::vector<float> start, Report report,
                             std::string no_minimum)
    : loss_(loss),
      penalty_(penalty),
      report_(std::move(report)),
      no_minimum_(std::move(no_minimum)),
      per_row_(1.0 / static_cast<double>(loss.rows())),
      weights_(std::move(start)),
      trial_(weights_),
      direction_(weights_.size()),
      here_(engine.transport().node()),
      sums_(loss.workers()),
      derivatives_(engine.topology(), std::vector<std::size_t>(loss.workers(), weights_.size() * sizeof(Slope))),
      slopes_(weights_.size()),
      gradient_(weights_.size()),
      place_(weights_.size()) {
  const NodeId nodes = engine.transport().nodes();
  for (NodeId node = 0; node < nodes; ++node) trees_.emplace_back(WorkerMap(loss.workers(), nodes, node, 1));
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

template <class T>
std::span<T> NewtonTrainee::derivatives(std::span<std::byte> memory) const {
  constexpr std::size_t kEach = std::is_same_v<T, float> ? 2 : 1;  // pairs
  return {reinterpret_cast<T*>(memory.data()), kEach * weights_.size()};
}

/// The memory of the unit's worker, all 0.
template <class T>
std::span<T> NewtonTrainee::cleared(const UnitContext& context) {
  const std::span<T> sums = derivatives<T>(derivatives_.acquire(context.worker, context.domain));
  std::fill(sums.begin(), sums.end(), T{});
  return sums;
}

/// The memory of the unit's worker: the point and sums of 0.
std::span<float> NewtonTrainee::pairs_with(const UnitContext& context, std::span<const float> point) {
  const std::span<float> pairs = derivatives<float>(derivatives_.acquire(context.worker, context.domain));
  const std::size_t scores = loss_.scores();
  for (std::size_t j = 0; j < point.size(); j += scores) {
    for (std::size_t k = 0; k < scores; ++k) {
      pairs[2 * j + k] = point[j + k];
      pairs[2 * j + scores + k] = 0;
    }
  }
  return pairs;
}

/// Where pairs have the sum of parameter j.
std::size_t NewtonTrainee::place_of_sum(std::size_t j) const { return 2 * j + loss_.scores() - j % loss_.scores(); }

void NewtonTrainee::run_unit(const WorkUnit& unit, UnitContext& context) {
  Sums& sums = sums_[unit.worker];
  switch (pass_) {
    case Pass::first:
    case Pass::trial:
    case Pass::line_trial:
      if (needs_curvature()) {
        sums.rows = loss_.differentiate(unit.worker, trial_, cleared<Slope>(context));
      } else {
        sums.rows = loss_.find_gradient(unit.worker, pairs_with(context, trial_));
      }
      break;
    case Pass::curvature:
      sums.curvature.assign(block_.size() * block_.size(), 0.0);
      loss_.add_curvature(unit.worker, place_, sample_every_, block_.size(), sums.curvature);
      break;
    case Pass::product:
      if (takes_pairs()) {
        loss_.multiply_pairs(unit.worker, pairs_with(context, direction_));
      } else {
        loss_.multiply(unit.worker, direction_, cleared<double>(context));
      }
      break;
    case Pass::line:
      sums.losses.assign(kLineSteps.size(), 0.0);
      loss_.search(unit.worker, kLineSteps, sums.losses);
      break;
    case Pass::none:
      break;
  }
}

NewtonTrainee::Share NewtonTrainee::share_of(WorkerId worker) {
  Sums& sums = sums_[worker];
  Share share;
  switch (pass_) {
    case Pass::first:
    case Pass::trial:
    case Pass::line_trial:
      share.rows = sums.rows;
      if (needs_curvature()) {
        const std::span<Slope> slopes = derivatives<Slope>(derivatives_.view(worker));
        static_assert(sizeof(Slope) == 2 * sizeof(double));
        share.doubles = {reinterpret_cast<double*>(slopes.data()), 2 * slopes.size()};
      } else {
        share.pairs = derivatives<float>(derivatives_.view(worker));
      }
      break;
    case Pass::product:
      if (takes_pairs()) {
        share.pairs = derivatives<float>(derivatives_.view(worker));
      } else {
        share.doubles = derivatives<double>(derivatives_.view(worker));
      }
      break;
    case Pass::curvature:
      share.doubles = sums.curvature;
      break;
    case Pass::line:
      share.doubles = sums.losses;
      break;
    case Pass::none:
      break;
  }
  return share;
}

void NewtonTrainee::add(Share& sum, const Share& other) {
  sum.rows = {sum.rows.loss + other.rows.loss, sum.rows.curvature + other.rows.curvature,
              std::min(sum.rows.least_margin, other.rows.least_margin)};
  for (std::size_t i = 0; i < sum.doubles.size(); ++i) sum.doubles[i] += other.doubles[i];
  for (std::size_t i = 0; i < sum.pairs.size(); ++i) sum.pairs[i] += other.pairs[i];
}

/// The sums of this node's largest subtrees, each in the memory of its first worker.
void NewtonTrainee::combine_here() {
  here_sums_.clear();
  const CombiningTree& tree = trees_[here_];
  for (const Subtree subtree : tree.largest()) {
    const WorkerId first = tree.first_worker(subtree);
    const auto end =
        std::min<std::uint64_t>(loss_.workers(), std::uint64_t{first} + (std::uint64_t{1} << subtree.level));
    std::vector<Share> shares;
    for (WorkerId worker = first; worker < end; ++worker) shares.push_back(share_of(worker));
    here_sums_[subtree] = tree_combine(std::span{shares}, [](Share a, const Share& b) {
      add(a, b);
      return a;
    });
  }
}

/// How long the arrays are the receiver knows as well.
void NewtonTrainee::pack(const Share& share, Bytes& out) const {
  put(out, share.rows);
  put_all(out, std::span<const double>(share.doubles));
  for (std::size_t j = 0; !share.pairs.empty() && j < weights_.size(); ++j) put(out, share.pairs[place_of_sum(j)]);
}

void NewtonTrainee::unpack(WireReader& in, FarShare& far) const {
  const Share& like = here_sums_.begin()->second;
  far.share.rows = in.take<RowSums>();
  far.doubles.resize(like.doubles.size());
  in.take_all(std::span(far.doubles));
  far.share.doubles = far.doubles;
  far.pairs.resize(like.pairs.size());
  for (std::size_t j = 0; !far.pairs.empty() && j < weights_.size(); ++j) far.pairs[place_of_sum(j)] = in.take<float>();
  far.share.pairs = far.pairs;
}

Bytes NewtonTrainee::pack_partial(Clock) {
  Bytes partial;
  if (pass_ == Pass::none) return partial;
  combine_here();
  if (trees_.size() == 1) return partial;
  for (const auto& [subtree, share] : here_sums_) pack(share, partial);
  return partial;
}

void NewtonTrainee::commit(Clock clock, std::span<const Bytes> partials) {
  if (pass_ != Pass::none) {
    std::map<Subtree, Share*> shares;
    for (auto& [subtree, share] : here_sums_) shares[subtree] = &share;
    std::deque<FarShare> far;
    for (NodeId node = 0; node < trees_.size(); ++node) {
      if (node == here_) continue;
      WireReader in(partials[node]);
      std::vector<Subtree> subtrees = trees_[node].largest();
      std::sort(subtrees.begin(), subtrees.end());
      for (const Subtree subtree : subtrees) {
        unpack(in, far.emplace_back());
        shares[subtree] = &far.back().share;
      }
    }
    take_sums(*trees_[here_].finish(std::move(shares), add));
  }
  if ((clock + 1) % clocks_per_iteration() != 0) return;
  ORRERY_CHECK(pass_ == Pass::none);  // an iteration has passes for a whole step
  start_step();
}

/// What the pass has come to says what the next one is.
void NewtonTrainee::take_sums(const Share& sums) {
  switch (pass_) {
    case Pass::first:
      take_rows(sums);
      accept();
      start_step();
      break;
    case Pass::curvature:
      take_curvature(sums.doubles);
      break;
    case Pass::product:
      take_product(sums);
      break;
    case Pass::trial:
    case Pass::line_trial:
      take_rows(sums);
      judge_trial();
      break;
    case Pass::line:
      take_line(sums.doubles);
      break;
    case Pass::none:
      break;
  }
}

/// Slopes of the mean and the objective, at the trial.
void NewtonTrainee::take_rows(const Share& sums) {
  if (needs_curvature()) {
    take_slopes(sums.doubles);
  } else {
    take_gradient(sums.pairs);
  }
  rows_ = sums.rows;
  trial_objective_ = rows_.loss * per_row_ + penalty_of(trial_);
}

/// Before the first pass; not kept for it.
double NewtonTrainee::objective_at_start() {
  std::vector<double> losses;
  for (WorkerId worker = 0; worker < loss_.workers(); ++worker) {
    std::vector<Slope> slopes(weights_.size());
    losses.push_back(loss_.differentiate(worker, weights_, slopes).loss);
  }
  return tree_sum(std::span{losses}) * per_row_ + penalty_of(weights_);
}

void NewtonTrainee::take_slopes(std::span<const double> slopes) {
  for (std::size_t j = 0; j < slopes_.size(); ++j) {
    slopes_[j] = {slopes[2 * j] * per_row_, slopes[2 * j + 1] * per_row_};
  }
}

void NewtonTrainee::take_gradient(std::span<const float> pairs) {
  for (std::size_t j = 0; j < slopes_.size(); ++j) {
    slopes_[j].gradient = double{pairs[place_of_sum(j)]} * per_row_;
  }
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
  if (penalty_.l1 == 0 && penalty_.l2 == 0 && rows_.least_margin > 0) is_separable_ = is_settled_ = 1;
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
  set_diagonal();
  start_products();
}

/// Which column is how steep changes little in a training, but how steep all of them are does.
void NewtonTrainee::set_diagonal() {
  if (diagonal_.empty()) {
    for (const Slope& slope : slopes_) diagonal_.push_back(slope.curvature);
    diagonal_size_ = rows_.curvature;
  }
  const double scale = diagonal_size_ > 0 ? rows_.curvature / diagonal_size_ : 1.0;
  std::vector<double> diagonal(diagonal_.size());
  for (std::size_t j = 0; j < diagonal.size(); ++j) diagonal[j] = scale * diagonal_[j] + l2_of(j);
  preconditioner_.set_diagonal(diagonal);
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

void NewtonTrainee::take_curvature(std::span<const double> sampled) {
  std::vector<double> lower(sampled.begin(), sampled.end());
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

double NewtonTrainee::forcing() const {
  if (gradient_before_ == 0) return kMostForcing;
  return std::clamp(0.5 * gradient_norm_ / gradient_before_, kLeastForcing, kMostForcing);
}

void NewtonTrainee::take_product(const Share& sums) {
  std::vector<double> product(weights_.size());
  if (takes_pairs()) {
    for (std::size_t j = 0; j < product.size(); ++j) product[j] = double{sums.pairs[place_of_sum(j)]};
  } else {
    std::copy(sums.doubles.begin(), sums.doubles.end(), product.begin());
  }
  for (std::size_t j = 0; j < product.size(); ++j) {
    product[j] = product[j] * per_row_ + l2_of(j) * solver_.direction()[j];
  }
  const bool is_done = solver_.advance(product, forcing(), preconditioner_);
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
    gradient_before_ = gradient_norm_;
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
void NewtonTrainee::take_line(std::span<const double> losses) {
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
  out.objective = pass_ == Pass::first ? objective_at_start() : objective_;
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
  const SavedProgress progress{objective_,     first_gradient_,  gradient_norm_, best_.objective, best_.gradient_norm,
                               diagonal_size_, gradient_before_, is_settled_,    is_separable_};
  std::vector<StateSection> sections{{kWeightsSection, bytes_of(weights_)}, {kProgressSection, Bytes(sizeof progress)}};
  std::memcpy(sections[1].bytes.data(), &progress, sizeof progress);
  if (!best_.weights.empty()) sections.push_back({kBestSection, bytes_of(best_.weights)});
  if (!diagonal_.empty()) sections.push_back({kDiagonalSection, bytes_of(diagonal_)});
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
      diagonal_size_ = progress.diagonal_size;
      gradient_before_ = progress.gradient_before;
      is_settled_ = progress.is_settled != 0;
      is_separable_ = progress.is_separable != 0;
      ++found;
    } else if (section.name == kBestSection) {
      best_.weights.resize(weights_.size());
      copy_back(section, best_.weights);
    } else if (section.name == kDiagonalSection) {
      diagonal_.resize(weights_.size());
      copy_back(section, diagonal_);
    }
  }
  if (found != 2) throw Error(ErrorKind::data, "the checkpoint lacks the sections 'weights' and 'newton'");
  trial_ = weights_;
  pass_ = Pass::first;
}

}  // namespace orrery::newton
