// The loop around the executor: run clocks up to a cut, evaluate, report, decide to stop, checkpoint. A cut is a state
// between clocks (design section 11): no unit beyond it has started and all before it are done. Stopping rules and
// progress are data here, not code in an algorithm.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/access_learner.h"
#include "engine/collective.h"
#include "engine/npy.h"
#include "engine/program.h"
#include "engine/schedule.h"
#include "engine/types.h"

namespace orrery {

class Engine;
struct StopRules;

/// What an evaluation at a cut found. Names are the keys of metrics.jsonl.
struct Evaluation {
  double objective = 0;
  /// The primary metric on held-out data, if there is any: key "valid".
  std::optional<double> valid;
  /// What the algorithm adds, in the order in which it is written ("rmse", …).
  std::vector<std::pair<std::string, double>> extra;
  /// How far the state is from a solution, for a trainee that knows: the tolerance then bounds this instead of the
  /// objective's relative change. Infinity: not there yet.
  std::optional<double> residual;
  /// How far behind its clock what reads saw was, so far, for a trainee that counts reads; else units stand for them.
  std::optional<double> staleness_mean, staleness_max;
  bool is_final = false;  ///< nothing will change any more, whatever the tolerance says
};

/// State of a training at a cut, by section. Together with the clock it must determine everything that follows.
struct StateSection {
  std::string name;
  Bytes bytes;
  /// For state that lies on disk because it does not fit in memory: gives `source_bytes` bytes as often as it is asked,
  /// until the training goes on or the section is gone; `bytes` is empty then.
  ByteSource source = {};
  std::uint64_t source_bytes = 0;

  std::uint64_t size() const { return source ? source_bytes : bytes.size(); }
  void read(const ByteSink& sink) const {
    if (source) return source(sink);
    sink(bytes);
  }
};

/// A program that can be trained: evaluated, saved and restored at cuts. All calls come from the thread in train(),
/// alone.
class Trainee : public Program {
 public:
  /// What will end the training, said once before anything else.
  virtual void take_stop_rules(const StopRules& /*rules*/) {}
  /// How nodes talk at cuts; valid as long as the training runs. Said once, before the first clock and after
  /// load_state(). evaluate(), save_state(), keep_best(), restore_best() and collect_model() may use it: all nodes call
  /// them at the same cuts.
  virtual void join(const Collective& /*nodes*/) {}
  /// Evaluates the state as it is. May use engine.parallel_for; sums must follow the fixed tree (reduce.h). `exact`
  /// asks for the objective of this very state; else a value that the last clock came by may stand for it.
  virtual Evaluation evaluate(Engine& engine, bool exact) = 0;
  /// On several nodes the first one's is kept, and holds what all nodes have.
  virtual std::vector<StateSection> save_state() const = 0;
  /// Restores what save_state() gave. @throws Error (data) when sections are missing or of another shape.
  virtual void load_state(const std::vector<StateSection>& sections) = 0;
  /// Early stopping: remember the state as the best so far, and go back to it at the end.
  virtual void keep_best() = 0;
  virtual void restore_best() = 0;
  /// The training is over: the first node gets what it needs to write the model and has not, if anything.
  virtual void collect_model(Engine& /*engine*/) {}
  /// On several nodes: what only this node knows of the state at a cut, if anything (`shares_state`, the same on all),
  /// goes to all others before they evaluate, save and write. Not asked at a cut where nobody does.
  virtual bool shares_state() const { return false; }
  virtual Bytes share_state() const { return {}; }
  virtual void take_share(NodeId /*from*/, std::span<const std::byte> /*share*/) {}
  /// What this node's workers accessed in tables, by the name of the table. Between runs.
  virtual std::vector<std::pair<std::string, AccessCounts>> accesses() const { return {}; }
  /// What was learned of these accesses, a section for each table; and following it from the first clock on, before the
  /// first run. @throws Error (data) for plans of other tables or workers.
  virtual std::vector<StateSection> save_plans() const { return {}; }
  virtual void follow_plans(const std::vector<StateSection>& /*plans*/) {}
};

/// When to stop. Iterations are clocks divided by TrainOptions::clocks_per_iteration.
struct StopRules {
  Clock iterations = 20;              ///< at most this many, >= 0
  std::optional<double> max_seconds;  ///< of training time, without loading and evaluation
  std::optional<double> target;       ///< stop once the primary metric is this good
  std::optional<double> tolerance;    ///< stop once |objective change| / |objective| of one evaluation is below
  Clock patience = 0;                 ///< early stop: evaluations without a better `valid` before stopping; 0: never
};

struct TrainOptions {
  WorkerId workers = 1;
  StopRules stop;
  Clock clocks_per_iteration = 1;
  Clock evaluate_every = 1;       ///< iterations between evaluations; the last one is always evaluated
  bool has_valid = false;         ///< evaluations give `valid`; the primary metric is it, else the objective
  bool smaller_is_better = true;  ///< of the primary metric
  Clock checkpoint_every = 0;     ///< iterations; 0: none
};

/// One line of metrics.jsonl.
struct ProgressPoint {
  Clock iteration = 0;
  double seconds = 0;  ///< of training so far, without loading and evaluation; goes on over a resume
  Evaluation evaluation;
  double wait_seconds = 0;  ///< thread time so far in which no ready unit was there
  double staleness_mean = 0, staleness_max = 0;
  std::uint64_t bytes_sent = 0;
};

/// Who listens to a training. Called on the thread in train(), between clocks.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  virtual void evaluated(const ProgressPoint& /*point*/) {}
  /// A checkpoint is due: the state to write. May return before it is on disk; must throw if it cannot be written.
  virtual void checkpoint(Clock /*iteration*/, std::vector<StateSection>&& /*state*/) {}
};

/// Why a training ended; the texts are run.json's "stopped_by".
enum class StoppedBy { iterations, seconds, target, tolerance, validation, settled, interrupt };
std::string_view to_string(StoppedBy reason);

struct TrainResult {
  Clock iterations = 0;      ///< done, counting those before a resume
  Clock best_iteration = 0;  ///< whose state was kept: the last, or the best on validation when early stopping is on
  double seconds = 0;
  double wait_seconds = 0;
  /// The first iteration here, in which accesses are learned, and the mean of the others; empty when they were not
  /// timed apart.
  std::optional<double> first_iteration_seconds, later_iteration_seconds;
  std::uint64_t units_lent = 0;  ///< of all nodes: that ran on another one than their worker's
  StoppedBy stopped_by = StoppedBy::iterations;
  Evaluation final;  ///< of the state that was kept, exact
};

/// Trains from the beginning, or from the sections of a checkpoint. `interrupted` is asked at every clock; when it
/// turns true the clock is finished, a checkpoint is written if they are on, and the training returns.
/// @throws whatever a unit, an evaluation or the observer throws, when nothing runs any more; Error (data) for sections
/// that do not fit.
TrainResult train(Engine& engine, Schedule& schedule, Trainee& trainee, const TrainOptions& options,
                  TrainingObserver& observer, const std::atomic<bool>& interrupted,
                  const std::vector<StateSection>* resume_from = nullptr);

}  // namespace orrery
