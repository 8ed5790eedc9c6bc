#include "tools/profile_trials.h"

#include <algorithm>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "engine/error.h"
#include "engine/training.h"
#include "numa/memory.h"

namespace orrery::tools {
namespace {

// Fewer say little about later iterations; more would make the trials longer than the profile.
constexpr Clock kFewest = 4, kUsual = 8;
// Shorter runs are at the mercy of one slice of the operating system's scheduler.
constexpr double kLeastSeconds = 0.2;
constexpr Clock kMost = 100;
constexpr int kRounds = 3;  // in turns, so that a busy moment of the machine does not decide

Clock iterations_of_trial(const RunResult& result) {
  const double each = result.seconds / static_cast<double>(std::max<Clock>(1, result.iterations));
  const auto long_enough = static_cast<Clock>(std::min<double>(kMost, kLeastSeconds / std::max(each, 1e-9)));
  return std::max(long_enough, std::clamp(result.iterations / 4, kFewest, kUsual));
}

/// The run's engine, with the change.
EngineOptions engine_options(const RunOptions& options, const Change* change, const std::atomic<bool>& interrupted) {
  EngineOptions engine = options.engine_options();
  engine.before_body = [&interrupted] {
    if (interrupted.load()) throw Error(ErrorKind::interrupted, "interrupted");
  };
  if (change != nullptr && change->option == "staleness") {
    engine.staleness = std::stoll(change->value);
    engine.consistency = engine.staleness == 0 ? Consistency::bsp : Consistency::ssp;
  }
  return engine;
}

}  // namespace

ProfileTrials::ProfileTrials(const TrainRequest& request, const RunOptions& options, WorkerId workers,
                             const RunResult& result, const std::atomic<bool>& interrupted, Progress& progress)
    : request_(request),
      options_(options),
      workers_(workers),
      iterations_(iterations_of_trial(result)),
      interrupted_(interrupted),
      progress_(progress) {}

Advice ProfileTrials::judge(const Advice& advice) {
  if (!advice.change) return advice;
  if (const std::optional<std::string> reason = obstacle()) return untried(advice, *reason);
  progress_.status("trying " + advice.change->text());
  try {
    return judged(advice, compare(*advice.change));
  } catch (const Error& error) {
    // The data may be too few for so many workers; and what has been measured so far is not to be lost over a trial.
    if (error.kind() != ErrorKind::usage && error.kind() != ErrorKind::interrupted) throw;
    return untried(advice, error.what());
  }
}

std::optional<std::string> ProfileTrials::obstacle() const {
  if (interrupted_.load()) return "interrupted";
  if (!options_.memory_limit.empty()) return "it would hold the data twice, and --memory-limit is said";
  const std::uint64_t needed = request_.algorithm->memory(workers_).total(), left = available_memory().usable();
  if (needed <= left) return std::nullopt;
  return "a second copy may take " + std::to_string(needed >> 20) + " MiB, of which " + std::to_string(left >> 20) +
         " MiB are free";
}

Trial ProfileTrials::compare(const Change& change) {
  std::optional<Outcome> as_it_was, changed;
  const auto take = [](std::optional<Outcome>& all, const Outcome& now) {
    if (!all) all = now;
    all->fastest = std::min(all->fastest, now.fastest);
    all->slowest = std::max(all->slowest, now.slowest);
  };
  for (int round = 0; round < kRounds; ++round) {
    for (const Change* one : {static_cast<const Change*>(nullptr), &change}) {
      take(one == nullptr ? as_it_was : changed, run(one));
    }
  }
  return Trial{.iterations = iterations_,
               .fastest = changed->fastest,
               .slowest = changed->slowest,
               .fastest_before = as_it_was->fastest,
               .slowest_before = as_it_was->slowest,
               .objective = changed->objective,
               .objective_before = as_it_was->objective};
}

ProfileTrials::Outcome ProfileTrials::run(const Change* change) const {
  Engine engine(engine_options(options_, change, interrupted_));
  const std::unique_ptr<Algorithm> algorithm = request_.entry->make();
  take_choices(request_.algorithm->params(), algorithm->params());
  DataRequest data{.path = request_.data, .format = options_.format, .valid = {}, .init = {}};
  data.schedule = change != nullptr && change->option == "schedule" ? change->value : options_.schedule;
  data.groups = data.schedule == options_.schedule ? static_cast<std::uint32_t>(options_.groups) : 1;
  if (!options_.init.empty()) data.init = options_.init;
  data.scratch = options_.out;
  algorithm->check(data);
  algorithm->load(data, engine);
  TrainOptions how;
  how.workers =
      change != nullptr && change->option == "workers" ? static_cast<WorkerId>(std::stoul(change->value)) : workers_;
  const Training training = algorithm->prepare(engine, how.workers, options_.seed, data.schedule);
  how.stop.iterations = iterations_;
  how.clocks_per_iteration = training.clocks_per_iteration;
  how.evaluate_every = std::min<Clock>(options_.valid_every, std::max<Clock>(1, iterations_ / 2));
  TrainingObserver nobody;
  const TrainResult result = train(engine, *training.schedule, *training.trainee, how, nobody, interrupted_);
  if (result.stopped_by == StoppedBy::interrupt) throw Error(ErrorKind::interrupted, "interrupted");
  const double mean = result.seconds / static_cast<double>(std::max<Clock>(1, result.iterations));
  const double later = result.later_iteration_seconds.value_or(mean);
  return Outcome{.fastest = later, .slowest = later, .objective = result.final.objective};
}

}  // namespace orrery::tools
