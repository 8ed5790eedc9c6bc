// PageRank by accumulating deltas, the largest first (Maiter: Zhang et al., IEEE TPDS 2014).
//
//   v = 0, Δ = (1 - d)/n;   process u:  v_u += Δ_u, Δ_w += d Δ_u/deg_u along each edge u → w, Δ_u = 0
//
// v is the solution of the dropped system but for what Δ still brings: F(v) - v = Δ at any time, in any order, so Σ|Δ|
// is the residual and nothing needs to be measured. Processing loses and makes no mass:
//
//   Σ v over nodes with out-edges + (Σ v over dangling nodes + Σ Δ)/(1 - d) = 1
//
// The last to come right would be the mass as a whole, at the rate of pagerank_trainee.h. So v is made longer, and Δ
// follows, F(αv) - αv = αΔ + (1 - α)(1 - d)/n, with the α for which Σ Δ becomes 0, wherever |Σ Δ| is at least half of
// Σ|Δ|. That may make Σ|Δ| larger for once, at most 2α times; what is left then fades quickly.
//
// An iteration processes the nodes whose |Δ| is at least half the mean. What it leaves is below half of Σ|Δ|, so each
// iteration that keeps the length takes at least (1 - d)/2 off it, and works on a part of the edges once few nodes have
// much left to give. It is three clocks of the data-parallel schedule: in the first a worker processes its nodes, in
// the second it takes what its nodes are given, in the third it looks what a new length would leave. Where the last
// iteration worked on many edges a node pulls what it is given from all its in-edges; where on few, a worker writes
// messages for the owners of the targets, who add them up in the order of senders. Nothing that a unit writes is read
// by another in its clock. An engine node has the edges into its own graph nodes only; so others are not sent such
// messages, but told who gives how much to each of its targets.
#pragma once

#include "algorithms/pagerank_trainee.h"

namespace orrery::pagerank {

class DeltaTrainee final : public PageRankTrainee {
 public:
  static constexpr Clock kClocksPerIteration = 3;

  /// Turns the graph round: 4 bytes an edge that is here. Messages under way take 16 bytes for each edge of a processed
  /// node.
  DeltaTrainee(const Graph& graph, const PageRankParams& params);

  void run_unit(const WorkUnit& unit, UnitContext& context) override;
  Bytes pack_partial(Clock clock) override;
  void commit(Clock clock, std::span<const Bytes> partials) override;
  std::vector<double> ranks() const override;

  /// Whether the last iteration made the state longer or shorter.
  bool changed_length() const { return length_ != 1; }
  /// The left side of the law of mass above; 1 but for rounding.
  double conserved() const;

 protected:
  double residual_bound() const override;
  std::vector<double> save() const override;
  void load(std::span<const double> state) override;

 private:
  /// What a target is given; or by a source, to each of its targets.
  struct Message {
    std::uint32_t node;
    double value;
  };
  std::vector<Message>& outbox(WorkerId from, WorkerId to) {
    return outboxes_[std::size_t{from} * graph_.workers() + to];
  }
  /// A worker's sums over its nodes of the state made longer.
  struct Sums {
    double pending = 0, change = 0, mass = 0;  ///< Σ|Δ|, ΣΔ, Σv
  };
  static Sums add(const Sums& a, const Sums& b) {
    return {a.pending + b.pending, a.change + b.change, a.mass + b.mass};
  }
  void process(WorkerId worker);
  void turn_round();
  void send(WorkerId worker, std::uint32_t node, double share);
  std::span<const std::uint32_t> targets(std::uint32_t node) const {
    return std::span(targets_).subspan(out_begin_[node], out_begin_[node + std::size_t{1}] - out_begin_[node]);
  }
  void take_partial(Clock clock, NodeId from, std::span<const std::byte> partial);
  void receive(WorkerId worker);
  void receive_from_afar(WorkerId from, WorkerId worker);
  void sum_up(WorkerId worker);
  Sums all_sums() const;
  /// By what the last iteration worked on.
  void choose_way();
  /// The length for which ΣΔ becomes 0; 1 where that is not worth it.
  double length_without_change() const;
  double longer_value(std::uint32_t node) const { return length_ * value_[node]; }
  double longer_delta(std::uint32_t node) const;

  std::vector<std::uint64_t> out_begin_;  ///< nodes + 1
  std::vector<std::uint32_t> targets_;    ///< ascending for each node; those that are here
  std::vector<double> value_, delta_;
  std::vector<double> given_;                   ///< by node: to each of its targets in this iteration; when all pull
  std::vector<std::vector<Message>> outboxes_;  ///< by sender and receiver that are here; when some push
  std::vector<std::vector<Message>> givers_;    ///< by worker, for other engine nodes; when some push
  std::vector<Sums> worker_sums_;
  std::vector<double> worker_edges_;
  Sums sums_;
  double length_ = 1;           ///< α; the state is made that much longer when it is next processed
  double processed_edges_ = 0;  ///< in the last iteration
  bool all_pull_ = true;        ///< in this iteration
};

}  // namespace orrery::pagerank
