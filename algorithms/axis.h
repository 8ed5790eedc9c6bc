// How rows or columns of training data (users, items, documents, words) are dealt into stripes and blocks: balanced by
// weight, because units are balanced by what they have to do (design section 4, rotation). A function of the weights
// alone, never of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace orrery {

/// How one axis is dealt into contiguous parts of nearly equal weight.
struct Axis {
  std::vector<std::uint32_t> begin;     ///< parts + 1 entries; part p is the internal ids [begin[p], begin[p+1])
  std::vector<std::uint32_t> internal;  ///< external id -> internal id, a permutation
  std::vector<std::uint32_t> part;      ///< external id -> part
  std::vector<std::uint32_t> counts;    ///< internal id -> weight

  std::size_t size() const noexcept { return internal.size(); }
  std::size_t parts() const noexcept { return begin.size() - 1; }
  std::size_t part_size(std::size_t p) const { return begin[p + 1] - begin[p]; }
};

/// Deals ids into `parts` parts, heaviest first, each to the lightest part so far (LPT: R. Graham
/// 1969); a part takes at most twice its share of ids, and never more than `max_part_size`. So the heaviest part has at
/// most max(average + largest count, what its cap forces); within a part heavy ids come first, which keeps hot rows
/// together in the cache. Requires parts >= 1 and parts * max_part_size >= counts.size(). Cost: O(n log parts).
Axis deal_axis(std::span<const std::uint32_t> counts, std::size_t parts, std::size_t max_part_size);

}  // namespace orrery
