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

  /// Borrows everything; the penalties are those in the state's sides.
  AlsTrainee(const CellGrid& grid, MfState& state, const Holdout* holdout, const Scaling& scaling,
             const Kernels& kernels);

  /// Scratch: 8 bytes for each rating of the slice, which are sorted out of the grid (a pass over the worker's part
  /// of it, little beside the solves); 12 for each of the row with the most; and about (rank + 80)² floats.
  void run_unit(const WorkUnit& unit, UnitContext& context) override;

 private:
  /// Rows or columns, by internal id.
  struct Half {
    std::vector<float*> factors;
    std::vector<Side*> sides;
    std::vector<std::uint32_t> slices;  ///< workers · kSlices + 1 ids
  };
  /// The ratings of the ids [first, last), each one's together, in the order of blocks or stripes.
  struct Slice {
    std::uint32_t first = 0;
    std::vector<std::uint64_t> begin;  ///< ids + 1
    std::vector<std::uint32_t> other;  ///< internal id on the other side
    std::vector<float> values;
  };
  void cut_slices(Half& half, const Axis& axis) const;
  Slice row_slice(std::size_t stripe, std::uint32_t first, std::uint32_t last) const;
  Slice column_slice(std::uint32_t first, std::uint32_t last) const;
  void solve(const Slice& slice, const Half& mine, const Half& other) const;

  Half rows_, columns_;
};

}  // namespace orrery::mf
