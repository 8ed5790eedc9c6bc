// Rows that a worker has touched in one clock, each with its position in the order of first touch. A planned row is
// found by its slot (design section 6), any other by hash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "engine/access_slots.h"
#include "engine/row_index.h"

namespace orrery {

/// Not thread-safe. For planned rows a sparse set: position_of_[slot] counts only if the row at that position is the
/// slot's, so that forgetting all rows costs nothing.
class TouchedRows {
 public:
  static constexpr std::uint32_t kNone = RowIndex::kNone;

  explicit TouchedRows(std::pmr::memory_resource* memory) : position_of_(memory), index_(memory), rows_(memory) {}

  /// While empty: rows of the plan are found by slot from now on; null: none are. Others may share the plan.
  void follow(std::shared_ptr<const AccessSlots> plan) {
    plan_ = std::move(plan);
    const std::size_t planned = plan_ == nullptr ? 0 : plan_->size();
    position_of_.resize(planned);
    rows_.reserve(planned);
  }

  std::span<const std::uint32_t> rows() const noexcept { return rows_; }
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(rows_.size()); }

  /// The position of `row`, or kNone. `slot`: of the row in a plan that begins as the one that is followed, or kNone.
  std::uint32_t find(std::uint32_t row, std::uint32_t slot) const noexcept {
    if (slot >= position_of_.size()) return index_.find(row);
    const std::uint32_t position = position_of_[slot];
    return position < rows_.size() && rows_[position] == row ? position : kNone;
  }
  std::uint32_t find(std::uint32_t row) const noexcept { return find(row, slot_of(row)); }

  /// Appends a row that is not there. @return its position.
  std::uint32_t insert(std::uint32_t row, std::uint32_t slot) {
    const std::uint32_t position = size();
    if (slot < position_of_.size()) {
      position_of_[slot] = position;
    } else {
      index_.insert(row, position);
    }
    rows_.push_back(row);
    return position;
  }
  std::uint32_t slot_of(std::uint32_t row) const noexcept { return plan_ == nullptr ? kNone : plan_->find(row); }

  void clear() noexcept {
    index_.clear();
    rows_.clear();
  }

 private:
  std::shared_ptr<const AccessSlots> plan_;
  std::pmr::vector<std::uint32_t> position_of_;  ///< by slot
  RowIndex index_;
  std::pmr::vector<std::uint32_t> rows_;
};

}  // namespace orrery
