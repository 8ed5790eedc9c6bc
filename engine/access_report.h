// What recorded accesses say (design section 6): which rows are touched by whom, how soon again, and what must cross
// domains. Pure functions from records to numbers, for the profiler; nothing here is asked while a training runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/access_recorder.h"
#include "engine/clock.h"
#include "engine/types.h"

namespace orrery {

/// The accesses of one node's workers to one table; `workers` in order, from the node's first.
struct RecordedTable {
  std::uint32_t rows = 0;
  std::vector<const AccessRecorder*> workers;
};

/// Rows by who adds to them: what decides how the engine serves them.
enum class RowClass : std::uint8_t { only_read, one_writer, several_writers };
inline constexpr std::size_t kRowClasses = 3;

struct AccessSum {
  std::uint64_t rows = 0;  ///< touched at all
  std::uint64_t reads = 0, adds = 0;
  std::uint64_t accesses() const noexcept { return reads + adds; }
};

struct HotRow {
  std::uint32_t row = 0;
  std::uint64_t reads = 0, adds = 0;
  std::uint32_t workers = 0, writers = 0, domains = 0;  ///< that touch it, that add to it
};

/// Who touches what, over all recorded clocks.
struct TableUse {
  AccessSum all;
  std::vector<AccessSum> by_worker;        ///< from the node's first
  std::vector<HotRow> hot;                 ///< those with the most accesses, most first, ties by row
  std::vector<AccessSum> by_worker_count;  ///< [k]: rows that k workers touch, [0]: rows that nobody does
  std::vector<AccessSum> by_domain_count;
  std::array<AccessSum, kRowClasses> by_class;
  std::array<std::uint64_t, kRowClasses> slots{};  ///< pairs of a row and a worker that adds to it
};
/// `hot_rows`: how many of those. Cost: a pass over the records, some 30 bytes for each row of the table.
TableUse use_of(const RecordedTable& table, const WorkerMap& map, std::size_t hot_rows);

/// How much of what a worker did in `iteration` (of `clocks` clocks, from `start`) it had done in the first one.
struct Repetition {
  std::uint64_t accesses = 0;    ///< of that iteration
  std::uint64_t known = 0;       ///< of a kind to a row that the first one had too
  std::uint64_t same_place = 0;  ///< and at the same position of the order
};
Repetition repetition_of(const RecordedTable& table, Clock start, Clock clocks, Clock iteration);

/// LRU stack distances: between two accesses of a worker to a row, how many other rows it touched. A cache of its own
/// for n rows serves exactly the accesses with a distance below n (Mattson et al. 1970).
struct Reuse {
  std::uint64_t accesses = 0;            ///< looked at
  std::uint64_t recorded = 0;            ///< there were
  std::uint64_t first_touches = 0;       ///< without an earlier access
  std::vector<std::uint64_t> by_log2;    ///< [0]: distance 0; [k]: distances in [2^(k-1), 2^k)
  std::vector<std::uint64_t> served_by;  ///< by capacity: accesses that a cache of so many rows serves
};
/// Exact for the first accesses of each worker, `most` of all together. `capacities`: in rows. Cost: O(n log n) time,
/// 4 bytes for each access and each row of the table (Bennett and Kruskal 1975).
Reuse reuse_of(const RecordedTable& table, std::span<const std::uint64_t> capacities, std::size_t most);

/// What one clock's updates move between the domains of a node, counted from the records.
struct CrossDomain {
  Clock clock = 0;
  std::uint64_t updates = 0;  ///< rows added to, by all workers together
  std::uint64_t moved = 0;    ///< updates of a row that cross
  std::uint64_t least = 0;    ///< under the fixed tree, if only domains that touch a row kept it
};
/// Settled: sums of a row meet where its first writer is, and the total goes to every other domain. `versioned`: each
/// writer's batch goes to every other domain. The least: complete subtrees' sums to the first writer's domain, and the
/// total to each other domain that touches the row.
std::vector<CrossDomain> cross_domain(const RecordedTable& table, const WorkerMap& map, bool versioned);

}  // namespace orrery
