// Where ratings live between the reader and the trainer: 12 bytes each in fixed chunks that are given back to the
// system one by one, so that reading and building the trainer's layout together stay below 24 bytes a rating.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace orrery {

/// One observed value. Indices are those of the id maps; IdMap::kUnseen where an id is not in a given map.
struct Rating {
  std::uint32_t user;
  std::uint32_t item;
  float value;  ///< NaN where the input gave a pair without a value
};
static_assert(sizeof(Rating) == 12);

/// Ratings in the order of the input. Chunk c holds the ratings [c · kChunk, (c + 1) · kChunk): a function of the data
/// only, so sums over chunks are reproducible. Different chunks may be used by different threads.
class RatingStore {
 public:
  static constexpr std::size_t kChunk = std::size_t{1} << 19;  ///< 6 MiB: three huge pages

  RatingStore() = default;
  ~RatingStore();
  RatingStore(RatingStore&& other) noexcept;
  RatingStore& operator=(RatingStore&& other) noexcept;

  std::uint64_t size() const { return size_; }
  std::size_t chunks() const { return chunks_.size(); }
  /// Grows to `size` ratings; the new ones are zero. Throws std::bad_alloc.
  void grow(std::uint64_t size);
  /// The ratings of a chunk; empty after release().
  std::span<Rating> chunk(std::size_t c);
  std::span<const Rating> chunk(std::size_t c) const;
  /// Gives the memory of a chunk back to the system at once; size() stays. Other chunks may be in use meanwhile.
  void release(std::size_t c);
  /// One rating of a chunk that was not released.
  const Rating& operator[](std::uint64_t i) const { return chunks_[i / kChunk][i % kChunk]; }
  /// Appends one rating; for small inputs and tests.
  void push_back(Rating rating);

 private:
  std::size_t chunk_size(std::size_t c) const;

  std::uint64_t size_ = 0;
  std::vector<Rating*> chunks_;
};

}  // namespace orrery
