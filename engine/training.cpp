#include "engine/training.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <type_traits>

#include "engine/assert.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/executor.h"
#include "engine/wire.h"

namespace orrery {
namespace {

// What the loop itself must remember over a resume; everything else is the trainee's.
struct LoopState {
  Clock iteration = 0;
  double seconds = 0;
  double wait_seconds = 0;
  std::uint64_t has_best = 0, has_last_objective = 0;
  double best = 0, last_objective = 0;
  Clock best_iteration = 0;
  Clock evaluations_without_gain = 0;
};
static_assert(std::is_trivially_copyable_v<LoopState>);

constexpr const char* kLoopSection = "training";

class Trainer {
 public:
  Trainer(Engine& engine, Schedule& schedule, Trainee& trainee, const TrainOptions& options, TrainingObserver& observer,
          const std::atomic<bool>& interrupted, const std::vector<StateSection>* resume_from)
      : engine_(engine), trainee_(trainee), options_(options), observer_(observer), interrupted_(interrupted) {
    trainee_.take_stop_rules(options_.stop);
    if (resume_from != nullptr) restore(*resume_from);
    ExecutorOptions executor_options;
    executor_options.start = state_.iteration * options_.clocks_per_iteration;
    // Several nodes must stop at the same clock, so there the question is put at cuts, to all of them.
    if (!is_cluster())
      executor_options.should_stop = [this] { return !finishes_iteration_ && (interrupted_.load() || out_of_time()); };
    executor_ = std::make_unique<Executor>(engine, schedule, trainee, options.workers, std::move(executor_options));
    const auto exchange = [this](std::vector<Bytes> to) { return executor_->exchange_each(std::move(to)); };
    trainee_.join(Collective(engine.transport().node(), engine.transport().nodes(), exchange));
  }

  TrainResult train() {
    std::optional<StoppedBy> stop = limit_reached();
    while (!stop) {
      run_to_next_cut();
      const std::optional<StoppedBy> limit = limit_reached();
      const bool evaluates = limit || state_.iteration % options_.evaluate_every == 0;
      if (is_cluster() && trainee_.shares_state() && (evaluates || checkpoint_is_due())) share_state();
      if (evaluates) stop = judge(evaluate());
      if (!stop) stop = limit;
      checkpoint_if_due(stop == StoppedBy::interrupt);
    }
    return finish(*stop);
  }

 private:
  void run_to_next_cut() {
    const Clock per = options_.clocks_per_iteration;
    const Clock target = std::min(options_.stop.iterations, next_multiple_cut());
    run_start_ = std::chrono::steady_clock::now();
    Clock reached = executor_->run(target * per);
    // A stop may fall inside an iteration of several clocks: finish it, or it could not be named.
    if (reached % per != 0) {
      finishes_iteration_ = true;
      reached = executor_->run((reached / per + 1) * per);
      finishes_iteration_ = false;
    }
    ORRERY_CHECK(reached % per == 0);
    note_time(running_seconds(), reached / per - state_.iteration);
    run_start_.reset();
    state_.iteration = reached / per;
    const ExecutorStats stats = executor_->stats();
    state_.wait_seconds = wait_before_ + std::max(0.0, stats.thread_seconds - stats.busy_seconds);
  }

  void note_time(double seconds, Clock iterations) {
    state_.seconds += seconds;
    if (!first_seconds_) {
      first_seconds_ = iterations == 1 ? seconds : -1;  // -1: several in one run, not to be told apart
      return;
    }
    later_seconds_ += seconds;
    later_iterations_ += iterations;
  }

  void share_state() {
    const std::vector<Bytes> shares = executor_->exchange(trainee_.share_state());
    for (NodeId n = 0; n < shares.size(); ++n) {
      if (n != engine_.transport().node()) trainee_.take_share(n, shares[n]);
    }
  }

  // The next iteration at which something must happen between clocks.
  Clock next_multiple_cut() const {
    const auto next = [this](Clock every) { return (state_.iteration / every + 1) * every; };
    Clock cut = next(options_.evaluate_every);
    if (options_.checkpoint_every > 0) cut = std::min(cut, next(options_.checkpoint_every));
    return is_cluster() ? state_.iteration + 1 : cut;
  }

  bool out_of_time() const {
    if (!options_.stop.max_seconds) return false;
    return state_.seconds + running_seconds() >= *options_.stop.max_seconds;
  }

  Evaluation evaluate() {
    ProgressPoint point;
    point.evaluation = trainee_.evaluate(engine_, false);
    const ExecutorStats stats = executor_->stats();
    point.iteration = state_.iteration;
    point.seconds = state_.seconds;
    point.wait_seconds = state_.wait_seconds;
    const double of_units = stats.units == 0 ? 0 : stats.staleness_sum / static_cast<double>(stats.units);
    point.staleness_mean = point.evaluation.staleness_mean.value_or(of_units);
    point.staleness_max = point.evaluation.staleness_max.value_or(static_cast<double>(stats.staleness_max));
    point.bytes_sent = stats.bytes_sent;
    observer_.evaluated(point);
    return point.evaluation;
  }

  double primary(const Evaluation& evaluation) const {
    return evaluation.valid ? *evaluation.valid : evaluation.objective;
  }

  // What the evaluation says about going on.
  std::optional<StoppedBy> judge(const Evaluation& now) {
    const double value = primary(now);
    const bool reached = options_.stop.target &&
                         (options_.smaller_is_better ? value <= *options_.stop.target : value >= *options_.stop.target);
    const bool settled = options_.stop.tolerance && is_settled(now, *options_.stop.tolerance);
    state_.has_last_objective = 1;
    state_.last_objective = now.objective;
    note_best(value);
    if (reached) return StoppedBy::target;
    if (settled) return StoppedBy::tolerance;
    if (options_.stop.patience > 0 && state_.evaluations_without_gain >= options_.stop.patience) {
      return StoppedBy::validation;
    }
    if (now.is_final) return StoppedBy::settled;
    return std::nullopt;
  }

