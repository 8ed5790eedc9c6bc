#include "numa/domain_pool.h"

#include <memory>
#include <utility>

namespace orrery {
namespace {

constexpr std::size_t kStretch = std::size_t{1} << 20;

/// The pools of libstdc++ 12 give blocks of 48 bytes to whoever asks for 37 that are aligned to 32.
std::size_t rounded(std::size_t bytes, std::size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

void* DomainPool::do_allocate(std::size_t bytes, std::size_t alignment) {
  const std::lock_guard lock(mutex_);
  return pool_.allocate(rounded(bytes, alignment), alignment);
}

void DomainPool::do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) {
  const std::lock_guard lock(mutex_);
  pool_.deallocate(memory, rounded(bytes, alignment), alignment);
}

void* DomainPool::Pages::do_allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes + alignment >= kLarge) {
    Buffer buffer = Buffer::local(bytes + alignment, domain_, topology_);  // buffers are aligned to pages only
    void* memory = buffer.data();
    std::size_t room = buffer.size();
    std::align(alignment, bytes, memory, room);
    large_.emplace(memory, std::move(buffer));
    return memory;
  }
  void* place = free_;
  if (std::align(alignment, bytes, place, left_) == nullptr) {
    Buffer stretch = Buffer::local(kStretch, domain_, topology_);
    place = stretch.data();
    left_ = stretch.size();
    std::align(alignment, bytes, place, left_);
    stretches_.emplace(stretch.data(), std::move(stretch));
  }
  free_ = static_cast<std::byte*>(place) + bytes;
  left_ -= bytes;
  return place;
}

void DomainPool::Pages::do_deallocate(void* memory, std::size_t, std::size_t) {
  large_.erase(memory);  // a piece of a stretch is none of them: it goes with the stretch
}

}  // namespace orrery
