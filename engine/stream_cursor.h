// A worker's accesses along a stream of rows (row_stream.h): Table's reads and adds with everything that does not
// change within a unit looked up once, so that what is left of an access is an index and a check that the row was
// touched.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/assert.h"
#include "engine/row_stream.h"
#include "engine/types.h"
#include "engine/worker_view.h"

namespace orrery {

/// What a unit does along a stream: reads and adds as those of Table, with the same values, by place in the stream.
/// Not beyond the unit. It may be mixed with accesses by row and with other cursors of the worker.
template <class T>
class StreamCursor {
 public:
  StreamCursor(WorkerView<T>& view, Clock clock, RowStream& stream)
      : view_(view),
        clock_(clock),
        is_direct_(view.begin_stream(clock)),
        fetches_ahead_(is_direct_ && view.fetches_ahead()),
        width_(view.width()),
        now_(view.records().now()),
        count_(stream.rows().size()),
        rows_(stream.rows().data()),
        slots_(stream.slots(view.records().plan()).data()),
        settled_(is_direct_ ? view.settled() : nullptr),
        records_(view.records().layout()) {}
  ~StreamCursor() { view_.learner().count_along(reads_, adds_); }
  StreamCursor(const StreamCursor&) = delete;
  StreamCursor& operator=(const StreamCursor&) = delete;

  /// See Table::read().
  [[gnu::always_inline]] std::span<const T> read(std::size_t place) {
    ORRERY_HEAVY_CHECK(place < count_);
    if (fetches_ahead_) fetch(place);
    const std::uint32_t row = rows_[place], slot = slots_[place];
    if (!is_direct_) [[unlikely]]
      return {view_.read_at(clock_, row, slot), width_};
    ++reads_;
    if (slot == kNone) return {view_.settled_unplanned(row), width_};
    const auto touched = records_.touched(slot);
    if (touched.clock != now_) return {settled_ + std::size_t{row} * width_, width_};
    if (touched.has_own == 0) [[unlikely]]
      return {view_.make_own(row, slot), width_};
    return {records_.row(slot, touched), width_};
  }

  /// See Table::add().
  [[gnu::always_inline]] void add(std::size_t place, std::span<const T> delta) {
    ORRERY_HEAVY_CHECK(place < count_ && delta.size() == width_);
    const std::uint32_t row = rows_[place], slot = slots_[place];
    if (!is_direct_ || slot == kNone) [[unlikely]]
      return view_.add_at(row, slot, delta);
    const auto touched = begin_add(row, slot);
    T* __restrict sum = records_.sum(slot, touched);
    T* __restrict own = records_.row(slot, touched);
    const T* __restrict added = delta.data();
    if (touched.has_own != 0) {
      for (std::uint32_t d = 0; d < width_; ++d) {
        sum[d] += added[d];
        own[d] += added[d];
      }
    } else {
      for (std::uint32_t d = 0; d < width_; ++d) sum[d] += added[d];
    }
  }
  [[gnu::always_inline]] void add(std::size_t place, std::uint32_t column, T delta) {
    ORRERY_HEAVY_CHECK(place < count_ && column < width_);
    const std::uint32_t row = rows_[place], slot = slots_[place];
    if (!is_direct_ || slot == kNone) [[unlikely]]
      return view_.add_at(row, slot, column, delta);
    const auto touched = begin_add(row, slot);
    records_.sum(slot, touched)[column] += delta;
    if (touched.has_own != 0) records_.row(slot, touched)[column] += delta;
  }

 private:
  using Records = UpdateRecords<T>;
  static constexpr std::uint32_t kNone = AccessSlots::kNone;
  // Far enough to hide a miss behind the arithmetic of small rows, near enough not to be evicted again.
  static constexpr std::size_t kAhead = 16;

  // Settled rows that were touched have a sum: the worker sees them other than the cache only for what it added.
  [[gnu::always_inline]] typename Records::Touched begin_add(std::uint32_t row, std::uint32_t slot) {
    ++adds_;
    if (records_.touched(slot).clock != now_) [[unlikely]]
      view_.begin_sum(row, slot);
    return records_.touched(slot);
  }
  // Inlined always: a function of nothing but prefetches is taken for one without effect, and calls of it are removed.
  [[gnu::always_inline]] void fetch(std::size_t place) const {
    const std::size_t ahead = std::min(place + kAhead, count_ - 1);
    const std::uint32_t slot = slots_[ahead];
    if (slot == kNone) return __builtin_prefetch(settled_ + std::size_t{rows_[ahead]} * width_);
    if (!records_.is_side_by_side) return __builtin_prefetch(&records_.touched(slot));
    // Its `touched` was fetched before.
    const auto touched = records_.touched(slot);
    __builtin_prefetch(touched.clock == now_ ? records_.row(slot, touched)
                                             : settled_ + std::size_t{rows_[ahead]} * width_);
    const std::uint32_t later = slots_[std::min(place + 2 * kAhead, count_ - 1)];
    if (later != kNone) __builtin_prefetch(&records_.touched(later));
  }

  WorkerView<T>& view_;
  const Clock clock_;
  const bool is_direct_, fetches_ahead_;
  const std::uint32_t width_;
  const typename Records::Epoch now_;
  const std::size_t count_;
  const std::uint32_t* const rows_;
  const std::uint32_t* const slots_;
  const T* const settled_;
  const typename Records::Layout records_;
  std::uint64_t reads_ = 0, adds_ = 0;
};

}  // namespace orrery
