// How columns of the other nodes come to where a problem is solved.
//
// Every node solves the problem on the working set by itself, with the same numbers and so the same bits, instead of
// asking the others at every step of a coordinate. For that it needs the entries of a few columns that others keep: the
// working set's, and those whose inner products are kept. Their owners send them to all, once, when a column is first
// wanted, and all forget the same ones when more than twice of what is wanted has come together. So everybody knows who
// lacks what without asking.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/lasso_design.h"
#include "engine/collective.h"
#include "engine/message.h"

namespace orrery::lasso {

class ColumnLoans {
 public:
  /// Borrows the design, whose lent columns are these.
  explicit ColumnLoans(Design& design);

  /// All nodes, with the same columns: what is to be viewed from now on until the next call.
  /// @return whether entries miss, which each node now has to pack() and take() of the others
  bool want(std::span<const std::uint32_t> columns);
  /// The entries of what misses and is here.
  Bytes pack() const;
  void take(std::span<const std::byte> packed);

  /// The same at a cut, at once. Collective.
  void fetch(std::span<const std::uint32_t> columns, const Collective& nodes);

 private:
  void forget_all_but(std::span<const std::uint32_t> columns);

  Design& design_;
  std::vector<std::uint8_t> is_lent_;   ///< by column: all nodes have it
  std::vector<std::uint32_t> lent_;     ///< those columns
  std::vector<std::uint32_t> missing_;  ///< of the last want(), ascending
  std::uint64_t entries_ = 0;           ///< of those that are lent
};

}  // namespace orrery::lasso
