// PageRank by accumulating deltas, the largest first (Maiter: Zhang et al., IEEE TPDS 2014).
//
//   v = 0, Δ = (1 - d)/n;   process u:  v_u += Δ_u, Δ_w += d Δ_u/deg_u along each edge u → w, Δ_u = 0
//
// v is the solution of the dropped system but for what Δ still brings: F(v) - v = Δ at any time, in any order, so ΣΔ is
// the residual and nothing needs to be measured. Processing loses and makes no mass:
//
//   Σ v over nodes with out-edges + (Σ v over dangling nodes + Σ Δ)/(1 - d) = 1
//
// An iteration processes the nodes whose Δ is at least half the mean. What it leaves is below half of ΣΔ, so each
// iteration takes at least (1 - d)/2 off it, and mostly works on a part of the edges. It is two clocks of the
// data-parallel schedule: in the first a worker processes its nodes and writes messages for the owners of the targets,
// in the second owners add the messages up in the order of senders. Nothing that a unit writes is read in its clock.
#pragma once

#include "algorithms/pagerank_trainee.h"

namespace orrery::pagerank {

class DeltaTrainee final : public PageRankTrainee {
 public:
  static constexpr Clock kClocksPerIteration = 2;

  /// Turns the graph round: 4 bytes an edge. Messages under way take 16 bytes for each edge of a processed node.
  DeltaTrainee(const Graph& graph, const PageRankParams& params);

  void run_unit(const WorkUnit& unit, UnitContext& context) override;
  void commit(Clock clock, std::span<const Bytes> partials) override;
  std::vector<double> ranks() const override;

  /// The left side of the law of mass above; 1 but for rounding.
  double conserved() const;

 protected:
  double residual_bound() const override;
  std::vector<double> save() const override;
  void load(std::span<const double> state) override;

 private:
  struct Message {
    std::uint32_t target;
    double value;
  };
  std::vector<Message>& outbox(WorkerId from, WorkerId to) {
    return outboxes_[std::size_t{from} * graph_.workers() + to];
  }
  void process(WorkerId worker);
  void receive(WorkerId worker);
  /// Sets the sums of a worker's nodes.
  void sum_up(WorkerId worker);
  void share_sums();

  std::vector<std::uint64_t> out_begin_;  ///< nodes + 1
  std::vector<std::uint32_t> targets_;    ///< ascending for each node
  std::vector<double> value_, delta_;
  std::vector<std::vector<Message>> outboxes_;  ///< by sender and receiver
  std::vector<double> worker_pending_, worker_mass_;
  double pending_ = 0, mass_ = 0;  ///< Σ Δ and Σ v
};

}  // namespace orrery::pagerank
