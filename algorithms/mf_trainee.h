// What all solvers of matrix factorisation share: how a state is evaluated, saved and kept as the best. Of several
// nodes each has the ratings and factors of its own workers' rows; sums over cells are joined in the order of stripes,
// so they are those of one node.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "algorithms/mf_holdout.h"
#include "algorithms/mf_kernels.h"
#include "algorithms/mf_layout.h"
#include "algorithms/mf_seen.h"
#include "algorithms/mf_state.h"
#include "engine/collective.h"
#include "engine/profile_source.h"
#include "engine/training.h"

namespace orrery::mf {

class MfTrainee : public Trainee, public ShowsBlocks {
 public:
  /// Borrows everything; the grid's values must be normalised as `scaling` says.
  MfTrainee(const CellGrid& grid, MfState& state, const Holdout* holdout, const Scaling& scaling,
            const Kernels& kernels);

  /// What only training knows for a model: the items that each row rated are kept for it too.
  void keep_seen() { keeps_seen_ = true; }
  /// Those of other nodes' rows, once the model was collected.
  const FarSeen& far_seen() const noexcept { return far_seen_; }

  void join(const Collective& nodes) override { nodes_ = nodes; }
  Evaluation evaluate(Engine& engine, bool exact) override;
  std::vector<StateSection> save_state() const override;
  void load_state(const std::vector<StateSection>& sections) override;
  void keep_best() override;
  void restore_best() override;
  void collect_model(Engine& engine) override;
  std::size_t block_bytes(BlockId block) const override;

  /// Σ e² over the training ratings in rating units, exactly, for the state as it is. Collective. Cost: a pass over the
  /// data.
  double training_squares(const ParallelFor& parallel) const;

 protected:
  /// A cheap stand-in for training_squares() of the last clock, in rating units; solvers without one give the exact
  /// sum.
  virtual double seen_squares(const ParallelFor& parallel) const { return training_squares(parallel); }
  /// The sum over all cells of normalised squares, in rating units, from those of the cells that are here. Collective.
  double sum_of_cells(std::vector<double> here) const;
  /// The same from an array for all cells, of which those that are here count.
  double sum_of_cells_here(const std::vector<double>& all) const;
  /// The cells that are here are numbers [first, second) of all, stripe by stripe.
  std::pair<std::size_t, std::size_t> cells_here() const;

  const CellGrid& grid_;
  MfState& state_;
  const Holdout* holdout_;
  const Scaling scaling_;
  const Kernels& kernels_;

 private:
  /// At the first node what all nodes have; collective.
  Bytes whole(const MfState::Saved& here) const;

  Collective nodes_;
  std::optional<MfState::Saved> best_;
  bool keeps_seen_ = false;
  FarSeen far_seen_;
};

/// Σ λ n^p |w|² + κ b² over all rows and columns, in rating units: the second and third term of the objective.
/// Collective.
double regularisation(const MfState& state, const CellGrid& grid, const Scaling& scaling, const ParallelFor& parallel,
                      const Collective& nodes);
/// Σ e² over one cell in normalised units. Scratch of 8 bytes a rating.
double cell_squares(const CellGrid& grid, std::size_t stripe, std::size_t block, const MfState& state,
                    const Kernels& kernels);

}  // namespace orrery::mf
