// Matrix factorisation by stochastic gradient descent under rotation.
//
//   minimise  Σ_(u,i) (r_ui − μ − b_u − b_i − w_u·h_i)²  +  Σ_u (λ n_u^p |w_u|² + κ b_u²)  +  Σ_i (λ n_i^p |h_i|² + κ
//   b_i²)
//
// A unit trains the ratings of one stripe of users and one block of items (mf_kernels.h has the update). Units that run
// at the same time share neither users nor items, and the grid's chains fix the order in which each user and each item
// is visited; so a run equals a serial one, bit for bit (Gemulla et al., KDD 2011; Yun et al., VLDB 2014). On several
// nodes users stay with theirs and blocks of items travel between them; at a cut every node gets all items.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/mf_guest_cells.h"
#include "algorithms/mf_trainee.h"

namespace orrery::mf {

/// The step of a clock: rate · (1 − decay)^clock for a row that has seen no error, shrinking with its errors by `gain`.
/// A decay that forgets the step after some tens of clocks makes more iterations harmless: the model stands still.
struct SgdRule {
  double rate = 0.12;
  double decay = 0.2;
  double gain = 0.01;
  StepRule at(Clock clock) const;
};
/// Fewer ratings a row mean fewer steps a clock, so more clocks until the model stands: the decay for data where a row
/// or column has `ratings_per_row` on average.
double decay_for(double decay, double ratings_per_row);

class SgdTrainee final : public MfTrainee {
 public:
  SgdTrainee(const CellGrid& grid, MfState& state, const Holdout* holdout, const Scaling& scaling, const SgdRule& rule,
             const Kernels& kernels);

  void run_unit(const WorkUnit& unit, UnitContext& context) override;
  Bytes pack_block(BlockId block, std::uint32_t group) override;
  void unpack_block(BlockId block, std::uint32_t group, std::span<const std::byte> bytes) override;

  bool lends() const override { return true; }
  Bytes pack_unit(const WorkUnit& unit, NodeId helper) override;
  Bytes run_guest(const WorkUnit& unit, std::span<const std::byte> packed, UnitContext& context) override;
  void take_unit(const WorkUnit& unit, std::span<const std::byte> wrote) override;

  /// The blocks whose last visitor was here. From then on all nodes have them, until somebody visits them again: their
  /// next message carries the right to the block and nothing else.
  bool shares_state() const override { return true; }
  Bytes share_state() const override;
  void take_share(NodeId from, std::span<const std::byte> share) override;

 private:
  double seen_squares(const ParallelFor& parallel) const override;

  const SgdRule rule_;
  GuestCells guests_;
  std::vector<double> seen_;  ///< by cell: Σ e² of its last visit, each error as it was before its step
  /// By block, its owner's: it is here as its last visitor left it, and that was after the last cut.
  std::vector<std::uint8_t> visited_;
};

}  // namespace orrery::mf
