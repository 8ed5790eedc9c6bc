#include "tools/simulated_training.h"

#include <string>
#include <utility>

#include "engine/error.h"
#include "engine/wire.h"

namespace orrery::tools {
namespace {

constexpr const char* kTimeSection = "virtual_seconds";

/// Adds the virtual time to what node 0 reports, and to its checkpoints, so that it goes on over a resume.
class TimedObserver final : public TrainingObserver {
 public:
  TimedObserver(TrainingObserver& observer, const SimulatedCluster& cluster,
                const std::vector<StateSection>* resume_from)
      : observer_(observer), cluster_(cluster) {
    if (resume_from == nullptr) return;
    for (const StateSection& section : *resume_from) {
      if (section.name != kTimeSection) continue;
      WireReader in(section.bytes);
      before_ = in.take<double>();
    }
  }
  double time() const { return before_ + cluster_.time(); }

  void evaluated(const ProgressPoint& point) override {
    ProgressPoint timed = point;
    timed.evaluation.extra.emplace_back("virtual_seconds", time());
    observer_.evaluated(timed);
  }
  void checkpoint(Clock iteration, std::vector<StateSection>&& state) override {
    StateSection section{kTimeSection, {}};
    put(section.bytes, time());
    state.push_back(std::move(section));
    observer_.checkpoint(iteration, std::move(state));
  }

 private:
  TrainingObserver& observer_;
  const SimulatedCluster& cluster_;
  double before_ = 0;
};

std::optional<Clock> bound_of(const RunOptions& options) {
  if (options.consistency == Consistency::async) return std::nullopt;
  return options.staleness;
}

}  // namespace

SimulatedTraining::SimulatedTraining(const SimulationSpec& spec, const AlgorithmEntry& entry, Algorithm& first,
                                     const DataRequest& data, const RunOptions& options, WorkerId workers,
                                     Engine& loader)
    : checker_(workers, AuditedTrainee::kRows, bound_of(options), spec.seed),
      cluster_(spec, &checker_),
      nodes_(spec.nodes) {
  if (workers < spec.nodes) {
    throw usage_error("--simulate: " + std::to_string(spec.nodes) + " nodes need as many workers, got " +
                      std::to_string(workers) + " (--workers)");
  }
  EngineOptions engine_options = options.engine_options();
  engine_options.threads = 1;
  for (NodeId n = 0; n < spec.nodes; ++n) {
    Node& node = nodes_[n];
    node.engine = std::make_unique<Engine>(engine_options, &cluster_.node(n));
    Algorithm* algorithm = &first;
    if (n > 0) {
      node.own = entry.make();
      algorithm = node.own.get();
      take_choices(first.params(), algorithm->params());
      algorithm->load(data, loader);
    }
    node.training = algorithm->prepare(*node.engine, workers, options.seed, options.schedule);
    const WorkerMap map(workers, spec.nodes, n, node.engine->domains());
    node.audited = std::make_unique<AuditedTrainee>(*node.training.trainee, *node.engine, map, checker_, spec.seed);
  }
}

TrainResult SimulatedTraining::train(const TrainOptions& options, TrainingObserver& observer,
                                     const std::atomic<bool>& interrupted,
                                     const std::vector<StateSection>* resume_from) {
  TimedObserver first(observer, cluster_, resume_from);
  TrainingObserver others;
  TrainResult result;
  cluster_.run([&](NodeId n, Transport&) {
    Node& node = nodes_[n];
    TrainingObserver& heard = n == 0 ? static_cast<TrainingObserver&>(first) : others;
    TrainResult of_node =
        orrery::train(*node.engine, *node.training.schedule, *node.audited, options, heard, interrupted, resume_from);
    node.audited->ended();
    if (n == 0) result = std::move(of_node);
  });
  if (checker_.broken()) {
    throw Error(ErrorKind::internal, "the simulated cluster broke the contract of tables: " + *checker_.broken());
  }
  result.final.extra.emplace_back("virtual_seconds", first.time());
  result.final.extra.emplace_back("virtual_compute_seconds", cluster_.busiest());
  result.final.extra.emplace_back("virtual_bytes_sent", static_cast<double>(cluster_.bytes_sent()));
  result.final.extra.emplace_back("reads_checked", static_cast<double>(checker_.reads()));
  return result;
}

}  // namespace orrery::tools
