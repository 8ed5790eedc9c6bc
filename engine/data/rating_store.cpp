#include "engine/data/rating_store.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

namespace orrery {

namespace {
constexpr std::size_t kChunkBytes = RatingStore::kChunk * sizeof(Rating);
}

RatingStore::~RatingStore() {
  for (std::size_t c = 0; c < chunks_.size(); ++c) release(c);
}

RatingStore::RatingStore(RatingStore&& other) noexcept
    : size_(std::exchange(other.size_, 0)), chunks_(std::exchange(other.chunks_, {})) {}

RatingStore& RatingStore::operator=(RatingStore&& other) noexcept {
  std::swap(size_, other.size_);
  std::swap(chunks_, other.chunks_);
  return *this;
}

// Mapped, not from the heap: the heap would keep freed chunks below the trainer's own allocations. Pages that are never
// written cost nothing, so the last chunk has no slack either.
void RatingStore::grow(std::uint64_t size) {
  const std::uint64_t chunks = (size + kChunk - 1) / kChunk;
  chunks_.reserve(static_cast<std::size_t>(chunks));
  while (chunks_.size() < chunks) {
    void* memory = ::mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    chunks_.push_back(static_cast<Rating*>(memory));
  }
  size_ = std::max(size_, size);
}

std::size_t RatingStore::chunk_size(std::size_t c) const {
  if (chunks_[c] == nullptr) return 0;
  return static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, size_ - c * kChunk));
}

std::span<Rating> RatingStore::chunk(std::size_t c) { return {chunks_[c], chunk_size(c)}; }

std::span<const Rating> RatingStore::chunk(std::size_t c) const { return {chunks_[c], chunk_size(c)}; }

void RatingStore::release(std::size_t c) {
  if (chunks_[c] != nullptr) ::munmap(chunks_[c], kChunkBytes);
  chunks_[c] = nullptr;
}

void RatingStore::push_back(Rating rating) {
  grow(size_ + 1);
  chunks_[(size_ - 1) / kChunk][(size_ - 1) % kChunk] = rating;
}

}  // namespace orrery
