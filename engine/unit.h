// The atom of execution (design section 4): a unit says which blocks it must own and whose clock it belongs to. Because
// units are small and named, load balancing, checkpoints, traces and replay all speak of units and of nothing else.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/types.h"

namespace orrery {

/// One piece of work. Views point into the schedule's plan of that clock and live until the clock is finished.
struct WorkUnit {
  std::uint32_t index = 0;  ///< position in the serial order of its clock; partial results are combined in this order
  WorkerId worker = 0;      ///< whose clock it belongs to, wherever it runs
  Clock clock = 0;
  std::uint32_t step = 0;                ///< rotation: step within the clock; data parallel: slice; scheduled: bin
  std::uint32_t group = 0;               ///< hybrid: the group of nodes whose replica of the blocks it works on
  std::span<const BlockId> blocks;       ///< what it must own while it runs; empty for data-parallel units
  std::span<const std::uint32_t> items;  ///< scheduled: the coordinates of this bin; empty otherwise
};

/// Where a unit runs. Nothing in here may change a result.
struct UnitContext {
  DomainId domain = 0;  ///< the domain of the unit's worker; parameters should be read from this domain's memory
  WorkerId worker = 0;  ///< the unit's
  Clock clock = 0;      ///< the unit's
};

/// What a schedule hands over for one clock: the units of the whole cluster in serial order. Filled by add().
class ClockPlan {
 public:
  /// Appends a unit and numbers it. Cost: copies of the two id lists.
  void add(Clock clock, WorkerId worker, std::uint32_t step, std::uint32_t group, std::span<const BlockId> blocks,
           std::span<const std::uint32_t> items);
  void clear();
  std::size_t size() const noexcept { return entries_.size(); }
  /// The unit at `index`, with views into this plan: valid until the next add() or clear().
  WorkUnit unit(std::size_t index) const;

 private:
  struct Entry {
    Clock clock;
    WorkerId worker;
    std::uint32_t step, group;
    std::size_t first_block, blocks, first_item, items;
  };
  std::vector<Entry> entries_;
  std::vector<BlockId> blocks_;
  std::vector<std::uint32_t> items_;
};

/// A unit that ran, as a trace records it. A trace in order of completion is a serial order of the run.
struct UnitRecord {
  Clock clock = 0;
  std::uint32_t index = 0;
  WorkerId worker = 0;
  DomainId domain = 0;
  double start_seconds = 0, end_seconds = 0;  ///< since the executor was made
};

}  // namespace orrery
