// Cells that are trained on another node than that of their users (engine/unit_lending.h): what travels there and back.
// The kernel reads and writes the rows of the users that occur in a cell and those of its items, in the order of the
// cell; so rows that are gathered next to each other and scattered afterwards have the bits that they would have had at
// home. The ratings of a cell go to a helper once, 6 bytes each, and stay there.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "algorithms/mf_kernels.h"
#include "algorithms/mf_layout.h"
#include "algorithms/mf_state.h"
#include "engine/message.h"
#include "engine/types.h"

namespace orrery::mf {

/// Any thread, for different cells.
class GuestCells {
 public:
  /// Borrows grid and state.
  GuestCells(const CellGrid& grid, MfState& state) : grid_(grid), state_(state) {}

  /// For the owner of the cell's users, who has the block. Cost: the rows of the cell's users and the block, copied.
  Bytes pack(std::size_t stripe, BlockId block, NodeId helper);
  /// On the helper: trains what pack() gave. What take() wants.
  Bytes train(std::span<const std::byte> packed, BlockId block, const Kernels& kernels, const StepRule& step);
  /// At the owner again. @return Σ e² of the cell, as Kernels::train_cell says it.
  double take(std::size_t stripe, BlockId block, std::span<const std::byte> wrote);

 private:
  /// A cell of another node, its rows numbered by those that occur in it.
  struct Visitor {
    std::array<std::uint32_t, kMaxBatch> batches{};
    std::vector<std::uint32_t> rows;
    std::vector<std::uint16_t> columns;
    std::vector<float> values;
  };
  const Visitor& visitor(std::uint64_t cell, std::span<const std::byte>& packed);

  const CellGrid& grid_;
  MfState& state_;
  std::mutex mutex_;
  /// Cells of this node, by who has their ratings: who has trained them, for a helper may give back what it was sent.
  std::set<std::pair<NodeId, std::uint64_t>> kept_;
  std::map<std::uint64_t, Visitor> visitors_;
};

}  // namespace orrery::mf
