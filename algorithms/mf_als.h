// Matrix factorisation by alternating least squares: the users are the exact minimiser for given items, then the items
// for given users (Zhou et al., AAIM 2008). No step size; the objective of mf_sgd.h never rises. For ranks up to about
// 32 it needs few iterations; its cost a rating grows with the square of the rank.
//
// An iteration is two clocks of the data-parallel schedule: in the first a worker solves the rows of its stripe, in the
// second the columns of its share of the blocks. Nothing that a unit writes is read by another unit of its clock, so
// there is no staleness to bound and slices may run together.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/mf_trainee.h"

namespace orrery::mf {

class AlsTrainee final : public MfTrainee {
 public:
  static constexpr Clock kClocksPerIteration = 2;
  static constexpr std::uint32_t kSlices = 4;  ///< of a worker's unit; for DataParallelSchedule

  /// Borrows everything; the penalties are those in the state's sides. Keeps the ratings by row and by column: 16 bytes
  /// a rating beside the grid. Cost: one pass over the grid for each.
  AlsTrainee(const CellGrid& grid, MfState& state, const Holdout* holdout, const Scaling& scaling,
             const Kernels& kernels, const ParallelFor& parallel);

  /// Scratch: 12 bytes for each rating of the row with the most, and about (rank + 80)² floats.
  void run_unit(const WorkUnit& unit, UnitContext& context) override;

 private:
  /// Rows or columns, by internal id, with their ratings.
  struct Half {
    std::vector<float*> factors;
    std::vector<Side*> sides;
    std::vector<std::uint64_t> begin;  ///< ids + 1
    std::vector<std::uint32_t> other;  ///< internal id on the other side
    std::vector<float> values;
    std::vector<std::uint32_t> slices;  ///< workers · kSlices + 1 ids
  };
  void collect(const ParallelFor& parallel);
  void cut_slices(Half& half, const Axis& axis) const;
  void solve(const Half& mine, const Half& other, std::uint32_t first, std::uint32_t last) const;

  Half rows_, columns_;
};

}  // namespace orrery::mf
