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
#include <new>
#include <type_traits>
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
        frontier_memory_(Buffer::local(homes * sizeof(std::atomic<Clock>), domain, topology)),
        frontiers_(reinterpret_cast<std::atomic<Clock>*>(frontier_memory_.data())) {
    for (NodeId home = 0; home < homes; ++home) ::new (&frontiers_[home]) std::atomic<Clock>(0);
    if (!versioned) return;
    first_versions_ = Buffer::local(rows * sizeof(Version), domain, topology);
    current_ = Buffer::local(rows * sizeof(Current), domain, topology);
    versions_ = reinterpret_cast<Current*>(current_.data());
    for (std::uint32_t row = 0; row < rows; ++row) {
      Version* first = ::new (first_versions_.data() + row * sizeof(Version)) Version;
      first->values = settled(row);
      ::new (&versions_[row]) Current(first);
    }
  }

  // --- while no unit runs --------------------------------------------------------------------------------------------

  /// The current values of a row, to read or to set.
  T* values(std::uint32_t row) noexcept { return versions_ == nullptr ? settled(row) : versions_[row].load()->values; }
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
  using Current = std::atomic<Version*>;  // trivial to destroy, so the buffer is just given back
  static_assert(std::is_trivially_destructible_v<Current> && std::is_trivially_destructible_v<Version>);
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
    Buffer& versions = chunk_versions_.emplace_back(Buffer::local(kRowsOfChunk * sizeof(Version), domain_, topology_));
    for (std::size_t i = kRowsOfChunk; i-- > 0;) {
      Version* version = ::new (versions.data() + i * sizeof(Version)) Version;
      version->values = values.as<T>().data() + i * width_;
      free_.push_back(version);
    }
  }

  const std::uint32_t width_;
  Buffer memory_;
  const DomainId domain_;
  const Topology& topology_;
  Buffer frontier_memory_;
  std::atomic<Clock>* frontiers_;  ///< by home
  Buffer first_versions_, current_;
  Current* versions_ = nullptr;  ///< by row, in `current_`; null: settled
  std::vector<Buffer> chunks_;
  std::vector<Buffer> chunk_versions_;
  std::vector<Version*> free_;
  std::deque<Retired> retired_;
};

}  // namespace orrery
