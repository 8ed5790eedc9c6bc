// Ready units of one lane, in the order of the plan: lower clocks and steps first, so that no worker runs far ahead of
// those that wait for its blocks, and within a step those first whose blocks have the longest way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
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
    heaps_[domain].push_back(entry);
    std::push_heap(heaps_[domain].begin(), heaps_[domain].end(), std::greater<>());
    ++size_;
  }
  /// The next unit, or null.
  PendingUnit* pop() {
    if (size_ == 0) return nullptr;
    while (heaps_[turn_].empty()) turn_ = (turn_ + 1) % heaps_.size();
    auto& heap = heaps_[turn_];
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    PendingUnit* unit = heap.back().unit;
    heap.pop_back();
    --size_;
    return unit;
  }
  /// The unit that would come last of those that `may_leave` says yes to, or null. Cost: a look at all.
  template <class MayLeave>
  PendingUnit* pop_last(MayLeave&& may_leave) {
    std::vector<Entry>* heap_of_last = nullptr;
    std::size_t last = 0;
    for (auto& heap : heaps_) {
      for (std::size_t i = 0; i < heap.size(); ++i) {
        if (!may_leave(*heap[i].unit) || (heap_of_last != nullptr && (*heap_of_last)[last] > heap[i])) continue;
        heap_of_last = &heap;
        last = i;
      }
    }
    if (heap_of_last == nullptr) return nullptr;
    PendingUnit* unit = (*heap_of_last)[last].unit;
    heap_of_last->erase(heap_of_last->begin() + static_cast<std::ptrdiff_t>(last));
    std::make_heap(heap_of_last->begin(), heap_of_last->end(), std::greater<>());
    --size_;
    return unit;
  }
  std::size_t size() const noexcept { return size_; }
  /// How many `counts` says yes to. Cost: a look at all.
  template <class Counts>
  std::size_t count(Counts&& counts) const {
    std::size_t found = 0;
    for (const auto& heap : heaps_) {
      found += static_cast<std::size_t>(
          std::count_if(heap.begin(), heap.end(), [&](const Entry& entry) { return counts(*entry.unit); }));
    }
    return found;
  }
  void clear() {
    for (auto& heap : heaps_) heap.clear();
    size_ = 0;
  }

 private:
  std::vector<std::vector<Entry>> heaps_;  ///< the first is the next
  std::size_t size_ = 0;
  std::size_t turn_ = 0;
};

}  // namespace orrery
