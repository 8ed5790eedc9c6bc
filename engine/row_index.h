// From row keys to positions in a list, for the few rows of a table that one worker touches in one clock. Open
// addressing with linear probing: one cache line for most look-ups, and clearing costs what was entered.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

namespace orrery {

/// Not thread-safe. Keys are below 2^32 - 1.
class RowIndex {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  explicit RowIndex(std::pmr::memory_resource* memory = std::pmr::get_default_resource()) : places_(memory) {}

  /// The position of `row`, or kNone.
  std::uint32_t find(std::uint32_t row) const noexcept {
    if (count_ == 0) return kNone;
    for (std::size_t i = home(row);; i = (i + 1) & mask()) {
      if (places_[i].row == row) return places_[i].position;
      if (places_[i].row == kNone) return kNone;
    }
  }

  /// Enters a row that is not there yet.
  void insert(std::uint32_t row, std::uint32_t position) {
    if (2 * (count_ + 1) > places_.size()) grow();
    put({row, position});
    ++count_;
  }

  /// Forgets everything; the memory stays. Cost: that of the memory.
  void clear() noexcept {
    if (count_ == 0) return;
    for (Place& place : places_) place.row = kNone;
    count_ = 0;
  }

 private:
  struct Place {
    std::uint32_t row = kNone;
    std::uint32_t position = 0;
  };

  std::size_t mask() const noexcept { return places_.size() - 1; }
  std::size_t home(std::uint32_t row) const noexcept {
    return (row * std::uint64_t{0x9e3779b97f4a7c15}) >> shift_;  // Fibonacci hashing: neighbours spread
  }
  void put(Place place) noexcept {
    std::size_t i = home(place.row);
    while (places_[i].row != kNone) i = (i + 1) & mask();
    places_[i] = place;
  }
  void grow() {
    std::pmr::vector<Place> old(places_.empty() ? 16 : 2 * places_.size(), places_.get_allocator());
    old.swap(places_);
    shift_ = 64 - std::countr_zero(places_.size());
    for (const Place& place : old) {
      if (place.row != kNone) put(place);
    }
  }

  std::pmr::vector<Place> places_;  ///< a power of two, at most half full
  std::size_t count_ = 0;
  int shift_ = 64;
};

}  // namespace orrery
