// Threads, and the only door to TBB: one arena for each NUMA domain, its threads pinned by an observer that restores
// what it changed (design section 8). What runs in an arena never waits; the thread that called the engine may, it is
// no task.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/types.h"
#include "numa/pinning.h"
#include "numa/topology.h"

namespace orrery {

/// The threads of one engine. In total never more than `threads` run, the calling one counted.
class Arenas {
 public:
  /// Threads that serve one domain; or, when there are fewer threads than domains, one thread that visits several in
  /// turn.
  struct Lane {
    unsigned threads = 1;
    std::vector<DomainId> domains;
  };

  /// `warn` is told once when threads cannot be pinned; it may be called from any of them.
  Arenas(const Topology& topology, const PinPlan& pins, std::function<void(const std::string&)> warn);
  /// Waits for what was enqueued.
  ~Arenas();
  Arenas(const Arenas&) = delete;
  Arenas& operator=(const Arenas&) = delete;

  std::span<const Lane> lanes() const noexcept { return lanes_; }
  std::size_t lane_of(DomainId domain) const noexcept { return lane_of_domain_[domain]; }
  unsigned threads() const noexcept { return threads_; }

  /// Runs `task` some time on a thread of the lane that is not the caller's. It must not throw and must not wait. At
  /// most lane.threads tasks (lane 0: one less, the calling thread has that place) run at once. About 1 µs.
  void enqueue(std::size_t lane, std::function<void()> task);
  /// Runs `body` on the calling thread as a thread of lane 0: pinned, and part of the count. `body` may wait.
  void join(const std::function<void()>& body);
  /// body(i) for every i in [0, count), in no order, on all threads and the calling one; returns when all are done.
  /// The first exception is kept, indices not yet begun are dropped, and it is rethrown here. Not from inside a task.
  void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body);

 private:
  struct Impl;
  std::vector<Lane> lanes_;
  std::vector<std::size_t> lane_of_domain_;
  unsigned threads_ = 1;
  std::unique_ptr<Impl> impl_;
};

}  // namespace orrery
