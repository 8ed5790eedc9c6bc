// A training on a cluster in virtual time (--simulate): every node is an engine of its own with its own copy of the
// data, all in this process, one running at a time; the contract of tables is checked while it runs.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "algorithms/algorithm.h"
#include "engine/audited_trainee.h"
#include "engine/contract_checker.h"
#include "engine/engine.h"
#include "engine/simulated_cluster.h"
#include "engine/training.h"
#include "tools/run_options.h"

namespace orrery::tools {

class SimulatedTraining {
 public:
  /// Node 0 is `first`, which has its data and runs on several nodes; the others read theirs with `loader`.
  /// @throws Error (usage) when there are fewer workers than nodes.
  SimulatedTraining(const SimulationSpec& spec, const AlgorithmEntry& entry, Algorithm& first, const DataRequest& data,
                    const RunOptions& options, WorkerId workers, Engine& loader);

  /// What node 0 has prepared.
  const Training& training() const { return nodes_.front().training; }
  /// Runs all nodes to the end; the observer hears of node 0, whose evaluations also say the virtual time.
  /// @throws Error (internal) with a trace when a promise of the contract was broken.
  TrainResult train(const TrainOptions& options, TrainingObserver& observer, const std::atomic<bool>& interrupted,
                    const std::vector<StateSection>* resume_from);

  VirtualTime time() const { return cluster_.time(); }
  /// Of the node that computes most.
  VirtualTime busiest() const { return cluster_.busiest(); }
  std::uint64_t bytes_sent() const { return cluster_.bytes_sent(); }
  /// Reads that were held against the contract.
  std::uint64_t reads_checked() const { return checker_.reads(); }

 private:
  struct Node {
    std::unique_ptr<Engine> engine;
    std::unique_ptr<Algorithm> own;  ///< of nodes but the first
    Training training;
    std::unique_ptr<AuditedTrainee> audited;
  };

  ContractChecker checker_;
  SimulatedCluster cluster_;
  std::vector<Node> nodes_;
};

}  // namespace orrery::tools
