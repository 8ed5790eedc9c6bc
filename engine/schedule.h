// Schedules produce units (design section 4). Data parallelism, scheduled model parallelism, rotation and hybrid are
// the same machine fed by different plans: a plan lists the units of one clock of the whole cluster in serial order,
// and the executor derives from it what each unit waits for.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/types.h"
#include "engine/unit.h"

namespace orrery {

class Schedule {
 public:
  virtual ~Schedule() = default;
  /// Appends the units of `clock`, of all workers of all nodes, in serial order. Must be a function of what all nodes
  /// agree on (seed, clock, state committed for earlier clocks), so that every node makes the same plan. Every worker
  /// must get at least one unit. Called once for every clock, in order; overlaps units at staleness > 0.
  virtual void plan(Clock clock, ClockPlan& out) = 0;
  /// True when units of one worker run one at a time in plan order; false when they are slices that may run together.
  virtual bool chained() const = 0;
  /// Blocks have ids in [0, blocks()).
  virtual BlockId blocks() const { return 0; }
  /// Groups have ids in [0, groups()); each has its own replica of the blocks.
  virtual std::uint32_t groups() const { return 1; }
  virtual const char* name() const = 0;
};

/// One unit of each worker and clock, cut into `slices` that may run at the same time. No blocks.
class DataParallelSchedule final : public Schedule {
 public:
  /// slices[w] >= 1: into how many slices worker w's work is cut; its size is the number of workers.
  explicit DataParallelSchedule(std::vector<std::uint32_t> slices);
  void plan(Clock clock, ClockPlan& out) override;
  bool chained() const override { return false; }
  const char* name() const override { return "data"; }

 private:
  std::vector<std::uint32_t> slices_;
};

/// W workers, B = m·W column blocks. A step is one unit of each worker; B steps are one clock, in which every worker
/// sees every block once. Blocks go round a ring of the workers and pass `m` steps between two owners, so that one may
/// travel while the next is worked on. Ring and block order are drawn anew for each clock from (seed, clock): Gemulla
/// et al. 2011 (strata) with the ring of STRADS and Orion. Workers with neighbouring numbers stay neighbours on the
/// ring, in halves, quarters and so on whose order is drawn: of N nodes that have as many workers each, N a power of
/// two, N of the W passes of a block within a clock lead to another node. Serialisable: concurrent units share neither
/// stripe nor block.
class RotationSchedule final : public Schedule {
 public:
  /// Requires blocks to be a multiple of workers.
  RotationSchedule(WorkerId workers, BlockId blocks, std::uint64_t seed);
  void plan(Clock clock, ClockPlan& out) override;
  bool chained() const override { return true; }
  BlockId blocks() const override { return blocks_; }
  const char* name() const override { return "rotation"; }

 private:
  WorkerId workers_;
  BlockId blocks_;
  std::uint64_t seed_;
};

/// Groups of workers; each group rotates its own replica of the blocks among its workers. What travels between groups
/// (the deltas of the blocks) is the program's partial of the clock.
class HybridSchedule final : public Schedule {
 public:
  /// Worker w is in group w·groups/workers. Requires workers to be a multiple of groups and blocks of workers/groups.
  HybridSchedule(WorkerId workers, std::uint32_t groups, BlockId blocks, std::uint64_t seed);
  void plan(Clock clock, ClockPlan& out) override;
  bool chained() const override { return true; }
  BlockId blocks() const override { return blocks_; }
  std::uint32_t groups() const override { return groups_; }
  const char* name() const override { return "hybrid"; }

 private:
  WorkerId workers_;
  std::uint32_t groups_;
  BlockId blocks_;
  std::uint64_t seed_;
};

/// Scheduled model parallelism (schedule / push / pull; Lee et al. 2014): an algorithm picks coordinates for a round,
/// one bin for each worker; units push, Program::commit pulls. One round is one clock.
class ScheduledSchedule final : public Schedule {
 public:
  /// Fills bins[w] with worker w's coordinates of the round; bins has one entry for each worker, empty at the call.
  using Pick = std::function<void(Clock round, std::span<std::vector<std::uint32_t>> bins)>;
  ScheduledSchedule(WorkerId workers, Pick pick);
  void plan(Clock clock, ClockPlan& out) override;
  bool chained() const override { return true; }
  const char* name() const override { return "scheduled"; }

 private:
  Pick pick_;
  std::vector<std::vector<std::uint32_t>> bins_;
};

}  // namespace orrery
