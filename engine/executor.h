// The machine under every schedule (design section 4): units become ready by block and by clock, ready units run as
// tasks of their domain's arena, and no task ever waits. A unit that is not ready is in no queue; whatever made it
// ready (a block that arrived, a slowest clock that moved) puts it there.
//
// The clock rule is kept by construction: the units of clock c do not exist before the slowest worker of the cluster
// has finished clock c - s - 1. See engine/DESIGN.md for the proof that this is rule 1 of section 5.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/clock.h"
#include "engine/program.h"
#include "engine/schedule.h"
#include "engine/transport.h"
#include "engine/types.h"
#include "engine/unit.h"

namespace orrery {

class Engine;

/// What an executor counted since it was made.
struct ExecutorStats {
  std::uint64_t units = 0;
  double busy_seconds = 0;    ///< thread time inside units
  double thread_seconds = 0;  ///< wall time of run() times threads; minus busy_seconds it is waiting and overhead
  double staleness_sum = 0;   ///< over units: own clock minus the slowest clock of the cluster when the unit began
  Clock staleness_max = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t units_lent = 0;  ///< of this node's, that others ran
};

struct ExecutorOptions {
  Clock start = 0;            ///< clock of the first units
  bool record_trace = false;  ///< keep a UnitRecord of every unit (a lock for each unit: for tests and profiles)
  /// Asked before each new clock is begun, on any thread; true ends run() at the next state between clocks. One node
  /// only.
  std::function<bool()> should_stop;
};

/// Runs the units of one schedule and one program on one engine. Not thread-safe: one thread drives it.
class Executor final : public Receiver {
 public:
  Executor(Engine& engine, Schedule& schedule, Program& program, WorkerId workers, ExecutorOptions options);
  ~Executor() override;

  /// Runs until every worker of every node has finished the clocks below `until`, or should_stop() said so; returns the
  /// clock reached. On return nothing is running. The calling thread works too. A unit that throws cancels the run:
  /// units not begun are dropped, and the first exception is rethrown when nothing runs any more; the executor is then
  /// spent.
  Clock run(Clock until);

  /// Runs the units up to `until` one by one on the calling thread, in the order of `trace` (one node only).
  /// @throws Error (internal) when a unit of the trace is not ready at its turn or one is missing: then it is no serial
  /// order of this schedule.
  void replay(Clock until, std::span<const UnitRecord> trace);

  /// Every node hands in bytes and gets everybody's, by node. Collective; between runs; waits for all nodes.
  std::vector<Bytes> exchange(Bytes mine);
  /// The same with something for each node: to[n] goes to node n.
  std::vector<Bytes> exchange_each(std::vector<Bytes> to);

  Clock clock() const noexcept;
  const WorkerMap& map() const noexcept;
  ExecutorStats stats() const;
  /// In order of completion: a serial order of the run.
  std::vector<UnitRecord> trace() const;
  /// True when the block's last visit so far was here, or it was never visited and its first visitor will be here.
  bool holds_block(std::uint32_t group, BlockId block) const;

  void receive(Message&& message) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace orrery
