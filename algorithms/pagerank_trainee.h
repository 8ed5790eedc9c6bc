// The equations of PageRank and what both methods share: how a state is scaled, measured, saved.
//
// With damping d, n nodes and P the matrix that sends the rank of a node in equal parts along its out-edges:
//
//   drop          x = (1 - d)/n 1 + d P x                      rank that reaches a dangling node is lost
//   redistribute  x = (1 - d)/n 1 + d P x + d D(x)/n 1         D(x): rank of the dangling nodes; Σ x = 1
//
// Both right sides are a multiple of 1 plus d P x, so both solutions are multiples of (I - d P)^-1 1: solving one
// solves the other. The methods therefore solve the one that suits them, and scaling to the wanted one is the last
// step. That is no trifle: iterating the dropped system itself has to wait for its lost mass, at rate d times the
// largest eigenvalue of P (0.84 on R-MAT, 53 iterations to 1e-6), while in the other one mass is right from the start
// (9).
//
// The measure is the L1 residual r = |F(x) - x|_1 of the scaled x in its own system; |x - solution|_1 <= r/(1 - d),
// because F contracts by d in the L1 norm (Kamvar et al., WWW 2003).
//
// On several engine nodes each keeps the in-edges of its workers' graph nodes. After a clock they tell each other, as
// the partial of that clock, what others read of it: a number for each graph node, and the workers' sums.
#pragma once

#include <utility>
#include <vector>

#include "algorithms/pagerank.h"
#include "algorithms/pagerank_graph.h"
#include "engine/collective.h"
#include "engine/training.h"

namespace orrery::pagerank {

/// A vector of ranks in its own system, by internal node. `mass` is Σ x, `dangling` the share of it on dangling nodes.
struct Residual {
  double l1 = 0, mass = 0, dangling = 0;
};
/// |F(x) - x|_1 by a pass over the edges; sums follow the workers' tree. Collective; every engine node gives all ranks.
Residual residual(const Graph& graph, const std::vector<double>& ranks, double damping, Dangling dangling,
                  const ParallelFor& parallel, const Collective& nodes = {});

class PageRankTrainee : public Trainee {
 public:
  /// Borrows the graph.
  PageRankTrainee(const Graph& graph, const PageRankParams& params) : graph_(graph), params_(params) {}

  void join(const Collective& nodes) override { nodes_ = nodes; }
  /// `objective` is the L1 residual of the state, or between clocks a bound of it that costs nothing.
  Evaluation evaluate(Engine& engine, bool exact) override;
  void load_state(const std::vector<StateSection>& sections) override;
  std::vector<StateSection> save_state() const override;
  void keep_best() override { best_ = whole_state(); }
  void restore_best() override { load(best_); }

  /// The ranks as the wanted system has them, by internal node. On several engine nodes: those of a state that was
  /// loaded or exactly evaluated since the last clock.
  virtual std::vector<double> ranks() const = 0;

 protected:
  /// A bound of residual(ranks()) that the last clock came by.
  virtual double residual_bound() const = 0;
  /// Arrays with a value for each graph node, and one number. On several engine nodes only what their workers have.
  virtual std::vector<double> save() const = 0;
  /// `state` has the length that save() gave.
  virtual void load(std::span<const double> state) = 0;

  bool is_alone() const { return graph_.map().nodes() == 1; }
  /// Graph nodes [first, second) are those of the workers of an engine node.
  std::pair<std::uint32_t, std::uint32_t> nodes_of(NodeId node) const;

  const Graph& graph_;
  const PageRankParams params_;

 private:
  /// save() with what all engine nodes have. Collective.
  std::vector<double> whole_state() const;

  Collective nodes_;
  std::vector<double> best_;
};

}  // namespace orrery::pagerank
