// Rows that one worker accesses again and again in an order that comes from its data, such as the columns of its part
// of a sparse matrix (design section 6, key streams). Their slots are looked up once for each plan, so that what is
// left of an access is an index; and because what comes next is known, it can be fetched ahead.
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

namespace orrery {

/// Of one table and one worker (Table::stream()). Belongs to the worker whose unit runs. Memory: four bytes a place.
class RowStream {
 public:
  /// `rows` and `memory` must outlive it.
  RowStream(std::span<const std::uint32_t> rows, std::pmr::memory_resource* memory) : rows_(rows), slots_(memory) {}
  std::span<const std::uint32_t> rows() const noexcept { return rows_; }

  /// The slots of the rows in a plan (null: none have any). Cost: a look-up for each when the plan is another one.
  std::span<const std::uint32_t> slots(const std::shared_ptr<const AccessSlots>& plan) {
    if (slots_.size() != rows_.size() || plan != plan_) {
      slots_.resize(rows_.size());
      std::transform(rows_.begin(), rows_.end(), slots_.begin(),
                     [&](std::uint32_t row) { return plan == nullptr ? AccessSlots::kNone : plan->find(row); });
      plan_ = plan;
    }
    return slots_;
  }

 private:
  std::span<const std::uint32_t> rows_;
  std::pmr::vector<std::uint32_t> slots_;
  std::shared_ptr<const AccessSlots> plan_;  ///< whose slots they are
};

}  // namespace orrery
