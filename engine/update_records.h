// What a worker keeps of the rows that it is known to add to (design section 6): a record for each, at its slot, with
// the sum of what it added in this clock and the row as it sees it. No hashing, no allocation, and nothing to clear:
// what is of an earlier clock does not count.
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
      : state_(state),
        update_(update),
        stride_((sizeof(Touched) + (std::size_t{state} + update) * sizeof(T) + kAlign - 1) / kAlign * kAlign),
        bytes_(memory),
        added_(memory) {}

  /// The clocks in which a row was last added to, and last seen.
  struct Touched {
    Epoch added, own;
  };
  /// Where records lie, until follow(): for who accesses many.
  class Layout {
   public:
    Layout(std::byte* first, std::size_t stride, std::uint32_t state) : first_(first), stride_(stride), state_(state) {}
    const std::byte* of(std::uint32_t slot) const noexcept { return first_ + slot * stride_; }
    Touched touched(std::uint32_t slot) const noexcept { return *reinterpret_cast<const Touched*>(of(slot)); }
    T* row(std::uint32_t slot) const noexcept {
      return reinterpret_cast<T*>(first_ + slot * stride_ + sizeof(Touched));
    }
    T* sum(std::uint32_t slot) const noexcept { return row(slot) + state_; }

   private:
    std::byte* first_;
    std::size_t stride_;
    std::uint32_t state_;
  };
  Layout layout() noexcept { return {bytes_.data(), stride_, state_}; }

  /// Records for the rows of the plan (null: for none), between clocks: what was in them is gone.
  void follow(std::shared_ptr<const AccessSlots> plan) {
    plan_ = std::move(plan);
    const std::size_t rows = plan_ == nullptr ? 0 : plan_->size();
    bytes_.assign(rows * stride_, std::byte{0});
    added_.clear();
    added_.reserve(rows);
  }
  const std::shared_ptr<const AccessSlots>& plan() const noexcept { return plan_; }

  Epoch now() const noexcept { return now_; }
  void begin(Clock clock) {
    now_ = epoch_of(clock);
    added_.clear();
  }
  std::uint32_t slot_of(std::uint32_t row) const noexcept {
    return plan_ == nullptr ? AccessSlots::kNone : plan_->find(row);
  }

  /// Slots that were added to in this clock, in the order of their first touch.
  std::span<const std::uint32_t> added() const noexcept { return added_; }
  /// The same if this clock is that of `epoch`, else none.
  std::span<const std::uint32_t> added(Epoch epoch) const noexcept {
    return now_ == epoch ? added() : std::span<const std::uint32_t>();
  }
  /// The clock in which the row was added to last, as an epoch.
  Epoch added_in(std::uint32_t slot) const noexcept { return header(slot).added; }
  /// This clock's sum for the row, or null.
  const T* sum(std::uint32_t slot) const noexcept {
    return header(slot).added == now_ ? const_cast<UpdateRecords*>(this)->values(slot) + state_ : nullptr;
  }
  bool has_sum(std::uint32_t slot) const noexcept { return header(slot).added == now_; }
  /// Where it adds up, once it was begun: at zero.
  T* sum_to_add(std::uint32_t slot) noexcept { return values(slot) + state_; }
  void begin_sum(std::uint32_t slot) {
    header(slot).added = now_;
    added_.push_back(slot);
    std::fill_n(sum_to_add(slot), update_, T{});
  }
  /// What was summed in the clock of `epoch`, or null.
  T* sum_of(std::uint32_t slot, Epoch epoch) noexcept {
    return header(slot).added == epoch ? values(slot) + state_ : nullptr;
  }
  /// The sum has gone elsewhere.
  void take(std::uint32_t slot) noexcept { header(slot).added = 0; }

  /// The row as the worker sees it in this clock, or null.
  T* own(std::uint32_t slot) noexcept { return header(slot).own == now_ ? values(slot) : nullptr; }
  T* make_own(std::uint32_t slot) noexcept {
    header(slot).own = now_;
    return values(slot);
  }

 private:
  static constexpr std::size_t kAlign = std::max(alignof(Touched), alignof(T));
  static_assert(std::is_trivially_copyable_v<T> && sizeof(Touched) % alignof(T) == 0);

  Touched& header(std::uint32_t slot) noexcept { return *reinterpret_cast<Touched*>(bytes_.data() + slot * stride_); }
  const Touched& header(std::uint32_t slot) const noexcept { return const_cast<UpdateRecords*>(this)->header(slot); }
  T* values(std::uint32_t slot) noexcept {
    return reinterpret_cast<T*>(bytes_.data() + slot * stride_ + sizeof(Touched));
  }

  const std::uint32_t state_, update_;
  const std::size_t stride_;
  std::shared_ptr<const AccessSlots> plan_;
  std::pmr::vector<std::byte> bytes_;  ///< by slot: header, the row as seen, the sum
  std::pmr::vector<std::uint32_t> added_;
  Epoch now_ = 0;
};

}  // namespace orrery
