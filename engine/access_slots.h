// The learned part of a worker's access pattern (design section 6): which rows of a table it adds to, each with a slot,
// in the order of first touch. A planned access finds what the worker keeps of a row in an array, at the row's slot. A
// plan that has every row, in their order, needs no look-up at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "engine/row_index.h"

namespace orrery {

/// Rows are found through pages of 256, so memory grows with the rows that are touched, not with the table. Filled by
/// one thread; constant once it is shared.
class AccessSlots {
 public:
  static constexpr std::uint32_t kNone = RowIndex::kNone;
  /// Rows of a plan.
  static constexpr std::uint32_t kMost = std::uint32_t{1} << 30;

  /// For a table of `rows`. `memory` must outlive it.
  explicit AccessSlots(std::uint32_t rows, std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : table_rows_(rows),
        page_of_((std::size_t{rows} >> kPageBits) + 1, kNone, memory),
        pages_(memory),
        rows_(memory) {}
  /// A copy in other memory, to be extended.
  AccessSlots(const AccessSlots& other, std::pmr::memory_resource* memory)
      : table_rows_(other.table_rows_),
        is_in_order_(other.is_in_order_),
        is_whole_(other.is_whole_),
        page_of_(other.page_of_, memory),
        pages_(other.pages_, memory),
        rows_(other.rows_, memory) {}

  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(rows_.size()); }
  std::uint32_t row(std::uint32_t slot) const noexcept { return rows_[slot]; }
  std::uint32_t table_rows() const noexcept { return table_rows_; }
  /// It has every row of the table, each at the slot of its number.
  bool is_whole() const noexcept { return is_whole_; }
  /// The slot of a row, or kNone. Cost: two loads, of which one is of a short array; none when it is whole.
  std::uint32_t find(std::uint32_t row) const noexcept {
    if (is_whole_) return row;
    const std::uint32_t page = page_of_[row >> kPageBits];
    return page == kNone ? kNone : pages_[(std::size_t{page} << kPageBits) + (row & kPageMask)];
  }
  /// Gives the row the next slot unless it has one.
  void enter(std::uint32_t row) {
    std::uint32_t& page = page_of_[row >> kPageBits];
    if (page == kNone) {
      page = static_cast<std::uint32_t>(pages_.size() >> kPageBits);
      pages_.resize(pages_.size() + (std::size_t{1} << kPageBits), kNone);
    }
    std::uint32_t& slot = pages_[(std::size_t{page} << kPageBits) + (row & kPageMask)];
    if (slot != kNone) return;
    slot = size();
    is_in_order_ = is_in_order_ && slot == row;
    rows_.push_back(row);
    is_whole_ = is_in_order_ && size() == table_rows_;
  }

 private:
  static constexpr unsigned kPageBits = 8;
  static constexpr std::uint32_t kPageMask = (1U << kPageBits) - 1;

  std::uint32_t table_rows_;
  bool is_in_order_ = true, is_whole_ = false;
  std::pmr::vector<std::uint32_t> page_of_;  ///< by row / 256
  std::pmr::vector<std::uint32_t> pages_;    ///< slots
  std::pmr::vector<std::uint32_t> rows_;     ///< by slot
};

}  // namespace orrery
