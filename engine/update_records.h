// What a worker keeps of the rows that it is known to add to (design section 6): for each, at its slot, whether it was
// touched in this clock; the sum of what was added; and the row as the worker sees it. No hashing, no allocation, and
// nothing to clear: what is of an earlier clock does not count. Two arrangements, of which the faster depends on how
// many of the rows a clock touches: a record at the slot has everything, found without a further load; or values stand
// side by side in the order of first touch, so that a clock of few rows needs little of a cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/access_slots.h"
#include "engine/assert.h"
#include "engine/types.h"

namespace orrery {

/// Bytes without values at first. Not thread-safe.
class Block {
 public:
  explicit Block(std::pmr::memory_resource* memory) : memory_(memory) {}
  ~Block() { give_back(); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  /// At least `bytes`: those that it has, or `room` new ones. What was in them may be gone.
  std::byte* hold(std::size_t bytes, std::size_t room) {
    if (bytes > held_) {
      give_back();
      first_ = static_cast<std::byte*>(memory_->allocate(room, kCacheLine));
      held_ = room;
    }
    return first_;
  }

 private:
  static constexpr std::size_t kCacheLine = 64;
  void give_back() noexcept {
    if (held_ > 0) memory_->deallocate(first_, held_, kCacheLine);
    held_ = 0;
  }

  std::pmr::memory_resource* const memory_;
  std::byte* first_ = nullptr;
  std::size_t held_ = 0;
};

/// Belongs to the worker whose unit runs; between clocks to whoever settles what was added.
template <class T>
class UpdateRecords {
 public:
  /// Of a clock; 0 is of none.
  using Epoch = std::uint32_t;
  static Epoch epoch_of(Clock clock) {
    ORRERY_HEAVY_CHECK(clock >= 0 && clock < Clock{~Epoch{0}} - 1);
    return static_cast<Epoch>(clock) + 1;
  }

  /// `state`, `update`: values of a row with all its state, and of an update. `memory` must outlive it.
  UpdateRecords(std::uint32_t state, std::uint32_t update, std::pmr::memory_resource* memory)
      : at_{.state = state, .update = update}, records_(memory), sums_(memory), rows_(memory), slots_(memory) {}

  /// The clock in which a row was last touched: added to, or seen with updates that the cache lacks. The rest counts in
  /// that clock only.
  struct Touched {
    Epoch clock;
    std::uint32_t place : 30;  ///< in the order of first touch
    std::uint32_t has_sum : 1;
    std::uint32_t has_own : 1;
  };
  static_assert(sizeof(Touched) == 8 && AccessSlots::kMost <= std::uint32_t{1} << 30);
  /// Where everything lies, until follow(): for who accesses many.
  struct Layout {
    std::byte* first = nullptr;  ///< by slot: a Touched, and unless side by side the sum and the row as seen
    std::size_t stride = 0;      ///< of those, in bytes
    std::byte* sums = nullptr;
    std::byte* rows = nullptr;  ///< as seen; who only adds does not touch them
    std::size_t sums_stride = 0, rows_stride = 0;
    bool is_side_by_side = false;
    std::uint32_t state, update;

    Touched& touched(std::uint32_t slot) const noexcept { return *reinterpret_cast<Touched*>(first + slot * stride); }
    [[gnu::always_inline]] T* sum(std::uint32_t slot, Touched touched) const noexcept {
      return reinterpret_cast<T*>(sums + place(slot, touched) * sums_stride);
    }
    [[gnu::always_inline]] T* row(std::uint32_t slot, Touched touched) const noexcept {
      return reinterpret_cast<T*>(rows + place(slot, touched) * rows_stride);
    }

   private:
    [[gnu::always_inline]] std::size_t place(std::uint32_t slot, Touched touched) const noexcept {
      // A jump, not a choice of values: else every address would wait for the load of `touched`.
      if (is_side_by_side) [[unlikely]]
        return touched.place;
      return slot;
    }
  };
  const Layout& layout() const noexcept { return at_; }

