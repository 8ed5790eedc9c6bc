#include "engine/ready_lanes.h"

#include <algorithm>
#include <utility>

namespace orrery {

void UnitCounts::add(const UnitCounts& other) {
  units += other.units;
  busy_seconds += other.busy_seconds;
  staleness_sum += other.staleness_sum;
  staleness_max = std::max(staleness_max, other.staleness_max);
}

ReadyLanes::ReadyLanes(Arenas& arenas, DomainId domains, Pacer* pacer, Work work, std::function<void()> idle)
    : arenas_(arenas), pacer_(pacer), work_(std::move(work)), idle_(std::move(idle)) {
  for (const Arenas::Lane& lane : arenas.lanes()) lanes_.emplace_back(lane);
  place_in_lane_.resize(domains);
  for (const Arenas::Lane& lane : arenas.lanes()) {
    for (std::size_t i = 0; i < lane.domains.size(); ++i) place_in_lane_[lane.domains[i]] = i;
  }
}

// A unit is not touched any more once the queue that holds it is unlocked: it may have run by then, and its whole frame
// may be gone.
void ReadyLanes::publish(ReadyList& ready, std::size_t own) {
  for (std::size_t l = 0; l < lanes_.size() && !ready.empty(); ++l) {
    const auto of_lane =
        lanes_.size() == 1
            ? ready.begin()
            : std::partition(ready.begin(), ready.end(), [&](const PendingUnit* unit) { return lane_of(*unit) != l; });
    if (of_lane == ready.end()) continue;
    unsigned wake = 0;
    {
      Lane& lane = lanes_[l];
      const std::lock_guard lock(lane.mutex);
      if (cancelled_.load()) break;  // drain() may be on its way out: no new thread may start
      for (auto it = of_lane; it != ready.end(); ++it) {
        PendingUnit& unit = **it;
        lane.queue.push(place_in_lane_[unit.domain], {unit.unit.clock, unit.unit.index, &unit});
      }
      wake = threads_to_wake(l, l == own ? 1 : 0);
    }
    ready.erase(of_lane, ready.end());
    for (unsigned i = 0; i < wake; ++i) arenas_.enqueue(l, [this, l] { drain_as_task(l); });
  }
  ready.clear();
}

// Under the lane's mutex: how many more threads the queue can feed, `busy_soon` of which is the caller. The thread that
// called run() is preferred: it is there already.
unsigned ReadyLanes::threads_to_wake(std::size_t l, std::size_t busy_soon) {
  Lane& lane = lanes_[l];
  lane.hint.store(static_cast<std::uint32_t>(lane.queue.size()));
  std::size_t want = lane.queue.size() - std::min(lane.queue.size(), busy_soon);
  if (l == 0 && lane.caller_waits && want > 0) {
    lane.caller_waits = false;
    caller_is_active_ = true;
    ++lane.active;
    lane.wake.notify_all();
    --want;
  }
  const auto spare = lane.threads - lane.active - ((l == 0 && !caller_is_active_) ? 1U : 0U);
  const auto wake = static_cast<unsigned>(std::min<std::size_t>(want, spare));
  lane.active += wake;
  return wake;
}

PendingUnit* ReadyLanes::take(Lane& lane) {
  const std::lock_guard lock(lane.mutex);
  PendingUnit* unit = cancelled_.load() ? nullptr : lane.queue.pop();
  lane.hint.store(static_cast<std::uint32_t>(lane.queue.size()));
  return unit;
}

void ReadyLanes::work_on(PendingUnit& unit, std::size_t lane, UnitCounts& counts, ReadyList& ready) {
  work_(unit, counts, ready);
  publish(ready, lane);
}

// A thread of a lane other than the calling one: works while there is work and goes.
void ReadyLanes::drain_as_task(std::size_t l) {
  Lane& lane = lanes_[l];
  UnitCounts counts;
  ReadyList ready;
  for (;;) {
    while (PendingUnit* unit = take(lane)) work_on(*unit, l, counts, ready);
    const std::lock_guard lock(lane.mutex);
    if (lane.queue.size() != 0 && !cancelled_.load()) continue;  // came between the last look and now
    lane.counts.add(counts);
    --lane.active;
    if (lane.active == 0) lane.wake.notify_all();
    return;
  }
}

namespace {

bool may_leave(const PendingUnit& unit) { return !unit.is_guest && !unit.is_settlement && !unit.is_begun; }

}  // namespace

std::size_t ReadyLanes::waiting() const {
  std::size_t units = 0;
  for (const Lane& lane : lanes_) {
    const std::lock_guard lock(lane.mutex);
    units += lane.queue.count(may_leave);
  }
  return units;
}

PendingUnit* ReadyLanes::take_last() {
  Lane* longest = nullptr;
  std::size_t most = 0;
  for (Lane& lane : lanes_) {
    const std::lock_guard lock(lane.mutex);
    if (lane.queue.size() <= most) continue;
    longest = &lane;
    most = lane.queue.size();
  }
  if (longest == nullptr) return nullptr;
  const std::lock_guard lock(longest->mutex);
  PendingUnit* unit = cancelled_.load() ? nullptr : longest->queue.pop_last(may_leave);
  longest->hint.store(static_cast<std::uint32_t>(longest->queue.size()));
  return unit;
}

std::uint64_t ReadyLanes::begin() {
  const std::lock_guard lock(lanes_[0].mutex);
  ++lanes_[0].active;
  caller_is_active_ = true;
  return ++begun_runs_;
}

void ReadyLanes::finish(std::uint64_t run) {
  finished_run_.store(run);
  const std::lock_guard lock(lanes_[0].mutex);
  lanes_[0].wake.notify_all();
}

void ReadyLanes::cancel() {
  cancelled_.store(true);
  const std::lock_guard lock(lanes_[0].mutex);
  lanes_[0].wake.notify_all();
}

void ReadyLanes::drain() {
  Lane& lane = lanes_[0];
  UnitCounts counts;
  ReadyList ready;
  for (;;) {
    while (PendingUnit* unit = take(lane)) work_on(*unit, 0, counts, ready);
    if (is_over()) break;
    idle_();
    if (pacer_ != nullptr) {
      pacer_->wait([&] { return lane.hint.load() != 0 || is_over(); });
      continue;
    }
    spin(lane);
    wait_for_work(lane);
  }
  {
    const std::lock_guard lock(lane.mutex);
    lane.counts.add(counts);
  }
  wait_until_idle();
}

void ReadyLanes::wait_for_work(Lane& lane) {
  std::unique_lock lock(lane.mutex);
  if (lane.queue.size() != 0 || is_over()) return;
  lane.caller_waits = true;
  --lane.active;
  caller_is_active_ = false;
  lane.wake.wait(lock, [&] { return !lane.caller_waits || is_over(); });
  if (lane.caller_waits) {  // woken by the end, not by a unit
    lane.caller_waits = false;
    caller_is_active_ = true;
    ++lane.active;
  }
}

// A short look before the expensive sleep: a unit usually becomes ready within microseconds.
void ReadyLanes::spin(const Lane& lane) const {
  constexpr int kLooks = 2000;
  for (int i = 0; i < kLooks && lane.hint.load() == 0 && !is_over(); ++i) __builtin_ia32_pause();
}

void ReadyLanes::wait_until_idle() {
  for (std::size_t l = 0; l < lanes_.size(); ++l) {
    Lane& lane = lanes_[l];
    std::unique_lock lock(lane.mutex);
    if (l == 0) {
      --lane.active;
      caller_is_active_ = false;
    }
    lane.wake.wait(lock, [&] { return lane.active == 0; });
    if (cancelled_.load()) lane.queue.clear();
  }
}

UnitCounts ReadyLanes::counts() const {
  UnitCounts all;
  for (const Lane& lane : lanes_) {
    const std::lock_guard lock(lane.mutex);
    all.add(lane.counts);
  }
  return all;
}

}  // namespace orrery
