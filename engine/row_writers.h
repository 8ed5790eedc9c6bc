// Which workers of this node are known to add to a row, and where they keep its sum (design section 6). So that sums of
// a clock are put together row by row, straight from where they lie.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/access_slots.h"

namespace orrery {

class RowWriters {
 public:
  struct Writer {
    std::uint32_t view;  ///< position of the worker on this node
    std::uint32_t slot;  ///< of the row, in that worker's plan
  };

  /// For a table of `rows`; plans by view, null: the worker has none. Cost: that of the rows and the plans.
  void build(std::uint32_t rows, std::span<const std::shared_ptr<const AccessSlots>> plans) {
    first_.assign(rows + std::size_t{1}, 0);
    for (const auto& plan : plans) {
      for (std::uint32_t slot = 0; plan != nullptr && slot < plan->size(); ++slot) ++first_[plan->row(slot) + 1];
    }
    for (std::size_t row = 0; row < rows; ++row) first_[row + 1] += first_[row];
    writers_.resize(first_[rows]);
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (std::uint32_t view = 0; view < plans.size(); ++view) {
      const auto& plan = plans[view];
      for (std::uint32_t slot = 0; plan != nullptr && slot < plan->size(); ++slot) {
        writers_[next[plan->row(slot)]++] = {view, slot};
      }
    }
  }

  bool empty() const noexcept { return writers_.empty(); }
  /// Of all rows together.
  std::size_t size() const noexcept { return writers_.size(); }
  /// In the order of views.
  std::span<const Writer> of(std::uint32_t row) const noexcept {
    return std::span(writers_).subspan(first_[row], first_[row + std::size_t{1}] - first_[row]);
  }
  /// The first row of part `part` of `parts`, which have about as many writers each; of part `parts`: the end.
  std::uint32_t first_row(std::size_t part, std::size_t parts) const {
    const auto at = std::lower_bound(first_.begin(), first_.end() - 1, writers_.size() * part / parts);
    return part == parts ? static_cast<std::uint32_t>(first_.size() - 1)
                         : static_cast<std::uint32_t>(at - first_.begin());
  }

 private:
  std::vector<std::size_t> first_;  ///< by row
  std::vector<Writer> writers_;
};

}  // namespace orrery
