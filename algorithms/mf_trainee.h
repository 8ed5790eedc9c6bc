// What all solvers of matrix factorisation share: how a state is evaluated, saved and kept as the best.
#pragma once

#include <vector>

#include "algorithms/mf_holdout.h"
#include "algorithms/mf_kernels.h"
#include "algorithms/mf_layout.h"
#include "algorithms/mf_state.h"
#include "engine/profile_source.h"
#include "engine/training.h"

namespace orrery::mf {

class MfTrainee : public Trainee, public ShowsBlocks {
 public:
  /// Borrows everything; the grid's values must be normalised as `scaling` says.
  MfTrainee(const CellGrid& grid, MfState& state, const Holdout* holdout, const Scaling& scaling,
            const Kernels& kernels);

  Evaluation evaluate(Engine& engine, bool exact) override;
  std::vector<StateSection> save_state() const override;
  void load_state(const std::vector<StateSection>& sections) override;
  void keep_best() override;
  void restore_best() override;
  std::size_t block_bytes(BlockId block) const override;

  /// Σ e² over the training ratings in rating units, exactly, for the state as it is. Cost: a pass over the data.
  double training_squares(const ParallelFor& parallel) const;

 protected:
  /// A cheap stand-in for training_squares() of the last clock, in rating units; solvers without one give the exact
  /// sum.
  virtual double seen_squares(const ParallelFor& parallel) const { return training_squares(parallel); }

  const CellGrid& grid_;
  MfState& state_;
  const Holdout* holdout_;
  const Scaling scaling_;
  const Kernels& kernels_;

 private:
  Bytes best_;
};

/// Σ λ n^p |w|² + κ b² over all rows and columns, in rating units: the second and third term of the objective.
double regularisation(const MfState& state, const CellGrid& grid, const Scaling& scaling, const ParallelFor& parallel);
/// Σ e² over one cell in normalised units. Scratch of 8 bytes a rating.
double cell_squares(const CellGrid& grid, std::size_t stripe, std::size_t block, const MfState& state,
                    const Kernels& kernels);

}  // namespace orrery::mf
