#include "engine/row_homes.h"

#include <cstddef>
#include <numeric>

#include "engine/assert.h"

namespace orrery {
namespace {

constexpr double kMostOfShare = 1.25;

std::vector<std::uint64_t> totals_of(std::span<const std::vector<std::uint32_t>> counts) {
  std::vector<std::uint64_t> totals(counts.front().size(), 0);
  for (const std::vector<std::uint32_t>& of_node : counts) {
    for (std::size_t row = 0; row < totals.size(); ++row) totals[row] += of_node[row];
  }
  return totals;
}

std::uint64_t most_of(std::uint64_t all, std::size_t nodes) {
  return static_cast<std::uint64_t>(kMostOfShare * static_cast<double>(all) / static_cast<double>(nodes)) + 1;
}

}  // namespace

std::vector<NodeId> home_by_use(std::span<const std::vector<std::uint32_t>> counts) {
  ORRERY_CHECK(!counts.empty());
  const std::size_t nodes = counts.size();
  const std::vector<std::uint64_t> totals = totals_of(counts);
  std::vector<std::uint32_t> order(totals.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](auto left, auto right) { return totals[left] > totals[right]; });
  const std::uint64_t most_accesses = most_of(std::accumulate(totals.begin(), totals.end(), std::uint64_t{0}), nodes);
  const std::uint64_t most_rows = most_of(totals.size(), nodes);
  std::vector<std::uint64_t> rows(nodes, 0), accesses(nodes, 0);
  std::vector<NodeId> home(totals.size());
  const auto least_rows = [&] { return std::min_element(rows.begin(), rows.end()) - rows.begin(); };
  for (const std::uint32_t row : order) {
    std::size_t best = 0;
    bool is_used = false;
    for (std::size_t node = 0; node < nodes; ++node) {
      if (counts[node][row] == 0 || rows[node] >= most_rows || accesses[node] >= most_accesses) continue;
      const auto used = counts[node][row], used_best = counts[best][row];
      if (!is_used || used > used_best || (used == used_best && accesses[node] < accesses[best])) best = node;
      is_used = true;
    }
    if (!is_used) best = static_cast<std::size_t>(least_rows());  // nobody that uses it has room
    home[row] = static_cast<NodeId>(best);
    ++rows[best];
    accesses[best] += totals[row];
  }
  return home;
}

}  // namespace orrery
