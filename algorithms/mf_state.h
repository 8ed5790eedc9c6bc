// The parameters of a matrix factorisation in memory: rows (users) stay with their worker, in its domain's memory;
// columns (items) lie in blocks that travel (design sections 4 and 8). Of several nodes each has the rows of its own
// workers, and memory for all blocks. Rows and columns are meant by their internal numbers (mf_layout.h); on disk and
// in checkpoints they stand in an order that no number of domains or nodes changes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
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
  bool is_here(std::size_t stripe) const { return stripes_[stripe].rows.factors != nullptr; }
  /// The rows of a stripe that is here. For its worker, or between clocks.
  FactorRows stripe(std::size_t stripe) const { return stripes_[stripe].rows; }
  /// The columns of a block, brought to `domain`. For its owner.
  FactorRows acquire(BlockId block, DomainId domain);
  /// The columns of a block where they lie. For its owner, or between clocks.
  FactorRows block(BlockId block) const;
  std::size_t rows_in(std::size_t stripe) const { return stripes_[stripe].count; }
  std::size_t columns_in(BlockId block) const { return block_counts_[block]; }
  std::uint64_t bytes_moved() const noexcept { return factors_.bytes_moved() + sides_.bytes_moved(); }

  /// Parameters as bytes, stripe by stripe and block by block. How many bytes depends on the axes and the rank alone.
  struct Saved {
    Bytes rows, columns;
  };
  /// Everything that is here, and back.
  Saved save() const;
  void load(const Saved& saved);
  /// What save() gives here, cut out of what it would give if all rows were here. @throws Error (data) for the bytes of
  /// another model.
  Saved part_of(std::span<const std::byte> whole) const;
  /// A block as it lies here, and back. For its owner, or between clocks.
  void save_block(BlockId block, Bytes& out) const;
  void load_block(BlockId block, std::span<const std::byte> bytes);
  std::size_t block_bytes(BlockId block) const;
  /// Takes in the rows that another node has here, as it saved them, so that they can be read.
  void adopt_rows(NodeId node, Bytes rows);

 private:
  struct Stripe {
    std::size_t count = 0;
    FactorRows rows{};  ///< null where it is on another node
  };
  using ArrayVisitor = std::function<void(std::byte*, std::size_t)>;
  /// Calls visit(pointer, bytes) for the arrays of rows or columns.
  void visit_rows(const FactorRows& rows, std::size_t count, const ArrayVisitor& visit) const;
  void for_each_row_array(const ArrayVisitor& visit) const;
  std::pair<std::size_t, std::size_t> stripes_of(NodeId node) const;
  std::size_t row_bytes(std::size_t first_stripe, std::size_t last_stripe) const;
  std::size_t bytes_of(std::size_t count) const { return count * (stride_ * sizeof(float) + sizeof(Side)); }

  const WorkerMap map_;
  std::size_t rank_, stride_;
  std::vector<Buffer> row_memory_;  ///< one for each domain
  std::vector<Stripe> stripes_;
  std::vector<Bytes> adopted_;
  std::vector<std::size_t> block_counts_;
  BlockStore factors_, sides_;
};

}  // namespace orrery::mf