  bool is_settled(const Evaluation& now, double tolerance) const {
    if (now.residual) return *now.residual <= tolerance;
    return state_.has_last_objective != 0 &&
           std::abs(now.objective - state_.last_objective) <= tolerance * std::abs(state_.last_objective);
  }

  void note_best(double value) {
    const bool better =
        state_.has_best == 0 || (options_.smaller_is_better ? value < state_.best : value > state_.best);
    if (!better) {
      ++state_.evaluations_without_gain;
      return;
    }
    state_.has_best = 1;
    state_.best = value;
    state_.best_iteration = state_.iteration;
    state_.evaluations_without_gain = 0;
    if (options_.stop.patience > 0) trainee_.keep_best();
  }

  // A limit that ends the training at this cut. Nodes agree: one that is interrupted or out of time stops all.
  std::optional<StoppedBy> limit_reached() {
    bool stops[] = {interrupted_.load(), out_of_time()};
    if (is_cluster()) {
      for (const Bytes& said : executor_->exchange({std::byte{stops[0]}, std::byte{stops[1]}})) {
        for (std::size_t i = 0; i < 2; ++i) stops[i] = stops[i] || said.at(i) != std::byte{0};
      }
    }
    if (stops[0]) return StoppedBy::interrupt;
    if (state_.iteration >= options_.stop.iterations) return StoppedBy::iterations;
    if (stops[1]) return StoppedBy::seconds;
    return std::nullopt;
  }

  bool checkpoint_is_due() const {
    return options_.checkpoint_every > 0 && state_.iteration % options_.checkpoint_every == 0;
  }

  void checkpoint_if_due(bool interrupted) {
    if (!checkpoint_is_due() && !(interrupted && options_.checkpoint_every > 0)) return;
    std::vector<StateSection> sections = trainee_.save_state();
    StateSection loop{kLoopSection, Bytes(sizeof state_)};
    std::memcpy(loop.bytes.data(), &state_, sizeof state_);
    sections.push_back(std::move(loop));
    observer_.checkpoint(state_.iteration, std::move(sections));
  }

  void restore(const std::vector<StateSection>& sections) {
    for (const StateSection& section : sections) {
      if (section.name != kLoopSection) continue;
      if (section.bytes.size() != sizeof state_) break;
      std::memcpy(&state_, section.bytes.data(), sizeof state_);
      trainee_.load_state(sections);
      wait_before_ = state_.wait_seconds;
      return;
    }
    throw Error(ErrorKind::data, "the checkpoint has no valid section 'training'");
  }

  TrainResult finish(StoppedBy reason) {
    TrainResult result;
    result.iterations = state_.iteration;
    result.best_iteration = state_.iteration;
    const bool keeps_best = options_.stop.patience > 0 && state_.has_best != 0 && reason != StoppedBy::interrupt;
    if (keeps_best && state_.best_iteration != state_.iteration) {
      trainee_.restore_best();
      result.best_iteration = state_.best_iteration;
    }
    result.seconds = state_.seconds;
    result.wait_seconds = state_.wait_seconds;
    if (first_seconds_ && *first_seconds_ >= 0) result.first_iteration_seconds = first_seconds_;
    if (later_iterations_ > 0) result.later_iteration_seconds = later_seconds_ / static_cast<double>(later_iterations_);
    result.units_lent = units_lent();
    result.stopped_by = reason;
    result.final = trainee_.evaluate(engine_, true);
    trainee_.collect_model(engine_);
    return result;
  }

  std::uint64_t units_lent() {
    std::uint64_t sum = executor_->stats().units_lent;
    if (!is_cluster()) return sum;
    Bytes mine;
    put(mine, sum);
    sum = 0;
    for (const Bytes& of_node : executor_->exchange(std::move(mine))) sum += WireReader(of_node).take<std::uint64_t>();
    return sum;
  }

  double running_seconds() const {
    return run_start_ ? std::chrono::duration<double>(std::chrono::steady_clock::now() - *run_start_).count() : 0;
  }

  bool is_cluster() const { return engine_.transport().nodes() > 1; }

  Engine& engine_;
  Trainee& trainee_;
  const TrainOptions& options_;
  TrainingObserver& observer_;
  const std::atomic<bool>& interrupted_;
  LoopState state_;
  double wait_before_ = 0;
  std::optional<double> first_seconds_;
  double later_seconds_ = 0;
  Clock later_iterations_ = 0;
  std::optional<std::chrono::steady_clock::time_point> run_start_;  ///< while clocks run
  bool finishes_iteration_ = false;                                 ///< that a stop fell into: no stop counts now
  std::unique_ptr<Executor> executor_;
};

}  // namespace

TrainResult train(Engine& engine, Schedule& schedule, Trainee& trainee, const TrainOptions& options,
                  TrainingObserver& observer, const std::atomic<bool>& interrupted,
                  const std::vector<StateSection>* resume_from) {
  return Trainer(engine, schedule, trainee, options, observer, interrupted, resume_from).train();
}

std::string_view to_string(StoppedBy reason) {
  switch (reason) {
    case StoppedBy::iterations:
      return "iterations";
    case StoppedBy::seconds:
      return "seconds";
    case StoppedBy::target:
      return "target";
    case StoppedBy::tolerance:
      return "tolerance";
    case StoppedBy::validation:
      return "validation";
    case StoppedBy::settled:
      return "settled";
    case StoppedBy::interrupt:
      return "interrupt";
  }
  return "unknown";
}

}  // namespace orrery
