#include "engine/block_store.h"

#include <cstring>

#include "engine/assert.h"

namespace orrery {
namespace {

constexpr std::size_t kCacheLine = 64;  // neighbours are owned by different threads: no false sharing

std::size_t rounded(std::size_t bytes) { return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine; }

}  // namespace

BlockStore::BlockStore(const Topology& topology, std::span<const std::size_t> bytes) {
  std::size_t total = 0;
  for (const std::size_t size : bytes) {
    places_.push_back({total, size, 0});
    total += rounded(size);
  }
  for (DomainId d = 0; d < topology.domains().size(); ++d) {
    memory_.push_back(Buffer::local(total, d, topology));
  }
}

std::byte* BlockStore::address(const Place& place, DomainId domain) const {
  return const_cast<std::byte*>(memory_[domain].data()) + place.offset;  // blocks are their owner's, not the store's
}

std::span<std::byte> BlockStore::acquire(BlockId block, DomainId domain) {
  ORRERY_CHECK(block < places_.size() && domain < memory_.size());
  Place& place = places_[block];
  if (place.domain != domain) {
    std::memcpy(address(place, domain), address(place, place.domain), place.bytes);
    place.domain = domain;
    bytes_moved_.fetch_add(place.bytes, std::memory_order_relaxed);  // relaxed: a counter
  }
  return view(block);
}

std::span<std::byte> BlockStore::view(BlockId block) const {
  const Place& place = places_[block];
  return {address(place, place.domain), place.bytes};
}

}  // namespace orrery
