#include "algorithms/mf_sgd.h"

#include <algorithm>

#include "engine/wire.h"
#include "numa/access_section.h"

namespace orrery::mf {
StepRule SgdRule::at(Clock clock) const {
  // Multiplied out: the C library's pow chooses its code by processor.
  double now = rate;
  for (Clock c = 0; c < clock && now > 1e-12 * rate; ++c) now *= 1.0 - decay;
  return {static_cast<float>(now), static_cast<float>(gain)};
}

double decay_for(double decay, double ratings_per_row) {
  constexpr double kEnough = 64.0;  // ratings a row from which the defaults were found to hold
  return decay * std::min(1.0, ratings_per_row / kEnough);
}

SgdTrainee::SgdTrainee(const CellGrid& grid, MfState& state, const Holdout* holdout, const Scaling& scaling,
                       const SgdRule& rule, const Kernels& kernels)
    : MfTrainee(grid, state, holdout, scaling, kernels),
      rule_(rule),
      guests_(grid, state),
      seen_(grid.stripes() * grid.blocks(), 0.0),
      visited_(grid.blocks(), 0) {}

void SgdTrainee::run_unit(const WorkUnit& unit, UnitContext& context) {
  const BlockId block = unit.blocks[0];
  const Cell& cell = grid_.cell(unit.worker, block);
  const FactorRows columns = state_.acquire(block, context.domain);
  const StepRule step = rule_.at(unit.clock);
  visited_[block] = 1;
  const AccessSection inner_loop;
  seen_[unit.worker * grid_.blocks() + block] =
      kernels_.train_cell({cell.batches.data(), cell.rows.data(), cell.columns.data(), cell.values.data()},
                          state_.stripe(unit.worker), columns, state_.stride(), step);
}

Bytes SgdTrainee::pack_unit(const WorkUnit& unit, NodeId helper) {
  return guests_.pack(unit.worker, unit.blocks[0], helper);
}

Bytes SgdTrainee::run_guest(const WorkUnit& unit, std::span<const std::byte> packed, UnitContext&) {
  return guests_.train(packed, unit.blocks[0], kernels_, rule_.at(unit.clock));
}

void SgdTrainee::take_unit(const WorkUnit& unit, std::span<const std::byte> wrote) {
  const BlockId block = unit.blocks[0];
  visited_[block] = 1;
  seen_[unit.worker * grid_.blocks() + block] = guests_.take(unit.worker, block, wrote);
}

Bytes SgdTrainee::pack_block(BlockId block, std::uint32_t) {
  Bytes bytes;
  if (visited_[block] == 0) return bytes;
  bytes.reserve(state_.block_bytes(block));
  state_.save_block(block, bytes);
  visited_[block] = 0;
  return bytes;
}

void SgdTrainee::unpack_block(BlockId block, std::uint32_t, std::span<const std::byte> bytes) {
  if (!bytes.empty()) state_.load_block(block, bytes);
}

Bytes SgdTrainee::share_state() const {
  Bytes share;
  for (BlockId block = 0; block < visited_.size(); ++block) {
    if (visited_[block] == 0) continue;
    put(share, block);
    state_.save_block(block, share);
  }
  return share;
}

void SgdTrainee::take_share(NodeId, std::span<const std::byte> share) {
  while (!share.empty()) {
    const auto block = WireReader(share).take<BlockId>();
    state_.load_block(block, share.subspan(sizeof block, state_.block_bytes(block)));
    share = share.subspan(sizeof block + state_.block_bytes(block));
  }
  std::fill(visited_.begin(), visited_.end(), std::uint8_t{0});
}

double SgdTrainee::seen_squares(const ParallelFor&) const { return sum_of_cells_here(seen_); }

}  // namespace orrery::mf
