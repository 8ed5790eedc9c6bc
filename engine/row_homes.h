// Where the rows of a table are at home: each on one node, which applies all updates to it (design section 5).
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/types.h"

namespace orrery {

/// Contiguous ranges of equal size, the last ones shorter or empty: a function of the table and the number of nodes.
class RowHomes {
 public:
  RowHomes(std::uint32_t rows, NodeId nodes) : rows_(rows), nodes_(nodes), rows_of_node_((rows - 1) / nodes + 1) {}

  NodeId of(std::uint32_t row) const noexcept { return nodes_ == 1 ? 0 : row / rows_of_node_; }
  /// Rows [first(n), first(n + 1)) are at home on node n.
  std::uint32_t first(NodeId node) const noexcept {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(rows_, std::uint64_t{node} * rows_of_node_));
  }
  bool has_rows(NodeId node) const noexcept { return first(node) < first(node + 1); }
  bool is_home(NodeId node, std::uint32_t row) const noexcept { return first(node) <= row && row < first(node + 1); }
  /// Nodes that are home to some row.
  NodeId count() const noexcept { return (rows_ - 1) / rows_of_node_ + 1; }

 private:
  std::uint32_t rows_;
  NodeId nodes_;
  std::uint32_t rows_of_node_;
};

}  // namespace orrery
