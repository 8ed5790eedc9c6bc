// Where ready units wait for a thread (design section 4): a queue for each lane of the arenas, and the threads that
// drain it. A task works while there is work and goes; only the thread that called run() waits, it is no task.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "engine/clock_frame.h"
#include "engine/parallel.h"
#include "engine/ready_queue.h"
#include "engine/transport.h"
#include "engine/types.h"

namespace orrery {

/// Units that lack nothing any more, on their way into a queue.
using ReadyList = std::vector<PendingUnit*>;

/// What threads count while they run units.
struct UnitCounts {
  std::uint64_t units = 0;
  double busy_seconds = 0;
  double staleness_sum = 0;
  Clock staleness_max = 0;
  void add(const UnitCounts& other);
};

class ReadyLanes {
 public:
  /// Runs a unit to its end, and appends the units that became ready by it. Must not throw.
  using Work = std::function<void(PendingUnit&, UnitCounts&, ReadyList&)>;
  /// Lane number for publish() of a caller that drains none.
  static constexpr std::size_t kNoLane = static_cast<std::size_t>(-1);

  /// With a pacer the calling thread waits for the node's time; the arenas must then have one thread. `idle` is called
  /// by the calling thread when it finds nothing to run and is about to wait.
  ReadyLanes(Arenas& arenas, DomainId domains, Pacer* pacer, Work work, std::function<void()> idle);

  /// Queues units and sees to it that enough threads of their lanes are awake; leaves the list empty. `own` is the lane
  /// that the caller drains: it will look at that queue itself next. Any thread.
  void publish(ReadyList& ready, std::size_t own);

  /// Units of this node that nobody has begun; and the last of them in the order of the plan, which will not run here,
  /// or null. Any thread.
  std::size_t waiting() const;
  PendingUnit* take_last();

  /// A run of the calling thread: begin(), which numbers it, then, inside Arenas::join, drain(), which works until
  /// somebody calls finish() with that number or cancel(). When it returns nothing runs any more.
  std::uint64_t begin();
  void drain();
  /// Any thread; late calls for an earlier run do no harm.
  void finish(std::uint64_t run);
  /// Units that have not begun are dropped, now and for ever. Any thread.
  void cancel();
  bool is_over() const { return finished_run_.load() == begun_runs_ || cancelled_.load(); }

  UnitCounts counts() const;

 private:
  struct alignas(64) Lane {
    explicit Lane(const Arenas::Lane& lane) : threads(lane.threads), queue(lane.domains.size()) {}
    mutable std::mutex mutex;
    std::condition_variable wake;  ///< for the calling thread in drain(), which serves lane 0
    const unsigned threads;
    unsigned active = 0;  ///< threads that drain; never above `threads`
    bool caller_waits = false;
    ReadyQueue queue;
    UnitCounts counts;                   ///< handed in by drains when they end
    std::atomic<std::uint32_t> hint{0};  ///< queue size, for spinning without the lock
  };

  std::size_t lane_of(const PendingUnit& unit) const { return arenas_.lane_of(unit.domain); }
  unsigned threads_to_wake(std::size_t lane, std::size_t busy_soon);
  PendingUnit* take(Lane& lane);
  void work_on(PendingUnit& unit, std::size_t lane, UnitCounts& counts, ReadyList& ready);
  void drain_as_task(std::size_t lane);
  void wait_for_work(Lane& lane);
  void spin(const Lane& lane) const;
  void wait_until_idle();

  Arenas& arenas_;
  Pacer* const pacer_;
  const Work work_;
  const std::function<void()> idle_;
  std::deque<Lane> lanes_;
  std::vector<std::size_t> place_in_lane_;      ///< by domain
  bool caller_is_active_ = false;               ///< under lane 0's mutex
  std::uint64_t begun_runs_ = 0;                ///< the calling thread's own
  std::atomic<std::uint64_t> finished_run_{0};  ///< number of the last run that is over
  std::atomic<bool> cancelled_{false};
};

}  // namespace orrery
