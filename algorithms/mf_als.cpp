#include "algorithms/mf_als.h"

#include <memory>
#include <span>

namespace orrery::mf {
namespace {

/// Where the ratings of each id of [first, last) begin when they lie one id after the other.
std::vector<std::uint64_t> begins(const Axis& axis, std::uint32_t first, std::uint32_t last) {
  std::vector<std::uint64_t> begin(last - first + std::size_t{1}, 0);
  for (std::uint32_t id = first; id < last; ++id) begin[id - first + 1] = begin[id - first] + axis.counts[id];
  return begin;
}

/// Hands out the places of a slice, id by id.
class SliceFiller {
 public:
  explicit SliceFiller(std::span<const std::uint64_t> begin) : next_(begin.begin(), begin.end() - 1) {}
  /// Where the next rating of the id, counted from the slice's first, belongs.
  std::uint64_t place(std::size_t id) { return next_[id]++; }

 private:
  std::vector<std::uint64_t> next_;
};

}  // namespace

AlsTrainee::AlsTrainee(const CellGrid& grid, MfState& state, const Holdout* holdout, const Scaling& scaling,
                       const Kernels& kernels)
    : MfTrainee(grid, state, holdout, scaling, kernels) {
  const auto locate = [](Half& half, const Axis& axis, std::size_t stride, const auto& part_of) {
    for (std::size_t part = 0; part < axis.parts(); ++part) {
      const FactorRows rows = part_of(part);
      for (std::size_t r = 0; r < axis.part_size(part); ++r) {
        half.factors.push_back(rows.factors + r * stride);
        half.sides.push_back(rows.sides + r);
      }
    }
  };
  locate(rows_, grid_.rows(), state_.stride(), [&](std::size_t part) { return state_.stripe(part); });
  locate(columns_, grid_.columns(), state_.stride(),
         [&](std::size_t part) { return state_.block(static_cast<BlockId>(part)); });
  cut_slices(rows_, grid_.rows());
  cut_slices(columns_, grid_.columns());
}

// A worker has its stripe, or its share of the blocks; slices of nearly equal work, ratings and solves counted.
void AlsTrainee::cut_slices(Half& half, const Axis& axis) const {
  const std::size_t workers = grid_.stripes(), parts_each = axis.parts() / workers;
  const std::uint64_t solve_work = state_.rank() / 3 + 1;  // a Cholesky costs about as much as that many ratings
  for (std::size_t w = 0; w < workers; ++w) {
    const std::uint32_t first = axis.begin[w * parts_each], last = axis.begin[(w + 1) * parts_each];
    const std::uint64_t all = begins(axis, first, last).back() + solve_work * (last - first);
    std::uint32_t id = first;
    std::uint64_t done = 0;
    for (std::uint32_t slice = 0; slice < kSlices; ++slice) {
      half.slices.push_back(id);
      while (id < last && done * kSlices < all * (slice + 1)) done += axis.counts[id++] + solve_work;
    }
  }
  half.slices.push_back(static_cast<std::uint32_t>(axis.size()));
}

AlsTrainee::Slice AlsTrainee::row_slice(std::size_t stripe, std::uint32_t first, std::uint32_t last) const {
  Slice slice{first, begins(grid_.rows(), first, last), {}, {}};
  slice.other.resize(slice.begin.back());
  slice.values.resize(slice.begin.back());
  SliceFiller filler(slice.begin);
  const std::uint32_t stripe_begin = grid_.rows().begin[stripe];
  for (std::size_t block = 0; block < grid_.blocks(); ++block) {
    const std::uint32_t block_begin = grid_.columns().begin[block];
    for_each_batch(grid_.cell(stripe, block), [&](std::uint32_t local, auto columns, auto values) {
      const std::uint32_t row = stripe_begin + local;
      if (row < first || row >= last) return;
      for (std::size_t i = 0; i < columns.size(); ++i) {
        const std::uint64_t place = filler.place(row - first);
        slice.other[place] = block_begin + columns[i];
        slice.values[place] = values[i];
      }
    });
  }
  return slice;
}

AlsTrainee::Slice AlsTrainee::column_slice(std::uint32_t first, std::uint32_t last) const {
  Slice slice{first, begins(grid_.columns(), first, last), {}, {}};
  slice.other.resize(slice.begin.back());
  slice.values.resize(slice.begin.back());
  SliceFiller filler(slice.begin);
  const std::vector<std::uint32_t>& blocks = grid_.columns().begin;
  for (std::size_t block = 0; block < grid_.blocks(); ++block) {
    if (blocks[block] >= last || blocks[block + 1] <= first) continue;
    for (std::size_t stripe = 0; stripe < grid_.stripes(); ++stripe) {
      const std::uint32_t stripe_begin = grid_.rows().begin[stripe];
      for_each_batch(grid_.cell(stripe, block), [&](std::uint32_t local, auto columns, auto values) {
        for (std::size_t i = 0; i < columns.size(); ++i) {
          const std::uint32_t column = blocks[block] + columns[i];
          if (column < first || column >= last) continue;
          const std::uint64_t place = filler.place(column - first);
          slice.other[place] = stripe_begin + local;
          slice.values[place] = values[i];
        }
      });
    }
  }
  return slice;
}

void AlsTrainee::run_unit(const WorkUnit& unit, UnitContext&) {
  const bool is_row_step = unit.clock % kClocksPerIteration == 0;
  const Half& mine = is_row_step ? rows_ : columns_;
  const std::size_t number = std::size_t{unit.worker} * kSlices + unit.step;
  const std::uint32_t first = mine.slices[number], last = mine.slices[number + 1];
  solve(is_row_step ? row_slice(unit.worker, first, last) : column_slice(first, last), mine,
        is_row_step ? columns_ : rows_);
}

void AlsTrainee::solve(const Slice& slice, const Half& mine, const Half& other) const {
  std::vector<const float*> others;
  std::vector<float> targets, memory(solve_scratch_floats(state_.stride()) + kRowAlignment);
  void* scratch = memory.data();
  std::size_t space = memory.size() * sizeof(float);
  std::align(64, solve_scratch_floats(state_.stride()) * sizeof(float), scratch, space);
  for (std::size_t i = 0; i + 1 < slice.begin.size(); ++i) {
    const std::uint64_t begin = slice.begin[i], end = slice.begin[i + 1];
    if (begin == end) continue;
    others.clear();
    targets.clear();
    for (std::uint64_t r = begin; r < end; ++r) {
      const std::uint32_t o = slice.other[r];
      others.push_back(other.factors[o]);
      targets.push_back(slice.values[r] - other.sides[o]->bias);
    }
    Side& side = *mine.sides[slice.first + i];
    const auto n = static_cast<float>(end - begin);
    kernels_.solve_row({others.data(), targets.data(), targets.size()}, state_.rank(), state_.stride(), n * side.decay,
                       n * side.bias_decay, static_cast<float*>(scratch), mine.factors[slice.first + i], &side.bias);
  }
}

}  // namespace orrery::mf
