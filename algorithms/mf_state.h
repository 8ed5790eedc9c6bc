// The parameters of a matrix factorisation in memory: rows (users) stay with their worker, in its domain's memory;
// columns (items) lie in blocks that travel (design sections 4 and 8). Rows and columns are meant by their internal
// numbers (mf_layout.h); on disk and in checkpoints they stand in an order that no number of domains changes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "algorithms/mf_kernels.h"
#include "algorithms/mf_layout.h"
#include "engine/block_store.h"
#include "engine/clock.h"
#include "engine/training.h"
#include "numa/memory.h"
#include "numa/topology.h"

namespace orrery::mf {

class MfState {
 public:
  /// Makes zero parameters for the parts of the two axes. Every worker has as many stripes, in order; they lie in the
  /// memory of its domain.
  MfState(const Topology& topology, const WorkerMap& map, const Axis& rows, const Axis& columns, std::size_t rank);

  std::size_t rank() const noexcept { return rank_; }
  std::size_t stride() const noexcept { return stride_; }
  std::size_t stripes() const noexcept { return stripes_.size(); }
  std::size_t blocks() const noexcept { return factors_.size(); }
  /// The rows of a stripe. For its worker, or between clocks.
  FactorRows stripe(std::size_t stripe) const { return stripes_[stripe].rows; }
  /// The columns of a block, brought to `domain`. For its owner.
  FactorRows acquire(BlockId block, DomainId domain);
  /// The columns of a block where they lie. For its owner, or between clocks.
  FactorRows block(BlockId block) const;
  std::size_t rows_in(std::size_t stripe) const { return stripes_[stripe].count; }
  std::size_t columns_in(BlockId block) const { return block_counts_[block]; }
  std::uint64_t bytes_moved() const noexcept { return factors_.bytes_moved() + sides_.bytes_moved(); }

  /// Everything as bytes, and back from them; also how the best state is kept. The number of bytes depends on the axes
  /// and the rank alone.
  Bytes save() const;
  void load(std::span<const std::byte> bytes);

 private:
  struct Stripe {
    std::size_t count = 0;
    FactorRows rows{};
  };
  /// Calls visit(pointer, bytes) for every array in a fixed order.
  void for_each_array(const std::function<void(std::byte*, std::size_t)>& visit) const;

  std::size_t rank_, stride_;
  std::vector<Buffer> row_memory_;  ///< one for each domain
  std::vector<Stripe> stripes_;
  std::vector<std::size_t> block_counts_;
  BlockStore factors_, sides_;
};

}  // namespace orrery::mf
