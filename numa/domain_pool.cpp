#include "numa/domain_pool.h"

#include <memory>
#include <utility>

namespace orrery {
namespace {

constexpr std::size_t kStretch = std::size_t{1} << 20;

}  // namespace

void* DomainPool::Pages::do_allocate(std::size_t bytes, std::size_t alignment) {
  const std::lock_guard lock(mutex_);
  if (bytes >= kLarge) {
    Buffer buffer = Buffer::local(bytes, domain_, topology_);
    void* memory = buffer.data();
    large_.emplace(memory, std::move(buffer));
    return memory;
  }
  void* place = free_;
  if (std::align(alignment, bytes, place, left_) == nullptr) {
    Buffer stretch = Buffer::local(kStretch, domain_, topology_);
    place = stretch.data();
    left_ = stretch.size();
    stretches_.emplace(place, std::move(stretch));
  }
  free_ = static_cast<std::byte*>(place) + bytes;
  left_ -= bytes;
  return place;
}

void DomainPool::Pages::do_deallocate(void* memory, std::size_t, std::size_t) {
  const std::lock_guard lock(mutex_);
  large_.erase(memory);  // a piece of a stretch is none of them: it goes with the stretch
}

}  // namespace orrery
