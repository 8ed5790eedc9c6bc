#include "algorithms/lasso_trainee.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <sstream>
#include <type_traits>

#include "algorithms/lasso_state.h"
#include "engine/engine.h"
#include "engine/wire.h"

namespace orrery::lasso {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLooseGap = 1e-2;  // of a penalty that is only on the way, against the empty model's objective

/// Products that are made in the pull instead of in a round of their own: less work than a round costs.
constexpr std::uint64_t kFewProducts = 200000;

constexpr const char* kBestCoefficients = "best-coefficients";

Bytes packed(std::span<const PathPoint> points) {
  Bytes bytes;
  for (const PathPoint& point : points) {
    put(bytes, std::array{point.lambda, point.objective, point.gap, point.explained, point.intercept});
    put(bytes, std::uint64_t{point.columns.size()});
    put_all<std::uint32_t>(bytes, point.columns);
    put_all<double>(bytes, point.coefficients);
  }
  return bytes;
}

std::vector<PathPoint> points_in(const Bytes& bytes) {
  std::vector<PathPoint> points;
  WireReader reader(bytes);
  while (!reader.empty()) {
    const auto numbers = reader.take<std::array<double, 5>>();
    PathPoint point{numbers[0], numbers[1], numbers[2], numbers[3], {}, {}, numbers[4]};
    point.columns.resize(reader.take<std::uint64_t>());
    point.coefficients.resize(point.columns.size());
    reader.take_all<std::uint32_t>(point.columns);
    reader.take_all<double>(point.coefficients);
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace

LassoTrainee::LassoTrainee(Design& design, const Response& response, PathRequest request, WorkerId workers,
                           std::vector<double> start, Rounds* rounds, Report report, Choose choose)
    : design_(design),
      response_(response),
      map_(workers, design.dealing().nodes, design.dealing().node, 1),
      empty_objective_(empty_objective(response)),
      request_(request),
      rounds_(rounds),
      report_(std::move(report)),
      choose_(std::move(choose)),
      scores_(design, workers),
      gram_(design),
      loans_(design),
      coefficients_(std::move(start)) {
  if (coefficients_.empty()) coefficients_.assign(design.columns(), 0.0);
  for (std::uint32_t j = 0; j < design.columns(); ++j) {
    if (!design.is_usable(j)) coefficients_[j] = 0;
  }
  if (!response_.signs.empty()) logistic_ = std::make_unique<LogisticFit>(design_, response_.signs);
  residual_.raw.assign(design.rows(), 0.0);
  residual_before_ = residual_.raw;
  if (!is_cluster()) start_residual();
}

void LassoTrainee::start_residual() {
  rebuild();
  residual_before_ = residual_.raw;
}

/// Columns that this node looks at beside its own.
std::vector<std::uint32_t> LassoTrainee::viewed() const {
  std::vector<std::uint32_t> columns(gram_.columns().begin(), gram_.columns().end());
  columns.insert(columns.end(), working_.begin(), working_.end());
  for (std::uint32_t j = 0; j < design_.columns(); ++j) {
    if (coefficients_[j] != 0) columns.push_back(j);
  }
  return columns;
}

// What a start needs columns of other nodes for.
void LassoTrainee::join(const Collective& nodes) {
  nodes_ = nodes;
  if (!is_cluster()) return;
  loans_.fetch(viewed(), nodes_);
  if (is_resumed_) {
    make_products();
  } else {
    start_residual();
  }
}

/// A product is a function of its two columns, whenever it is made.
void LassoTrainee::make_products() {
  gram_.fill(0, 1);
  gram_.settle();
}

void LassoTrainee::rebuild() {
  if (logistic_ != nullptr) {
    logistic_->rebuild(coefficients_, residual_);
  } else {
    design_.rebuild(response_.values, coefficients_, residual_);
  }
}

/// Of the present point, without the penalty.
double LassoTrainee::loss() const {
  return logistic_ != nullptr ? logistic_->loss() : 0.5 * design_.mean_square(residual_);
}

void LassoTrainee::pick(Clock clock, std::span<std::vector<std::uint32_t>> bins) {
  if (state_.round == Round::moves) rounds_->pick(clock, bins);
}

void LassoTrainee::run_unit(const WorkUnit& unit, UnitContext&) {
  if (!is_for_columns(unit.clock)) run_part(unit.worker, unit.items);
}

void LassoTrainee::run_alone() {
  for (WorkerId w = 0; w < scores_.workers(); ++w) run_part(w, {});
  commit(0, {});
}

void LassoTrainee::run_part(WorkerId worker, std::span<const std::uint32_t> items) {
  switch (state_.round) {
    case Round::scores:
      scores_.update(worker, residual_, coefficients_, state_.due);
      break;
    case Round::products:
      gram_.fill(worker, scores_.workers());
      break;
    case Round::moves:
      rounds_->push(worker, items, residual_, coefficients_, penalty());
      break;
    case Round::none:
      break;
  }
}

Bytes LassoTrainee::pack_partial(Clock clock) {
  if (!is_cluster()) return {};
  if (is_for_columns(clock)) return awaits_columns_ ? loans_.pack() : Bytes{};
  const WorkerId first = map_.first_worker(map_.this_node()), last = map_.first_worker(map_.this_node() + 1);
  if (state_.round == Round::scores) return scores_.pack(first, last);
  Bytes partial;
  if (state_.round != Round::products) return partial;
  for (WorkerId worker = first; worker < last; ++worker) gram_.pack(worker, map_.workers(), partial);
  return partial;
}

/// What the units of other nodes have come to.
void LassoTrainee::take_partials(std::span<const Bytes> partials) {
  for (NodeId node = 0; node < map_.nodes(); ++node) {
    if (node == map_.this_node()) continue;
    const WorkerId first = map_.first_worker(node), last = map_.first_worker(node + 1);
    if (state_.round == Round::scores) scores_.take(first, last, partials[node]);
    if (state_.round != Round::products) continue;
    WireReader in(partials[node]);
    for (WorkerId worker = first; worker < last; ++worker) gram_.take(worker, map_.workers(), in);
  }
}

void LassoTrainee::take_columns(std::span<const Bytes> partials) {
  if (!awaits_columns_) return;
  for (NodeId node = 0; node < map_.nodes(); ++node) {
    if (node != map_.this_node()) loans_.take(partials[node]);
  }
  awaits_columns_ = false;
  go_on_solving();
}

void LassoTrainee::commit(Clock clock, std::span<const Bytes> partials) {
  if (is_for_columns(clock)) {
    take_columns(partials);
  } else if (!is_pulling_) {
    take_partials(partials);
    pull();
  }
  is_pulling_ = false;
  while (const std::size_t parts = next_parts()) {
    for (std::size_t part = 0; part < parts; ++part) settle(clock, part);
  }
}

// On one node a pull runs here, where all threads can share in it.
std::size_t LassoTrainee::settle_parts(Clock) {
  if (!is_pulling_) {
    is_pulling_ = true;
    pull();
  }
  return next_parts();
}

/// Of the descent that the pull has begun; 0: nothing is left to do in this clock.
std::size_t LassoTrainee::next_parts() {
  if (descent_ == nullptr) return 0;
  if (const std::size_t parts = descent_->next()) return parts;
  descent_.reset();
  after_solve();
  return 0;
}

void LassoTrainee::pull() {
  switch (state_.round) {
    case Round::scores:
      take_scores();
      break;
    case Round::products:
      gram_.settle();
      solve();
      break;
    case Round::moves:
      take_moves();
      break;
    case Round::none:
      break;
  }
}

void LassoTrainee::take_scores() {
  if (state_.is_started == 0) start_path();
  std::vector<std::uint32_t> candidates = listed();
  bool is_new_stage = false;
  while (judge(candidates)) {
    if (stages_[state_.stage].is_point) points_.push_back(point_now());
    if (!next_stage()) {
      state_.round = Round::none;
      return;
    }
    is_new_stage = true;
  }
  if (state_.is_settled != 0) {
    points_.push_back(point_now());
    state_.round = Round::none;
    return;
  }
  start_solving(std::move(candidates), is_new_stage);
}

void LassoTrainee::start_solving(std::vector<std::uint32_t> candidates, bool is_new_stage) {
  if (rounds_ != nullptr) {
    state_.due = due_of(state_.stage);
    state_.tried = 0;
    working_.clear();
    state_.round = Round::moves;
    return;
  }
  choose_working(std::move(candidates), is_new_stage);
  state_.due = due_of(state_.stage);
  awaits_columns_ = is_cluster() && loans_.want(viewed());
  if (!awaits_columns_) go_on_solving();
}

/// Every column that is viewed is here.
void LassoTrainee::go_on_solving() {
  state_.enough = std::max(0.3 * goal(), (wants_products() ? 0.01 : 0.1) * state_.gap);
  if (wants_products()) {
    const std::uint64_t work = gram_.admit(working_) * (design_.entries() / design_.columns() + 1);
    if (work > kFewProducts) {
      state_.round = Round::products;
      return;
    }
    make_products();
  }
  solve();
}

/// The first scores are of all columns; from them, without a start, follow the penalties.
void LassoTrainee::start_path() {
  state_.is_started = 1;
  for (std::uint32_t j = 0; j < design_.columns(); ++j) {
    if (design_.is_usable(j)) state_.largest = std::max(state_.largest, std::abs(scores_.gradient(j)));
  }
  constexpr double kLeastRatio = 1e-3;  // as in glmnet: with no l1 at all nothing is ever 0
  state_.largest /= std::max(request_.l1_ratio, kLeastRatio);
  const bool is_cold = std::all_of(coefficients_.begin(), coefficients_.end(), [](double b) { return b == 0; });
  state_.is_long_way = design_.is_dense() && is_cold ? 1 : 0;
  stages_ = stages_of(request_, state_.largest, state_.is_long_way != 0);
  state_.least_gap = kInfinity;
  state_.due = due_of(0);
}

std::vector<std::uint32_t> LassoTrainee::listed() const {
  std::vector<std::uint32_t> all;
  for (WorkerId w = 0; w < scores_.workers(); ++w) {
    for (const std::uint32_t j : scores_.listed(w)) {
      if (coefficients_[j] != 0 || std::abs(scores_.gradient(j)) >= state_.due) all.push_back(j);
    }
  }
  return all;
}

// Columns that are not listed are below the threshold of the scores, whatever they are.
GapSums LassoTrainee::sums_of(std::span<const std::uint32_t> candidates, Penalty penalty) const {
  GapSums sums;
  if (logistic_ == nullptr) sums.square = design_.mean_square(residual_);
  for (const std::uint32_t j : candidates) {
    const double gradient = scores_.gradient(j);
    sums.add_coefficient(coefficients_[j], gradient);
    sums.add_inactive(logistic_ == nullptr ? gradient - penalty.l2 * coefficients_[j] : gradient, gradient, penalty);
  }
  sums.largest = std::max(sums.largest, std::min(state_.due, state_.largest * request_.l1_ratio));
  if (state_.due > penalty.l1) sums.beyond = kInfinity;
  return sums;
}

/// Measures the present stage. @return true when it is good enough
bool LassoTrainee::judge(std::span<const std::uint32_t> candidates) {
  const Penalty at = penalty();
  const GapSums sums = sums_of(candidates, at);
  state_.objective = loss() + penalised(sums, at);
  if (at.l1 == 0 && at.l2 == 0) {
    // Without a penalty there is no bound; gradients against their greatest possible size stand for it.
    const double most = std::sqrt(response_.square);
    note_gap(most > 0 ? empty_objective_ * sums.largest / most : 0.0);
  } else {
    const double dual = logistic_ != nullptr ? logistic_->dual(sums, at, residual_) : dual_value(sums, at);
    note_gap(std::max(state_.objective - dual, 0.0));  // this point's own, which the files prove again
    const bool may_screen = logistic_ == nullptr && is_last_stage() && at.l1 > 0;
    if (may_screen) scores_.screen(dual_scale(sums, at), state_.objective - dual, at);
  }
  return state_.gap <= goal();
}

void LassoTrainee::note_gap(double gap) {
  constexpr double kGain = 0.9;
  constexpr std::uint32_t kPatience = 4, kMostPatience = 16, kPatientRounds = 1000;
  state_.gap = gap;
  if (gap < kGain * state_.least_gap) {
    state_.least_gap = gap;
    state_.rounds_without_gain = 0;
    return;
  }
  ++state_.rounds_without_gain;
  if (state_.rounds_without_gain >= kPatience) state_.avoids_products = 1;
  if (state_.rounds_without_gain >= (rounds_ == nullptr ? kMostPatience : kPatientRounds)) state_.is_settled = 1;
}

double LassoTrainee::goal() const {
  const double relative = stages_[state_.stage].is_point ? tolerance_ : std::max(tolerance_, kLooseGap);
  return relative * empty_objective_;
}

/// @return false when there is none
bool LassoTrainee::next_stage() {
  if (is_last_stage()) return false;
  constexpr std::size_t kLeastPoints = 5;
  constexpr double kLeastGain = 1e-5, kEnough = 0.999;  // as in glmnet
  if (points_.size() >= kLeastPoints) {
    const double now = points_.back().explained, before = points_[points_.size() - 2].explained;
    if (now > kEnough || now - before < kLeastGain * now) {
      state_.ended_early = 1;
      return false;
    }
  }
  ++state_.stage;
  state_.least_gap = kInfinity;
  state_.rounds_without_gain = 0;
  state_.avoids_products = 0;
  return true;
}

/// The threshold of the scores: the penalty, or already what the strong rule keeps for the next one.
double LassoTrainee::due_of(std::uint64_t stage) const {
  constexpr double kLeast = 0.8;  // of the next penalty, where steps are long
  const double here = stages_[stage].lambda * request_.l1_ratio;
  if (stage + 1 == stages_.size()) return here;
  const double next = stages_[stage + 1].lambda * request_.l1_ratio;
  return std::min(here, std::max(2 * next - here, kLeast * next));
}

void LassoTrainee::choose_working(std::vector<std::uint32_t> candidates, bool is_new_stage) {
  const auto active =
      std::partition(candidates.begin(), candidates.end(), [&](std::uint32_t j) { return coefficients_[j] != 0; });
  const auto count = static_cast<std::size_t>(active - candidates.begin());
  const std::size_t least = design_.is_dense() ? 32 : 2000;
  const std::size_t most = std::max(least, design_.is_dense() && !is_new_stage ? count / 4 : count);
  if (static_cast<std::size_t>(candidates.end() - active) > most) {
    const auto distance = [&](std::uint32_t j) {
      return (penalty().l1 - std::abs(scores_.gradient(j))) / std::sqrt(design_.curvature(j));
    };
    const auto cut = active + static_cast<std::ptrdiff_t>(most);
    std::nth_element(active, cut, candidates.end(), [&](std::uint32_t a, std::uint32_t b) {
      const double first = distance(a), second = distance(b);
      return first < second || (first == second && a < b);
    });
    candidates.erase(cut, candidates.end());
  }
  std::sort(candidates.begin(), candidates.end());
  working_ = std::move(candidates);
}

/// A row of products for every column of the working set: worth it when columns are long against their number.
bool LassoTrainee::wants_products() const {
  return logistic_ == nullptr && state_.avoids_products == 0 && is_worth_products(design_, working_);
}

void LassoTrainee::solve() {
  state_.round = Round::scores;
  if (logistic_ != nullptr) {
    logistic_->solve(working_, coefficients_, residual_, penalty(), state_.enough);
  } else if (wants_products()) {
    solve_products();
  } else {
    descent_ = std::make_unique<ResidualDescent>(design_, coefficients_, residual_, working_, penalty(), state_.enough);
    return;
  }
  after_solve();
}

void LassoTrainee::take_moves() {
  state_.tried += rounds_->pull(residual_, coefficients_, working_);
  if (state_.tried < design_.columns()) return;
  after_solve();
  state_.round = Round::scores;
}

void LassoTrainee::solve_products() {
  GramDescent descent(gram_, design_);
  descent.coefficients.assign(gram_.size(), 0.0);
  descent.gradient.assign(gram_.size(), 0.0);
  descent.square = design_.mean_square(residual_);
  for (const std::uint32_t j : working_) {
    const std::uint32_t slot = gram_.slot(j);
    descent.working.push_back(slot);
    descent.coefficients[slot] = coefficients_[j];
    descent.gradient[slot] = scores_.gradient(j);
  }
  std::sort(descent.working.begin(), descent.working.end());
  descent.solve(penalty(), state_.enough);
  for (const std::uint32_t j : working_) {
    const double to = descent.coefficients[gram_.slot(j)];
    if (to == coefficients_[j]) continue;
    design_.subtract(j, to - coefficients_[j], residual_);
    coefficients_[j] = to;
  }
}

void LassoTrainee::after_solve() {
  constexpr std::uint32_t kRebuildEvery = 16;  // rounding that steps leave in the residual is cleared so often
  if (++state_.solves % kRebuildEvery == 0) {
    rebuild();
  } else if (logistic_ == nullptr) {
    design_.recentre(residual_);
  }
  double square = 0;
  for (std::size_t i = 0; i < residual_before_.size(); ++i) {
    const double step = residual_.raw[i] - residual_before_[i];
    square += step * step;
  }
  residual_before_ = residual_.raw;
  scores_.moved(std::sqrt(square / static_cast<double>(residual_before_.size())), working_);
}

std::vector<double> LassoTrainee::lambdas() const {
  std::vector<double> all;
  for (const PathPoint& point : points_) all.push_back(point.lambda);
  return all;
}

PathPoint LassoTrainee::point_now() const {
  PathPoint point;
  const double empty = empty_objective_;
  point.lambda = stages_.empty() ? request_.lambda.value_or(state_.largest) : stages_[state_.stage].lambda;
  point.objective = state_.objective;
  point.gap = empty > 0 ? state_.gap / empty : 0.0;
  point.explained = empty > 0 ? 1 - loss() / empty : 0.0;
  point.intercept = logistic_ != nullptr ? logistic_->intercept() : response_.mean;
  for (std::uint32_t j = 0; j < design_.columns(); ++j) {
    if (coefficients_[j] == 0) continue;
    point.columns.push_back(j);
    point.coefficients.push_back(coefficients_[j]);
  }
  return point;
}

Certificate LassoTrainee::certify_point(const PathPoint& point, const ParallelFor& parallel) {
  std::vector<std::uint32_t> columns = viewed();
  columns.insert(columns.end(), point.columns.begin(), point.columns.end());
  loans_.fetch(columns, nodes_);
  std::vector<double> dense(design_.columns(), 0.0);
  for (std::size_t i = 0; i < point.columns.size(); ++i) dense[point.columns[i]] = point.coefficients[i];
  return certify(design_, response_, dense, point.intercept, request_.penalty(point.lambda), parallel, nodes_);
}

/// Why the last point was left as it is.
std::string LassoTrainee::settled_text(const PathPoint& at) const {
  constexpr double kRounding = 1e-12;  // of the empty model's objective: what the two sums of a gap may lack
  std::ostringstream text;
  text << "the duality gap no longer falls at lambda " << at.lambda << ": it stays at " << at.gap
       << " of the objective without columns, above --tolerance " << tolerance_;
  if (at.gap < kRounding) text << ", which is as small as rounding lets it become";
  if (is_last_stage()) return text.str();
  if (request_.lambda) {
    text << "; --lambda " << *request_.lambda << " was not reached";
  } else {
    text << "; the path ended there, after " << points_.size() << " of " << request_.points << " penalties";
  }
  return text.str();
}

/// What is left of the training: every point that was wanted, the last state if it is none, and one that is the model.
PathPoint LassoTrainee::finish(Engine& engine) {
  if (!is_done()) points_.push_back(point_now());
  chosen_ = choose_(points_);
  PathPoint& point = points_[chosen_];
  certificate_ = certify_point(point, engine.parallel_for_function());
  point.objective = certificate_.objective;
  point.gap = empty_objective_ > 0 ? certificate_.gap / empty_objective_ : 0.0;
  if (state_.is_settled != 0) engine.warn(settled_text(points_.back()));
  if (state_.ended_early != 0) {
    engine.warn("the path ended after " + std::to_string(points_.size()) + " of " + std::to_string(request_.points) +
                " penalties: smaller ones explain no more of the response");
  }
  return point;
}

Evaluation LassoTrainee::evaluate(Engine& engine, bool exact) {
  const PathPoint now = exact ? finish(engine) : point_now();
  Evaluation out;
  out.objective = now.objective;
  out.is_final = state_.round == Round::none;
  out.residual = out.is_final ? now.gap : kInfinity;
  out.extra = {{"lambda", now.lambda},
               {"gap", now.gap},
               {"nonzeros", static_cast<double>(now.columns.size())},
               {logistic_ != nullptr ? "explained" : "r2", now.explained}};
  report_(now, out);
  return out;
}

std::vector<StateSection> LassoTrainee::save_state() const {
  static_assert(std::is_trivially_copyable_v<State>);
  std::vector<StateSection> sections{section_of<State>("lasso", {&state_, 1}),
                                     section_of<double>("coefficients", coefficients_),
                                     section_of<double>("residual", residual_.raw),
                                     section_of<double>("residual-sum", {&residual_.sum, 1}),
                                     section_of<double>("residual-before", residual_before_),
                                     section_of<std::uint32_t>("slots", gram_.columns()),
                                     section_of<std::uint32_t>("working", working_)};
  if (logistic_ != nullptr) logistic_->save(sections);
  scores_.save(sections, nodes_);
  if (rounds_ != nullptr) rounds_->save(sections);
  sections.push_back({"points", packed(points_)});
  if (best_) {
    sections.push_back(section_of<double>(kBestCoefficients, best_->coefficients));
    sections.push_back({"best-points", packed(best_->points)});
    sections.push_back(section_of<State>("best", {&best_->state, 1}));
  }
  return sections;
}

void LassoTrainee::load_state(const std::vector<StateSection>& sections) {
  copy_section<State>(sections, "lasso", {&state_, 1});
  copy_section<double>(sections, "coefficients", coefficients_);
  copy_section<double>(sections, "residual", residual_.raw);
  copy_section<double>(sections, "residual-sum", {&residual_.sum, 1});
  copy_section<double>(sections, "residual-before", residual_before_);
  working_ = array_in<std::uint32_t>(sections, "working");
  gram_.admit(array_in<std::uint32_t>(sections, "slots"));
  is_resumed_ = true;
  if (!is_cluster()) make_products();
  if (logistic_ != nullptr) logistic_->load(sections);
  scores_.load(sections);
  if (rounds_ != nullptr) rounds_->load(sections);
  points_ = points_in(find_section(sections, "points"));
  if (state_.is_started != 0) stages_ = stages_of(request_, state_.largest, state_.is_long_way != 0);
  load_best(sections);
}

/// There is one only in a training that stops early.
void LassoTrainee::load_best(const std::vector<StateSection>& sections) {
  best_.reset();
  if (std::none_of(sections.begin(), sections.end(), [](const auto& s) { return s.name == kBestCoefficients; })) return;
  Best best{std::vector<double>(coefficients_.size()), points_in(find_section(sections, "best-points")), {}};
  copy_section<double>(sections, kBestCoefficients, best.coefficients);
  copy_section<State>(sections, "best", {&best.state, 1});
  best_ = std::move(best);
}

void LassoTrainee::keep_best() { best_ = Best{coefficients_, points_, state_}; }

void LassoTrainee::restore_best() {
  coefficients_ = best_->coefficients;
  points_ = best_->points;
  state_ = best_->state;
  loans_.fetch(viewed(), nodes_);
  rebuild();
}

}  // namespace orrery::lasso