  /// Records for the rows of the plan (null: for none), between clocks: what was in them is gone.
  void follow(std::shared_ptr<const AccessSlots> plan, bool side_by_side) {
    plan_ = std::move(plan);
    const std::size_t rows = plan_ == nullptr ? 0 : plan_->size();
    at_.is_side_by_side = side_by_side && rows > 0;
    at_.stride = at_.is_side_by_side ? sizeof(Touched) : record_bytes();
    at_.first = records_.hold(rows * at_.stride, room(rows) * at_.stride);
    // Values need no clearing: they count only after begin_sum() or make_own().
    for (std::size_t slot = 0; slot < rows; ++slot) at_.touched(static_cast<std::uint32_t>(slot)) = Touched{};
    if (at_.is_side_by_side) {
      at_.sums_stride = at_.update * sizeof(T);
      at_.rows_stride = at_.state * sizeof(T);
      // Not cleared, so that memory comes in with the first clock that touches so many.
      at_.sums = sums_.hold(rows * at_.sums_stride, room(rows) * at_.sums_stride);
      at_.rows = rows_.hold(rows * at_.rows_stride, room(rows) * at_.rows_stride);
    } else {
      at_.sums_stride = at_.rows_stride = at_.stride;
      at_.sums = at_.first + sizeof(Touched);
      at_.rows = at_.sums + at_.update * sizeof(T);
    }
    slots_.clear();
    slots_.reserve(rows);
  }
  /// Of a row, at its slot.
  std::size_t record_bytes() const noexcept {
    return (sizeof(Touched) + (std::size_t{at_.state} + at_.update) * sizeof(T) + kAlign - 1) / kAlign * kAlign;
  }
  bool is_side_by_side() const noexcept { return at_.is_side_by_side; }
  const std::shared_ptr<const AccessSlots>& plan() const noexcept { return plan_; }

  Epoch now() const noexcept { return now_; }
  void begin(Clock clock) {
    now_ = epoch_of(clock);
    slots_.clear();
  }
  std::uint32_t slot_of(std::uint32_t row) const noexcept {
    return plan_ == nullptr ? AccessSlots::kNone : plan_->find(row);
  }

  /// Slots that were touched in this clock, in the order of their first touch; not all need have a sum.
  std::span<const std::uint32_t> touched() const noexcept { return slots_; }
  /// The same if this clock is that of `epoch`, else none.
  std::span<const std::uint32_t> touched(Epoch epoch) const noexcept {
    return now_ == epoch ? touched() : std::span<const std::uint32_t>();
  }
  /// The clock in which the row was touched last, as an epoch.
  Epoch touched_in(std::uint32_t slot) const noexcept { return at_.touched(slot).clock; }
  /// This clock's sum for the row, or null.
  const T* sum(std::uint32_t slot) const noexcept { return sum_of(slot, now_); }
  bool has_sum(std::uint32_t slot) const noexcept { return sum(slot) != nullptr; }
  /// Where it adds up, once it was begun: at zero.
  T* sum_to_add(std::uint32_t slot) noexcept { return at_.sum(slot, at_.touched(slot)); }
  void begin_sum(std::uint32_t slot) {
    touch(slot).has_sum = 1;
    std::fill_n(sum_to_add(slot), at_.update, T{});
  }
  /// What was summed in the clock of `epoch`, or null.
  T* sum_of(std::uint32_t slot, Epoch epoch) const noexcept {
    const Touched touched = at_.touched(slot);
    return touched.clock == epoch && touched.has_sum != 0 ? at_.sum(slot, touched) : nullptr;
  }
  /// The sum of touched()[i], if it has one.
  T* sum_at(std::size_t i) const noexcept {
    const std::size_t place = at_.is_side_by_side ? i : slots_[i];
    return reinterpret_cast<T*>(at_.sums + place * at_.sums_stride);
  }

  /// The row as the worker sees it in this clock, or null.
  T* own(std::uint32_t slot) const noexcept {
    const Touched touched = at_.touched(slot);
    return touched.clock == now_ && touched.has_own != 0 ? at_.row(slot, touched) : nullptr;
  }
  T* make_own(std::uint32_t slot) {
    Touched& touched = touch(slot);
    touched.has_own = 1;
    return at_.row(slot, touched);
  }

 private:
  static constexpr std::size_t kAlign = std::max(alignof(Touched), alignof(T));
  static_assert(std::is_trivially_copyable_v<T> && sizeof(Touched) % alignof(T) == 0);

  Touched& touch(std::uint32_t slot) {
    Touched& touched = at_.touched(slot);
    if (touched.clock != now_) {
      touched = {.clock = now_, .place = 0, .has_sum = 0, .has_own = 0};
      touched.place = static_cast<std::uint32_t>(slots_.size()) & (AccessSlots::kMost - 1);
      slots_.push_back(slot);
    }
    return touched;
  }
  // A plan grows often in the first clocks. Room for more costs addresses only, and saves to bring its pages in anew.
  std::size_t room(std::size_t rows) const {
    return rows == 0 ? 0 : std::min<std::size_t>(plan_->table_rows(), 2 * rows);
  }

  Layout at_;
  std::shared_ptr<const AccessSlots> plan_;
  Block records_;                          ///< by slot
  Block sums_, rows_;                      ///< by place, where they stand side by side
  std::pmr::vector<std::uint32_t> slots_;  ///< by place
  Epoch now_ = 0;
};

}  // namespace orrery
