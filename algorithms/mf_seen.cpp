#include "algorithms/mf_seen.h"

#include <numeric>

#include "engine/assert.h"
#include "engine/wire.h"

namespace orrery::mf {
namespace {

std::vector<std::uint32_t> external_ids(const Axis& axis) {
  std::vector<std::uint32_t> external(axis.size());
  for (std::uint32_t id = 0; id < axis.size(); ++id) external[axis.internal[id]] = id;
  return external;
}

struct Seen {
  std::uint32_t row;   ///< in its stripe
  std::uint32_t item;  ///< external id
};

/// The ratings of a stripe by ascending item: one counting pass instead of a sort for each user.
std::vector<Seen> by_item(const CellGrid& grid, std::size_t stripe, std::span<const std::uint32_t> item_ids) {
  const auto visit_all = [&](const auto& visit) {
    for (std::size_t block = 0; block < grid.blocks(); ++block) {
      const std::uint32_t begin = grid.columns().begin[block];
      for_each_batch(grid.cell(stripe, block), [&](std::uint32_t row, auto columns, auto) {
        for (const std::uint16_t column : columns) visit(row, item_ids[begin + column]);
      });
    }
  };
  std::vector<std::uint64_t> next(item_ids.size() + 1, 0);
  visit_all([&](std::uint32_t, std::uint32_t item) { ++next[item + 1]; });
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<Seen> sorted(next.back());
  visit_all([&](std::uint32_t row, std::uint32_t item) { sorted[next[item]++] = {row, item}; });
  return sorted;
}

/// Where the list of each row of a stripe begins when they stand one after the other; one entry more than rows.
std::vector<std::uint64_t> begins(const Axis& rows, std::size_t stripe) {
  std::vector<std::uint64_t> begin(rows.part_size(stripe) + 1, 0);
  for (std::size_t r = 0; r + 1 < begin.size(); ++r) begin[r + 1] = begin[r] + rows.counts[rows.begin[stripe] + r];
  return begin;
}

std::vector<std::int32_t> seen_of(const CellGrid& grid, std::size_t stripe, std::span<const std::uint32_t> item_ids) {
  std::vector<std::uint64_t> next = begins(grid.rows(), stripe);
  std::vector<std::int32_t> items(next.back());
  for (const Seen& seen : by_item(grid, stripe, item_ids)) {
    items[next[seen.row]++] = static_cast<std::int32_t>(seen.item);
  }
  return items;
}

}  // namespace

FarSeen collect_seen(const CellGrid& grid, const Collective& nodes) {
  const std::vector<std::uint32_t> item_ids = external_ids(grid.columns());
  Bytes mine;
  for (std::size_t stripe = grid.here().first; !nodes.is_first() && stripe < grid.here().last; ++stripe) {
    put_all(mine, std::span<const std::int32_t>(seen_of(grid, stripe, item_ids)));
  }
  const std::vector<Bytes> all = nodes.to_first(std::move(mine));
  FarSeen far;
  if (!nodes.is_first()) return far;
  far.resize(grid.stripes());
  std::size_t stripe = grid.here().last;
  for (NodeId node = 1; node < all.size(); ++node) {
    for (WireReader in(all[node]); !in.empty(); ++stripe) {
      // A stripe without ratings adds nothing to the bytes, so it is passed over wherever it stands.
      while (begins(grid.rows(), stripe).back() == 0) ++stripe;
      far[stripe].resize(begins(grid.rows(), stripe).back());
      in.take_all(std::span(far[stripe]));
    }
  }
  return far;
}

std::vector<std::int32_t> seen_items(const CellGrid& grid, const FarSeen& far, std::span<const std::int64_t> begin,
                                     const ParallelFor& parallel) {
  const Axis& rows = grid.rows();
  const std::vector<std::uint32_t> user_ids = external_ids(rows), item_ids = external_ids(grid.columns());
  std::vector<std::int32_t> items(static_cast<std::size_t>(begin.back()));
  parallel(grid.stripes(), [&](std::size_t stripe) {
    const std::uint32_t first = rows.begin[stripe];
    if (grid.here().holds(stripe)) {
      std::vector<std::int64_t> next(rows.part_size(stripe));
      for (std::size_t r = 0; r < next.size(); ++r) next[r] = begin[user_ids[first + r]];
      for (const Seen& seen : by_item(grid, stripe, item_ids)) {
        items[static_cast<std::size_t>(next[seen.row]++)] = static_cast<std::int32_t>(seen.item);
      }
      return;
    }
    auto from = far[stripe].begin();
    for (std::size_t r = 0; r < rows.part_size(stripe); ++r) {
      const auto count = static_cast<std::ptrdiff_t>(rows.counts[first + r]);
      std::copy_n(from, count, items.begin() + begin[user_ids[first + r]]);
      from += count;
    }
  });
  return items;
}

}  // namespace orrery::mf
