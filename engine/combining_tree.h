// The fixed binary tree over worker ids that every sum follows (reduce.h), worked off without waiting: whoever
// completes the second side of a node combines the two and goes on upwards (design section 5).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "engine/clock.h"
#include "engine/types.h"

namespace orrery {

/// A node of the tree: at `level` 0 a worker, above it the pair (2·index, 2·index + 1) of the level below.
struct Subtree {
  std::uint32_t level = 0;
  std::uint32_t index = 0;
  auto operator<=>(const Subtree&) const = default;
};

/// One round of sums over the workers of this node. What a subtree has come to lies with its first worker.
class CombiningTree {
 public:
  explicit CombiningTree(const WorkerMap& map)
      : workers_(map.workers()),
        first_(map.first_worker(map.this_node())),
        last_(map.first_worker(map.this_node() + 1)),
        arrivals_(levels()) {
    for (std::uint32_t level = 0; level < levels(); ++level) {
      arrivals_[level] = std::vector<std::atomic<std::uint32_t>>(width(level));
    }
  }

  /// This node's worker has handed in its value. Calls merge(left, right), workers with whom the two sides lie, for
  /// every subtree that is complete by it; `left` then holds both. Any thread; each worker once a round.
  template <class Merge>
  void arrive(WorkerId worker, Merge&& merge) {
    Subtree at{0, worker};
    while (at.level + 1 < levels()) {
      const Subtree parent{at.level + 1, at.index / 2};
      if (has_sibling(at)) {
        if (!is_mine(parent)) return;
        // seq_cst: who comes second sees what the first has written.
        if (arrivals_[parent.level][parent.index].fetch_add(1) == 0) return;
        merge(first_worker({at.level, at.index & ~1U}), first_worker({at.level, at.index | 1U}));
      }
      at = parent;
    }
  }

  /// The largest subtrees that lie wholly on this node.
  std::vector<Subtree> largest() const {
    std::vector<Subtree> found;
    for (std::uint32_t level = 0; level < levels(); ++level) {
      for (std::uint32_t index = 0; index < width(level); ++index) {
        const bool is_root = level + 1 == levels();
        if (is_mine({level, index}) && (is_root || !is_mine({level + 1, index / 2}))) found.push_back({level, index});
      }
    }
    return found;
  }

  /// Combines the largest subtrees of all nodes to the whole: combine(left, right) leaves both in left. Requires all of
  /// them; returns the last left.
  template <class Value, class Combine>
  Value* finish(std::map<Subtree, Value*> parts, Combine&& combine) const {
    while (parts.begin()->first.level + 1 < levels()) {
      const auto left = parts.begin();  // lowest level, lowest index: always a left side or one without a sibling
      Value* value = left->second;
      if (has_sibling(left->first)) {
        const auto right = std::next(left);
        combine(*value, *right->second);
        parts.erase(right);
      }
      const Subtree parent{left->first.level + 1, left->first.index / 2};
      parts.erase(left);
      parts.emplace(parent, value);
    }
    return parts.begin()->second;
  }

  WorkerId first_worker(Subtree at) const noexcept { return at.index << at.level; }
  /// Ready for the next round. Nobody may arrive meanwhile.
  void reset() {
    for (auto& level : arrivals_) {
      for (auto& arrivals : level) arrivals.store(0);
    }
  }

 private:
  std::uint32_t width(std::uint32_t level) const noexcept {
    return static_cast<std::uint32_t>((std::uint64_t{workers_} + (std::uint64_t{1} << level) - 1) >> level);
  }
  std::uint32_t levels() const noexcept {
    std::uint32_t level = 0;
    while (width(level) > 1) ++level;
    return level + 1;
  }
  bool has_sibling(Subtree at) const noexcept { return (at.index ^ 1U) < width(at.level); }
  bool is_mine(Subtree at) const noexcept {
    const std::uint64_t begin = std::uint64_t{at.index} << at.level;
    const std::uint64_t end = std::min<std::uint64_t>((std::uint64_t{at.index} + 1) << at.level, workers_);
    return begin >= first_ && end <= last_;
  }

  WorkerId workers_, first_, last_;
  std::vector<std::vector<std::atomic<std::uint32_t>>> arrivals_;
};

}  // namespace orrery
