// Memory of blocks that travel between domains. A block is worked on in the memory of the domain that owns it at the
// moment: when it comes from another domain it is copied once, in one sequential sweep, instead of being read remotely
// at random (design section 8; Zhang, Chen, Chen, PPoPP 2015). With one domain there is one copy and nothing ever
// moves.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/types.h"
#include "numa/memory.h"
#include "numa/topology.h"

namespace orrery {

class BlockStore {
 public:
  /// bytes[b] is the size of block b. Blocks start at multiples of 64 bytes, all zero. Address space is taken for all
  /// blocks in every domain, memory only where a block has been.
  BlockStore(const Topology& topology, std::span<const std::size_t> bytes);

  /// The block in the memory of `domain`, brought there if it is elsewhere. For the unit that owns the block.
  std::span<std::byte> acquire(BlockId block, DomainId domain);
  /// The block where it lies. Between clocks, or for the owner.
  std::span<std::byte> view(BlockId block) const;
  BlockId size() const noexcept { return static_cast<BlockId>(places_.size()); }
  /// Bytes copied between domains so far.
  std::uint64_t bytes_moved() const noexcept { return bytes_moved_.load(); }

 private:
  struct Place {
    std::size_t offset = 0, bytes = 0;
    DomainId domain = 0;  ///< where it lies; written by the owner only
  };
  std::byte* address(const Place& place, DomainId domain) const;

  std::vector<Place> places_;
  std::vector<Buffer> memory_;  ///< one for each domain
  std::atomic<std::uint64_t> bytes_moved_{0};
};

}  // namespace orrery
