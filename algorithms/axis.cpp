#include "algorithms/axis.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>

#include "engine/assert.h"

namespace orrery {
namespace {

/// Ids by falling count, equal counts by rising id: least-significant-digit radix sort on the complement.
std::vector<std::uint32_t> by_falling_count(std::span<const std::uint32_t> counts) {
  constexpr unsigned kBits = 11;
  std::vector<std::uint32_t> order(counts.size()), next(counts.size());
  std::iota(order.begin(), order.end(), 0U);
  const std::uint32_t most = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  std::vector<std::size_t> start((std::size_t{1} << kBits) + 1);
  for (unsigned shift = 0; shift < 32 && (most >> shift) != 0; shift += kBits) {
    const auto digit = [&](std::uint32_t id) { return ((most - counts[id]) >> shift) & ((1U << kBits) - 1); };
    std::fill(start.begin(), start.end(), 0);
    for (const std::uint32_t id : order) ++start[digit(id) + 1];
    std::partial_sum(start.begin(), start.end(), start.begin());
    for (const std::uint32_t id : order) next[start[digit(id)]++] = id;
    order.swap(next);
  }
  return order;
}

}  // namespace

Axis deal_axis(std::span<const std::uint32_t> counts, std::size_t parts, std::size_t max_part_size) {
  ORRERY_CHECK(parts >= 1 && parts * max_part_size >= counts.size());
  const std::size_t cap = std::min(max_part_size, 2 * ((counts.size() + parts - 1) / parts));
  struct Load {
    std::uint64_t ratings;
    std::uint32_t ids, part;
    bool operator>(const Load& o) const { return std::tie(ratings, ids, part) > std::tie(o.ratings, o.ids, o.part); }
  };
  std::priority_queue<Load, std::vector<Load>, std::greater<>> lightest;
  for (std::uint32_t p = 0; p < parts; ++p) lightest.push({0, 0, p});
  const std::vector<std::uint32_t> order = by_falling_count(counts);
  Axis axis;
  axis.part.resize(counts.size());
  axis.begin.assign(parts + 1, 0);
  for (const std::uint32_t id : order) {
    Load load = lightest.top();
    lightest.pop();
    axis.part[id] = load.part;
    ++axis.begin[load.part + 1];
    load.ratings += counts[id];
    if (++load.ids < cap) lightest.push(load);
  }
  std::partial_sum(axis.begin.begin(), axis.begin.end(), axis.begin.begin());
  std::vector<std::uint32_t> next(axis.begin.begin(), axis.begin.end() - 1);
  axis.internal.resize(counts.size());
  axis.counts.resize(counts.size());
  for (const std::uint32_t id : order) {
    axis.internal[id] = next[axis.part[id]]++;
    axis.counts[axis.internal[id]] = counts[id];
  }
  return axis;
}

}  // namespace orrery
