#include "engine/data/rating_store.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>

namespace orrery {

namespace {

constexpr std::size_t kChunkBytes = RatingStore::kChunk * sizeof(Rating);
constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Mapped, not from the heap: the heap would keep freed chunks below the trainer's own allocations. Huge pages, because
// first touches of small ones cost as much as parsing; but not for a few ratings, which would pay for a whole one.
// Pages that are never written cost nothing.
Rating* map_chunk(bool huge_pages) {
  void* memory = ::mmap(nullptr, kChunkBytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  auto* begin = static_cast<char*>(memory);
  const std::size_t before = (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  if (before > 0) ::munmap(begin, before);
  ::munmap(begin + before + kChunkBytes, kHugePage - before);
  if (huge_pages) ::madvise(begin + before, kChunkBytes, MADV_HUGEPAGE);  // advice: the kernel may decline
  return reinterpret_cast<Rating*>(begin + before);
}

}  // namespace

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

void RatingStore::grow(std::uint64_t size) {
  const std::uint64_t chunks = (size + kChunk - 1) / kChunk;
  chunks_.reserve(static_cast<std::size_t>(chunks));
  while (chunks_.size() < chunks) chunks_.push_back(map_chunk(size >= kHugePage / sizeof(Rating)));
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
