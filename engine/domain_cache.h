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
#include <utility>
#include <vector>

#include "engine/types.h"
#include "numa/memory.h"

namespace orrery {

template <class T>
class DomainCache {
 public:
  /// A row as it stood once, its values right behind it: who finds the version has the values, too.
  class Version {
   public:
    /// Counts the replacements of this row before it.
    std::uint64_t number() const noexcept { return number_; }
    const T* values() const noexcept { return reinterpret_cast<const T*>(this + 1); }
    T* values() noexcept { return reinterpret_cast<T*>(this + 1); }

   private:
    friend DomainCache;
    std::uint64_t number_ = 0;
    Version* next_ = nullptr;  ///< open, not published: of the thread that applies updates
  };

  /// `width`: of a row with all its state; `homes`: nodes from which rows come.
  DomainCache(std::uint32_t rows, std::uint32_t width, NodeId homes, bool versioned, DomainId domain,
              const Topology& topology)
      : width_(width),
        version_bytes_((sizeof(Version) + width * sizeof(T) + sizeof(Version*) - 1) / sizeof(Version*) *
                       sizeof(Version*)),
        memory_(Buffer::local(
            std::max<std::size_t>(1, rows * (versioned ? version_bytes_ : std::size_t{width} * sizeof(T))), domain,
            topology)),
        domain_(domain),
        topology_(topology),
        frontier_memory_(Buffer::local(homes * sizeof(std::atomic<Clock>), domain, topology)),
        frontiers_(reinterpret_cast<std::atomic<Clock>*>(frontier_memory_.data())) {
    for (NodeId home = 0; home < homes; ++home) ::new (&frontiers_[home]) std::atomic<Clock>(0);
    if (!versioned) return;
    current_ = Buffer::local(rows * sizeof(Current), domain, topology);
    versions_ = reinterpret_cast<Current*>(current_.data());
    for (std::uint32_t row = 0; row < rows; ++row) ::new (&versions_[row]) Current(new_version(memory_, row));
  }

  // --- while no unit runs --------------------------------------------------------------------------------------------

  /// The current values of a row, to read or to set.
  T* values(std::uint32_t row) noexcept {
    return versions_ == nullptr ? settled(row) : versions_[row].load()->values();
  }
  const T* values(std::uint32_t row) const noexcept { return const_cast<DomainCache*>(this)->values(row); }

  // --- any worker of the domain --------------------------------------------------------------------------------------

  /// Settled only.
  const T* read(std::uint32_t row) const noexcept { return const_cast<DomainCache*>(this)->settled(row); }
  /// Versioned only. Valid until the reading worker's next clock.
  const Version& read_version(std::uint32_t row) const noexcept {
    return *versions_[row].load(std::memory_order_acquire);  // acquire: pairs with the release in publish()
  }
  /// All updates of all workers below this clock are in the rows of that home.
  Clock frontier(NodeId home) const noexcept {
    return frontiers_[home].load(std::memory_order_acquire);  // acquire: pairs with the release in raise_frontier()
  }

  // --- the thread that applies updates, one at a time ----------------------------------------------------------------

  /// The next version of a row, a copy of what is current, to be changed. Nobody sees it before publish(), so what
  /// comes together makes one version. Versioned only.
  Version& open(std::uint32_t row) {
    Version& old = *versions_[row].load(std::memory_order_relaxed);  // relaxed: only this thread stores
    if (old.next_ == nullptr) {
      old.next_ = free_version();
      old.next_->number_ = old.number_ + 1;
      std::copy(old.values(), old.values() + width_, old.next_->values());
      opened_.push_back(row);
    }
    return *old.next_;
  }
  /// All open versions become current. `latest_reader`: the highest clock in which a worker of this node may be reading
  /// the ones that they replace.
  void publish(Clock latest_reader) {
    for (const std::uint32_t row : opened_) {
      Version* old = versions_[row].load(std::memory_order_relaxed);  // relaxed: only this thread stores
      // release: pairs with the acquire in read_version()
      versions_[row].store(std::exchange(old->next_, nullptr), std::memory_order_release);
      retired_.push_back({old, latest_reader});
    }
    opened_.clear();
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
  static_assert(alignof(T) <= alignof(Version));
  static constexpr std::size_t kRowsOfChunk = 1024;

  T* settled(std::uint32_t row) noexcept { return memory_.as<T>().data() + std::size_t{row} * width_; }

  Version* free_version() {
    if (free_.empty()) add_chunk();
    Version* version = free_.back();
    free_.pop_back();
    return version;
  }
  Version* new_version(Buffer& memory, std::size_t i) { return ::new (memory.data() + i * version_bytes_) Version; }
  void add_chunk() {
    Buffer& chunk = chunks_.emplace_back(Buffer::local(kRowsOfChunk * version_bytes_, domain_, topology_));
    for (std::size_t i = kRowsOfChunk; i-- > 0;) free_.push_back(new_version(chunk, i));
  }

  const std::uint32_t width_;
  const std::size_t version_bytes_;
  Buffer memory_;  ///< of all rows, or of their first versions
  const DomainId domain_;
  const Topology& topology_;
  Buffer frontier_memory_;
  std::atomic<Clock>* frontiers_;  ///< by home
  Buffer current_;
  Current* versions_ = nullptr;  ///< by row, in `current_`; null: settled
  std::vector<Buffer> chunks_;
  std::vector<Version*> free_;
  std::vector<std::uint32_t> opened_;  ///< rows, of the thread that applies updates
  std::deque<Retired> retired_;
};

}  // namespace orrery
