// Which columns have something to say: the gradients x̃_j·r/n, computed only where they may matter.
//
// A gradient moves by at most |x̃_j|/√n times as much as the residual does, so every coordinate has a deadline in units
// of residual movement: (threshold − |g_j|) √n/|x̃_j| from where it was last computed. Before it, the gradient is below
// the threshold for certain and is not looked at; the duality gap stays exact, for such a column is feasible. Columns
// lie in blocks of 64 with the earliest deadline of each, so a pass reads blocks that are due and one number of others.
//
// With the sphere test of the duality gap (Ndiaye, Fercoq, Gramfort and Salmon, JMLR 2017) a column that cannot be
// active at the minimum is left out as well, whatever its gradient.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/lasso_design.h"
#include "algorithms/lasso_gap.h"
#include "engine/collective.h"
#include "engine/message.h"
#include "engine/training.h"
#include "engine/types.h"

namespace orrery::lasso {

class Scores {
 public:
  /// Deals the columns to workers. Borrows the design.
  Scores(const Design& design, WorkerId workers);

  /// The gradients of worker's columns that may reach `due`, and of those whose coefficient is not 0. Workers may
  /// overlap: each writes its own. Cost: the columns that are due, and 1/64 of the others.
  void update(WorkerId worker, const Residual& residual, std::span<const double> coefficients, double due);

  /// What an update of these workers has come to, for other nodes, and taking it there.
  Bytes pack(WorkerId first, WorkerId last) const;
  void take(WorkerId first, WorkerId last, std::span<const std::byte> packed);

  /// Columns of the last update that reach `due` or are active, ascending by worker and column.
  const std::vector<std::uint32_t>& listed(WorkerId worker) const { return listed_[worker]; }
  WorkerId workers() const { return static_cast<WorkerId>(listed_.size()); }
  double gradient(std::uint32_t j) const { return gradient_[j]; }
  /// How many gradients have been computed so far.
  std::uint64_t computed() const;

  /// The residual has moved by so much, |r − r'| / √n, and these columns may have become active.
  void moved(double distance, std::span<const std::uint32_t> touched);
  /// From a certificate at the present residual: its scale, its gap. Columns that it proves to be 0 at the minimum stay
  /// out until the next call.
  void screen(double dual_scale, double gap, Penalty penalty);
  /// Nothing is proven any more (another penalty).
  void unscreen() { is_screened_ = 0; }

  /// Of several nodes each knows deadlines of its own columns: collective.
  void save(std::vector<StateSection>& sections, const Collective& nodes) const;
  void load(const std::vector<StateSection>& sections);

 private:
  bool may_matter(std::uint32_t j, double due) const;

  const Design& design_;
  std::vector<std::uint32_t> first_;  ///< by worker; whole blocks
  std::vector<std::vector<std::uint32_t>> listed_;
  std::vector<std::uint64_t> computed_;  ///< by worker
  std::vector<double> gradient_;
  std::vector<double> key_;  ///< |g| − norm · distance when it was computed: norm · distance below the bound of today
  std::vector<double> norm_;                       ///< |x̃_j| / √n
  std::vector<double> block_key_, block_norm_;     ///< the largest of a block
  double distance_ = 0;                            ///< that the residual has moved since the beginning
  double screen_distance_ = 0, screen_scale_ = 0;  ///< where a gap was certified, and the scale of its dual point
  double screen_radius_ = 0, screen_l1_ = 0, screen_l2_ = 0;
  std::uint8_t is_screened_ = 0;
};

}  // namespace orrery::lasso
