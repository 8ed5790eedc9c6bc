// A training with a stopwatch (design section 1, user 3): between the engine and a trainee, it notes when which phase
// of which worker ran, on which blocks, and what tables had counted at every evaluation. What the trainee does stays
// the same.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "engine/forwarding_trainee.h"
#include "engine/profile_source.h"
#include "engine/table_store.h"
#include "engine/training.h"
#include "engine/types.h"

namespace orrery {

/// What a stretch of time was spent on.
enum class Phase : std::uint8_t {
  compute,   ///< a unit, accesses to tables and copies of blocks from other domains included
  flush,     ///< a worker's end of clock: its updates are handed over
  settle,    ///< updates of all workers are added up and applied, in parts
  commit,    ///< the rest between two clocks, on one thread: commit(), clocks_moved()
  evaluate,  ///< at a cut; nothing else runs
};

/// Seconds since the training began. `blocks` counts into PhaseTrace::blocks.
struct PhaseRecord {
  Phase phase = Phase::compute;
  WorkerId worker = 0;  ///< of compute and flush
  DomainId domain = 0;  ///< of compute
  Clock clock = 0;
  double start = 0, end = 0;
  std::size_t first_block = 0, blocks = 0;  ///< of compute: what the unit owned
  std::uint32_t group = 0;                  ///< of compute: whose replica of the blocks
};

/// What the tables had counted when an evaluation began.
struct TableCounts {
  Clock clock = 0;  ///< clocks below it are in
  std::vector<AccessCounts> accesses;
  std::vector<ObservedStaleness> staleness;
};

/// In the order in which phases ended.
struct PhaseTrace {
  std::vector<PhaseRecord> records;
  std::vector<BlockId> blocks;
  std::vector<TableCounts> counts;  ///< at the start and at every evaluation
  std::uint64_t dropped = 0;        ///< records beyond the limit
};

struct ProfileLimits {
  Clock recorded_clocks = 0;                  ///< of which accesses to tables are recorded, from the first
  std::size_t recorded_bytes = 0;             ///< for these accesses
  std::size_t phases = std::size_t{1} << 20;  ///< that are kept; some 70 bytes each
};

/// On one node. Cost: two looks at a clock and a lock for each phase; while accesses are recorded, a store for each.
class ProfiledTrainee final : public ForwardingTrainee {
 public:
  /// `inner` must outlive it.
  ProfiledTrainee(Trainee& inner, const ProfileLimits& limits);

  /// Between runs.
  const PhaseTrace& trace() const noexcept { return trace_; }
  /// The clock of the first units.
  Clock start() const noexcept { return start_; }
  /// Null: it has none to show.
  const TableStore* tables() const noexcept { return tables_; }
  /// 0: nothing is known of it, or nothing copied. Between runs.
  std::size_t block_bytes(BlockId block) const { return blocks_ == nullptr ? 0 : blocks_->block_bytes(block); }

  void run_unit(const WorkUnit& unit, UnitContext& context) override;
  void worker_ended(WorkerId worker, Clock clock) override;
  void clocks_moved(const ClockTree& clocks) override;
  Bytes pack_partial(Clock clock) override;
  std::size_t settle_parts(Clock clock) override;
  void settle(Clock clock, std::size_t part) override;
  void commit(Clock clock, std::span<const Bytes> partials) override;
  void connect(Outbox& outbox, Clock start) override;
  Evaluation evaluate(Engine& engine, bool exact) override;

 private:
  double now() const;
  /// Calls body() and keeps how long it took as `record`.
  template <class Body>
  auto timed(PhaseRecord record, std::span<const BlockId> blocks, Body&& body);
  void keep(PhaseRecord record, std::span<const BlockId> blocks);
  void count(Clock clock);

  TableStore* const tables_;
  const ShowsBlocks* const blocks_;
  const ProfileLimits limits_;
  const std::chrono::steady_clock::time_point origin_;
  Clock start_ = 0;
  Clock committed_ = 0;  ///< clocks below it are; the processor's
  std::mutex mutex_;
  PhaseTrace trace_;
};

}  // namespace orrery
