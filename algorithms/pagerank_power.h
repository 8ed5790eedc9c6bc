// PageRank by power iteration (Brin and Page, 1998): every node pulls the contributions rank/out-degree of the sources
// of its in-edges.
//
//   x'_v = ((1 - d) + d D(x))/n + d Σ over edges u → v of x_u/deg_u
//
// An iteration is one clock of the data-parallel schedule. A unit writes the ranks and next contributions of its own
// nodes and reads the contributions of the last clock, so units of a clock never meet. The change |x' - x|_1 is the
// residual of x, and bounds d times it the one of x'. Other engine nodes are told the contributions.
//
// Ranks and contributions are doubles: the time is that of finding the contributions in the cache, floats were no more
// than a tenth quicker on R-MAT of scale 20, and would end every race at a residual of 1e-7.
#pragma once

#include "algorithms/pagerank_trainee.h"

namespace orrery::pagerank {

class PowerTrainee final : public PageRankTrainee {
 public:
  PowerTrainee(const Graph& graph, const PageRankParams& params, const Topology& topology);

  void run_unit(const WorkUnit& unit, UnitContext& context) override;
  Bytes pack_partial(Clock clock) override;
  void commit(Clock clock, std::span<const Bytes> partials) override;
  std::vector<double> ranks() const override;

 protected:
  double residual_bound() const override { return change_ * scale(); }
  std::vector<double> save() const override;
  void load(std::span<const double> state) override;

 private:
  /// x is the solution where mass is redistributed; this many times x solves the wanted system.
  double scale() const;
  void take_partial(NodeId from, std::span<const std::byte> partial);
  void set_ranks(std::span<const double> ranks);
  double* contributions(std::size_t which) { return contributions_[which].as<double>().data(); }

  std::vector<double> rank_, share_;  ///< share: 1/out-degree, 0 for dangling nodes
  Buffer contributions_[2];           ///< of the last clock and of this one, by current_
  std::size_t current_ = 0;
  std::vector<double> worker_dangling_, worker_change_;
  double dangling_ = 0;
  double change_ = 2;  ///< of the last clock; before the first, the most that there can be
};

}  // namespace orrery::pagerank
