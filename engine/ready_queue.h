// Ready units of one lane, in the order of the plan: lower clocks and steps first, so that no worker runs far ahead of
// those that wait for its blocks, and within a step those first whose blocks have the longest way.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "engine/types.h"
#include "engine/unit.h"

namespace orrery {

/// A unit while its clock is open, with what it still waits for. The executor owns these.
struct PendingUnit;

/// Units by domain; a lane that serves several domains works one off before it turns to the next. Not thread-safe.
class ReadyQueue {
 public:
  explicit ReadyQueue(std::size_t domains) : heaps_(domains) {}

  struct Entry {
    Clock clock;
    std::uint32_t index;  ///< in the plan of the clock
    PendingUnit* unit;
    bool operator>(const Entry& other) const {
      return clock != other.clock ? clock > other.clock : index > other.index;
    }
  };

  void push(std::size_t domain, const Entry& entry) {
    heaps_[domain].push(entry);
    ++size_;
  }
  /// The next unit, or null.
  PendingUnit* pop() {
    if (size_ == 0) return nullptr;
    while (heaps_[turn_].empty()) turn_ = (turn_ + 1) % heaps_.size();
    PendingUnit* unit = heaps_[turn_].top().unit;
    heaps_[turn_].pop();
    --size_;
    return unit;
  }
  std::size_t size() const noexcept { return size_; }
  void clear() {
    for (auto& heap : heaps_) heap = {};
    size_ = 0;
  }

 private:
  std::vector<std::priority_queue<Entry, std::vector<Entry>, std::greater<>>> heaps_;
  std::size_t size_ = 0;
  std::size_t turn_ = 0;
};

}  // namespace orrery
