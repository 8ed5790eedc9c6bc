// Where the rows of a table are at home: each on one node, which applies all updates to it (design section 5).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/types.h"

namespace orrery {

/// By ranges: contiguous, of equal size, the last ones shorter or empty; a function of the table and the number of
/// nodes. By use (home_by_use()): one entry for each row. Copies share it.
class RowHomes {
 public:
  RowHomes(std::uint32_t rows, NodeId nodes) : nodes_(nodes), rows_of_range_((rows - 1) / nodes + 1), rows_of_(nodes) {
    for (NodeId node = 0; node < nodes; ++node) {
      const std::uint64_t first = std::uint64_t{node} * rows_of_range_;
      rows_of_[node] = static_cast<std::uint32_t>(std::min<std::uint64_t>(rows, first + rows_of_range_) -
                                                  std::min<std::uint64_t>(rows, first));
    }
  }
  /// `home`: by row.
  RowHomes(std::vector<NodeId> home, NodeId nodes) : nodes_(nodes), rows_of_(nodes, 0) {
    for (const NodeId node : home) ++rows_of_[node];
    home_ = std::make_shared<const std::vector<NodeId>>(std::move(home));
  }

  NodeId of(std::uint32_t row) const noexcept {
    if (nodes_ == 1) return 0;
    return home_ != nullptr ? (*home_)[row] : row / rows_of_range_;
  }
  bool is_home(NodeId node, std::uint32_t row) const noexcept { return of(row) == node; }
  std::uint32_t rows_of(NodeId node) const noexcept { return rows_of_[node]; }
  bool has_rows(NodeId node) const noexcept { return rows_of_[node] > 0; }
  /// Nodes that are home to some row.
  NodeId count() const noexcept {
    return static_cast<NodeId>(std::count_if(rows_of_.begin(), rows_of_.end(), [](auto rows) { return rows > 0; }));
  }

 private:
  NodeId nodes_;
  std::uint32_t rows_of_range_ = 1;
  std::vector<std::uint32_t> rows_of_;  ///< by node
  std::shared_ptr<const std::vector<NodeId>> home_;
};

/// The node that accesses a row most is its home; of equal ones that with fewer accesses to its rows so far. Rows that
/// are accessed more choose first, and no node gets more than a quarter beyond its share of rows or accesses: whom the
/// others would wait for. `counts`: by node and row. Cost: nodes × rows, and a sort of the rows. Cui et al., SoCC 2014,
/// section 3.2, with the limit added.
std::vector<NodeId> home_by_use(std::span<const std::vector<std::uint32_t>> counts);

}  // namespace orrery
