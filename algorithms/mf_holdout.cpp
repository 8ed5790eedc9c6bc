#include "algorithms/mf_holdout.h"

#include <algorithm>
#include <cmath>

#include "engine/data/id_map.h"
#include "engine/reduce.h"

namespace orrery::mf {

double Scaling::rating(double value) const {
  const double raw = mean + scale * value;
  return clip ? std::clamp<double>(raw, lowest, highest) : raw;
}

Holdout::Holdout(RatingStore&& ratings, const CellGrid& grid, const Scaling& scaling)
    : stripes_(grid.stripes()),
      blocks_(grid.blocks()),
      first_group_(grid.here().first * (grid.blocks() + 1)),
      count_(ratings.size()),
      scaling_(scaling) {
  const bool has_unseen = grid.here().last == stripes_;
  const std::size_t last = grid.here().last + (has_unseen ? 1 : 0);
  groups_.resize((last - grid.here().first) * (blocks_ + 1));
  const auto locate = [](const Axis& axis, std::uint32_t id) -> std::pair<std::size_t, std::uint32_t> {
    if (id == IdMap::kUnseen) return {axis.parts(), 0};
    const std::size_t part = axis.part[id];
    return {part, axis.internal[id] - axis.begin[part]};
  };
  for (std::size_t c = 0; c < ratings.chunks(); ++c) {
    for (const Rating& r : ratings.chunk(c)) {
      const auto [stripe, row] = locate(grid.rows(), r.user);
      const auto [block, column] = locate(grid.columns(), r.item);
      if (stripe < grid.here().first || stripe >= last) continue;
      Group& group = groups_[stripe * (blocks_ + 1) + block - first_group_];
      group.rows.push_back(row);
      group.columns.push_back(column);
      group.values.push_back(scaling_.value(r.value));
    }
    ratings.release(c);
  }
}

ErrorSums Holdout::measure_group(std::size_t g, const MfState& state, const Kernels& kernels) const {
  const std::size_t stripe = (first_group_ + g) / (blocks_ + 1), block = (first_group_ + g) % (blocks_ + 1);
  const bool row_known = stripe < stripes_, column_known = block < blocks_;
  const Group& group = groups_[g];
  const FactorRows rows = row_known ? state.stripe(stripe) : FactorRows{};
  const FactorRows columns = column_known ? state.block(static_cast<BlockId>(block)) : FactorRows{};
  if (row_known && column_known && !scaling_.clip) {
    ErrorSums sums = kernels.measure(group.rows.data(), group.columns.data(), group.values.data(), group.rows.size(),
                                     {rows.factors, rows.sides}, {columns.factors, columns.sides}, state.stride());
    sums.squares *= scaling_.scale * scaling_.scale;
    sums.absolute *= scaling_.scale;
    return sums;
  }
  ErrorSums sums;
  for (std::size_t i = 0; i < group.rows.size(); ++i) {
    double value = 0;
    if (row_known) value += double{rows.sides[group.rows[i]].bias};
    if (column_known) value += double{columns.sides[group.columns[i]].bias};
    if (row_known && column_known) {
      value += double{kernels.dot(rows.factors + group.rows[i] * state.stride(),
                                  columns.factors + group.columns[i] * state.stride(), state.stride())};
    }
    const double truth = scaling_.mean + scaling_.scale * double{group.values[i]};
    const double error = truth - scaling_.rating(value);
    sums.squares += error * error;
    sums.absolute += std::abs(error);
  }
  return sums;
}

ErrorSums Holdout::measure(const MfState& state, const Kernels& kernels, const ParallelFor& parallel,
                           const Collective& nodes) const {
  std::vector<ErrorSums> sums(groups_.size());
  parallel(groups_.size(), [&](std::size_t g) { sums[g] = measure_group(g, state, kernels); });
  sums = nodes.joined(std::move(sums));
  return tree_combine(std::span<ErrorSums>{sums}, [](const ErrorSums& a, const ErrorSums& b) {
    return ErrorSums{a.squares + b.squares, a.absolute + b.absolute};
  });
}

}  // namespace orrery::mf
