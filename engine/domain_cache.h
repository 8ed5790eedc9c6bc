// A table as the workers of one NUMA domain see it: in that domain's memory (design sections 5 and 8). Two kinds:
//   * settled: rows lie in one array and change only while no unit runs (staleness 0). A read is an array access.
//   * versioned: a row is replaced, never changed, so that updates become visible while units hold spans; a replaced
//   row
//     lives on until every worker of the node has ended the clock in which it may have been read.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "engine/types.h"
#include "numa/memory.h"

namespace orrery {

template <class T>
class DomainCache {
 public:
  /// A row as it stood once. `number` counts the replacements of this row before it.
  struct Version {
    std::uint64_t number = 0;
    T* values = nullptr;
  };

  /// `width`: of a row with all its state; `homes`: nodes from which rows come.
  DomainCache(std::uint32_t rows, std::uint32_t width, NodeId homes, bool versioned, DomainId domain,
              const Topology& topology)
      : width_(width),
        memory_(Buffer::local(std::max<std::size_t>(1, std::size_t{rows} * width * sizeof(T)), domain, topology)),
        domain_(domain),
        topology_(topology),
        frontiers_(homes) {
    if (!versioned) return;
    first_versions_ = std::make_unique<Version[]>(rows);
    versions_ = std::vector<std::atomic<Version*>>(rows);
    for (std::uint32_t row = 0; row < rows; ++row) {
      first_versions_[row].values = settled(row);
      versions_[row].store(&first_versions_[row]);
    }
  }

  // --- while no unit runs --------------------------------------------------------------------------------------------

  /// The current values of a row, to read or to set.
  T* values(std::uint32_t row) noexcept { return versions_.empty() ? settled(row) : versions_[row].load()->values; }
  const T* values(std::uint32_t row) const noexcept { return const_cast<DomainCache*>(this)->values(row); }

  // --- any worker of the domain --------------------------------------------------------------------------------------

  /// Settled only.
  const T* read(std::uint32_t row) const noexcept { return const_cast<DomainCache*>(this)->settled(row); }
  /// Versioned only. Valid until the reading worker's next clock.
  const Version& read_version(std::uint32_t row) const noexcept {
    return *versions_[row].load(std::memory_order_acquire);  // acquire: pairs with the release in replace()
  }
  /// All updates of all workers below this clock are in the rows of that home.
  Clock frontier(NodeId home) const noexcept {
    return frontiers_[home].load(std::memory_order_acquire);  // acquire: pairs with the release in raise_frontier()
  }

  // --- the thread that applies updates, one at a time ----------------------------------------------------------------

  /// Replaces a row: `fill(state)` turns a copy of it into the new one. `announce(number)` is called before anybody can
  /// see the new version. `latest_reader`: the highest clock in which a worker of this node may be reading the old one.
  template <class Fill, class Announce>
  void replace(std::uint32_t row, Clock latest_reader, Fill&& fill, Announce&& announce) {
    Version* old = versions_[row].load(std::memory_order_relaxed);  // relaxed: only this thread stores
    Version* next = new_version();
    next->number = old->number + 1;
    std::copy(old->values, old->values + width_, next->values);
    fill(next->values);
    announce(next->number);
    versions_[row].store(next, std::memory_order_release);  // release: pairs with the acquire in read_version()
    retired_.push_back({old, latest_reader});
  }
  void raise_frontier(NodeId home, Clock frontier) {
    frontiers_[home].store(frontier, std::memory_order_release);  // release: pairs with the acquire in frontier()
  }
  /// Every worker of this node has finished the clocks below `slowest`: versions that were read in those only are free.
  void reclaim(Clock slowest) {
    while (!retired_.empty() && retired_.front().latest_reader < slowest) {
      free_.push_back(retired_.front().version);
      retired_.pop_front();
    }
  }
  /// Versions that are not the current one of a row and wait for readers.
  std::size_t retired() const noexcept { return retired_.size(); }

 private:
  struct Retired {
    Version* version;
    Clock latest_reader;  ///< never falls along the queue, because clocks do not
  };
  static constexpr std::size_t kRowsOfChunk = 1024;

  T* settled(std::uint32_t row) noexcept { return memory_.as<T>().data() + std::size_t{row} * width_; }

  Version* new_version() {
    if (free_.empty()) add_chunk();
    Version* version = free_.back();
    free_.pop_back();
    return version;
  }
  void add_chunk() {
    Buffer& values = chunks_.emplace_back(Buffer::local(kRowsOfChunk * width_ * sizeof(T), domain_, topology_));
    auto& versions = chunk_versions_.emplace_back(std::make_unique<Version[]>(kRowsOfChunk));
    for (std::size_t i = kRowsOfChunk; i-- > 0;) {
      versions[i].values = values.as<T>().data() + i * width_;
      free_.push_back(&versions[i]);
    }
  }

  const std::uint32_t width_;
  Buffer memory_;
  const DomainId domain_;
  const Topology& topology_;
  std::vector<std::atomic<Clock>> frontiers_;  ///< by home
  std::unique_ptr<Version[]> first_versions_;
  std::vector<std::atomic<Version*>> versions_;
  std::vector<Buffer> chunks_;
  std::vector<std::unique_ptr<Version[]>> chunk_versions_;
  std::vector<Version*> free_;
  std::deque<Retired> retired_;
};

}  // namespace orrery
