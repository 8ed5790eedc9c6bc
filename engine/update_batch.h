// What one worker adds to one table in one clock: the unit in which updates are handed over, merged and made visible
// (design section 5). Sparse in rows, dense in a row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "engine/access_slots.h"
#include "engine/touched_rows.h"

namespace orrery {

/// Not thread-safe; handed from one owner to the next.
template <class T>
class UpdateBatch {
 public:
  static constexpr std::uint32_t kNone = TouchedRows::kNone;

  /// `memory` must outlive it.
  explicit UpdateBatch(std::uint32_t width, std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : width_(width), touched_(memory), values_(memory) {}

  /// While empty: rows of the plan are found by slot from now on (TouchedRows).
  void follow(std::shared_ptr<const AccessSlots> plan) { touched_.follow(std::move(plan)); }

  bool empty() const noexcept { return touched_.size() == 0; }
  /// The rows that were added to, in the order of their first touch.
  std::span<const std::uint32_t> rows() const noexcept { return touched_.rows(); }
  /// The sum for rows()[i]; `width` values.
  const T* values(std::size_t i) const noexcept { return values_.data() + i * width_; }
  T* values(std::size_t i) noexcept { return values_.data() + i * width_; }
  /// The position of `row` in rows(), or kNone. With its slot, see TouchedRows::find().
  std::uint32_t find(std::uint32_t row) const noexcept { return touched_.find(row); }
  std::uint32_t find(std::uint32_t row, std::uint32_t slot) const noexcept { return touched_.find(row, slot); }

  /// The sum for `row`, zero when it is new. Valid until the next call.
  T* at(std::uint32_t row) {
    const std::uint32_t slot = touched_.slot_of(row);
    std::uint32_t position = touched_.find(row, slot);
    if (position == kNone) {
      position = touched_.insert(row, slot);
      values_.resize(values_.size() + width_, T{});
    }
    return values_.data() + std::size_t{position} * width_;
  }

  /// Adds what stands to the right of this batch in the reduction tree. Rows that only one side has keep their bits.
  void merge(const UpdateBatch& right) {
    for (std::size_t i = 0; i < right.rows().size(); ++i) {
      const std::uint32_t row = right.rows()[i], slot = touched_.slot_of(row);
      const T* theirs = right.values(i);
      if (const std::uint32_t position = touched_.find(row, slot); position != kNone) {
        T* mine = values_.data() + std::size_t{position} * width_;
        for (std::uint32_t d = 0; d < width_; ++d) mine[d] += theirs[d];
      } else {
        append(row, slot, theirs);
      }
    }
  }

  /// A row that is not there, with its sum.
  void append(std::uint32_t row, std::uint32_t slot, const T* values) {
    touched_.insert(row, slot);
    values_.insert(values_.end(), values, values + width_);
  }

  void clear() noexcept {
    touched_.clear();
    values_.clear();
  }

 private:
  std::uint32_t width_;
  TouchedRows touched_;
  std::pmr::vector<T> values_;
};

}  // namespace orrery
