// Memory of one domain for things that are smaller than pages or that grow: what standard containers with a polymorphic
// allocator ask for (design section 8). malloc would not do: a thread that serves several domains mixes their memory.
#pragma once

#include <cstddef>
#include <map>
#include <memory_resource>
#include <mutex>

#include "numa/memory.h"
#include "numa/topology.h"

namespace orrery {

/// Any thread may allocate and give back, whichever allocated; a lock for each, so it is no path of hot loops.
/// Everything is unmapped when the pool dies, so it must outlive its users. Large blocks are mappings of their own.
/// std::pmr::synchronized_pool_resource would need no lock, but takes a key of thread-local storage for each pool, of
/// which a process has 1024.
class DomainPool final : public std::pmr::memory_resource {
 public:
  /// The topology must outlive it.
  DomainPool(unsigned domain, const Topology& topology)
      : pages_(domain, topology), pool_({.max_blocks_per_chunk = 0, .largest_required_pool_block = kLarge}, &pages_) {}

 private:
  static constexpr std::size_t kLarge = std::size_t{64} << 10;

  /// Chunks for the pool, which keeps them to the end, are cut off a stretch; large blocks come and go.
  class Pages final : public std::pmr::memory_resource {
   public:
    Pages(unsigned domain, const Topology& topology) : domain_(domain), topology_(topology) {}

   private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override;
    void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override;
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

    const unsigned domain_;
    const Topology& topology_;
    std::map<void*, Buffer> large_;
    std::map<void*, Buffer> stretches_;
    std::byte* free_ = nullptr;  ///< in the newest stretch
    std::size_t left_ = 0;
  };

  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  std::mutex mutex_;
  Pages pages_;
  std::pmr::unsynchronized_pool_resource pool_;
};

}  // namespace orrery
