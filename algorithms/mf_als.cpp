#include "algorithms/mf_als.h"

#include <memory>

namespace orrery::mf {
namespace {

/// Visits the ratings of a cell: visit(row in the stripe, column in the block, value).
template <class Visit>
void for_each_rating(const Cell& cell, Visit&& visit) {
  std::size_t batch = 0, rating = 0;
  for (std::size_t n = kMaxBatch; n >= 1; --n) {
    for (std::uint32_t b = 0; b < cell.batches[n - 1]; ++b, ++batch) {
      for (std::size_t i = 0; i < n; ++i, ++rating) visit(cell.rows[batch], cell.columns[rating], cell.values[rating]);
    }
  }
}

}  // namespace

AlsTrainee::AlsTrainee(const CellGrid& grid, MfState& state, const Holdout* holdout, const Scaling& scaling,
                       const Kernels& kernels, const ParallelFor& parallel)
    : MfTrainee(grid, state, holdout, scaling, kernels) {
  const auto locate = [](Half& half, const Axis& axis, std::size_t stride, const auto& part_of) {
    for (std::size_t part = 0; part < axis.parts(); ++part) {
      const FactorRows rows = part_of(part);
      for (std::size_t r = 0; r < axis.part_size(part); ++r) {
        half.factors.push_back(rows.factors + r * stride);
        half.sides.push_back(rows.sides + r);
      }
    }
    half.begin.assign(axis.size() + 1, 0);
    for (std::size_t id = 0; id < axis.size(); ++id) half.begin[id + 1] = half.begin[id] + axis.counts[id];
    half.other.resize(half.begin.back());
    half.values.resize(half.begin.back());
  };
  locate(rows_, grid_.rows(), state_.stride(), [&](std::size_t part) { return state_.stripe(part); });
  locate(columns_, grid_.columns(), state_.stride(),
         [&](std::size_t part) { return state_.block(static_cast<BlockId>(part)); });
  collect(parallel);
  cut_slices(rows_, grid_.rows());
  cut_slices(columns_, grid_.columns());
}

void AlsTrainee::collect(const ParallelFor& parallel) {
  const Axis& rows = grid_.rows();
  const Axis& columns = grid_.columns();
  const auto put = [](Half& half, std::vector<std::uint64_t>& next, std::size_t mine, std::uint32_t other,
                      float value) {
    half.other[next[mine]] = other;
    half.values[next[mine]++] = value;
  };
  std::vector<std::uint64_t> next(rows_.begin.begin(), rows_.begin.end() - 1);
  parallel(grid_.stripes(), [&](std::size_t stripe) {
    for (std::size_t block = 0; block < grid_.blocks(); ++block) {
      for_each_rating(grid_.cell(stripe, block), [&](std::uint32_t row, std::uint32_t column, float value) {
        put(rows_, next, rows.begin[stripe] + row, columns.begin[block] + column, value);
      });
    }
  });
  next.assign(columns_.begin.begin(), columns_.begin.end() - 1);
  parallel(grid_.blocks(), [&](std::size_t block) {
    for (std::size_t stripe = 0; stripe < grid_.stripes(); ++stripe) {
      for_each_rating(grid_.cell(stripe, block), [&](std::uint32_t row, std::uint32_t column, float value) {
        put(columns_, next, columns.begin[block] + column, rows.begin[stripe] + row, value);
      });
    }
  });
}

// A worker has its stripe, or its share of the blocks; slices of nearly equal work, ratings and solves counted.
void AlsTrainee::cut_slices(Half& half, const Axis& axis) const {
  const std::size_t workers = grid_.stripes(), parts_each = axis.parts() / workers;
  const std::uint64_t solve_work = state_.rank() / 3 + 1;  // a Cholesky costs about as much as that many ratings
  for (std::size_t w = 0; w < workers; ++w) {
    const std::uint32_t first = axis.begin[w * parts_each], last = axis.begin[(w + 1) * parts_each];
    const std::uint64_t all = half.begin[last] - half.begin[first] + solve_work * (last - first);
    std::uint32_t id = first;
    for (std::uint32_t slice = 0; slice < kSlices; ++slice) {
      half.slices.push_back(id);
      const auto done = [&] { return half.begin[id] - half.begin[first] + solve_work * (id - first); };
      while (id < last && done() * kSlices < all * (slice + 1)) ++id;
    }
  }
  half.slices.push_back(static_cast<std::uint32_t>(axis.size()));
}

void AlsTrainee::run_unit(const WorkUnit& unit, UnitContext&) {
  const bool is_row_step = unit.clock % kClocksPerIteration == 0;
  const Half& mine = is_row_step ? rows_ : columns_;
  const std::size_t slice = std::size_t{unit.worker} * kSlices + unit.step;
  solve(mine, is_row_step ? columns_ : rows_, mine.slices[slice], mine.slices[slice + 1]);
}

void AlsTrainee::solve(const Half& mine, const Half& other, std::uint32_t first, std::uint32_t last) const {
  std::vector<const float*> others;
  std::vector<float> targets, memory(solve_scratch_floats(state_.stride()) + kRowAlignment);
  void* scratch = memory.data();
  std::size_t space = memory.size() * sizeof(float);
  std::align(64, solve_scratch_floats(state_.stride()) * sizeof(float), scratch, space);
  for (std::uint32_t id = first; id < last; ++id) {
    const std::uint64_t begin = mine.begin[id], end = mine.begin[id + 1];
    if (begin == end) continue;
    others.clear();
    targets.clear();
    for (std::uint64_t r = begin; r < end; ++r) {
      const std::uint32_t o = mine.other[r];
      others.push_back(other.factors[o]);
      targets.push_back(mine.values[r] - other.sides[o]->bias);
    }
    Side& side = *mine.sides[id];
    const auto n = static_cast<float>(end - begin);
    kernels_.solve_row({others.data(), targets.data(), targets.size()}, state_.rank(), state_.stride(), n * side.decay,
                       n * side.bias_decay, static_cast<float*>(scratch), mine.factors[id], &side.bias);
  }
}

}  // namespace orrery::mf
