#include "algorithms/mf_hybrid.h"

#include <algorithm>
#include <cstring>

#include "engine/wire.h"
#include "numa/access_section.h"

namespace orrery::mf {

FactorRows HybridTrainee::Items::acquire(BlockId block, DomainId domain) {
  return {reinterpret_cast<float*>(factors.acquire(block, domain).data()),
          reinterpret_cast<Side*>(sides.acquire(block, domain).data())};
}

FactorRows HybridTrainee::Items::view(BlockId block) const {
  return {reinterpret_cast<float*>(factors.view(block).data()), reinterpret_cast<Side*>(sides.view(block).data())};
}

HybridTrainee::HybridTrainee(const Topology& topology, const WorkerMap& map, std::uint32_t groups, Clock staleness,
                             const CellGrid& grid, MfState& state, const Holdout* holdout, const Scaling& scaling,
                             const SgdRule& rule, const Kernels& kernels)
    : MfTrainee(grid, state, holdout, scaling, kernels),
      rule_(rule),
      clocks_(static_cast<Clock>(grid.stripes() / map.workers())),
      exchange_(map, groups, static_cast<BlockId>(grid.blocks()), staleness, *this),
      replicas_(make_replicas(topology)),
      bases_(staleness > 0 ? make_replicas(topology) : ByGroup()),
      seen_(grid.stripes() * grid.blocks(), 0.0) {}

HybridTrainee::ByGroup HybridTrainee::make_replicas(const Topology& topology) const {
  std::vector<std::size_t> factor_bytes, side_bytes;
  for (BlockId b = 0; b < state_.blocks(); ++b) {
    factor_bytes.push_back(state_.columns_in(b) * state_.stride() * sizeof(float));
    side_bytes.push_back(state_.columns_in(b) * sizeof(Side));
  }
  ByGroup made(exchange_.groups());
  for (std::uint32_t g = 0; g < made.size(); ++g) {
    if (exchange_.is_here(g)) made[g] = std::make_unique<Items>(topology, factor_bytes, side_bytes);
  }
  return made;
}

void HybridTrainee::run_unit(const WorkUnit& unit, UnitContext& context) {
  const BlockId block = unit.blocks[0];
  const std::size_t stripe = unit.worker * static_cast<std::size_t>(clocks_) + unit.clock % clocks_;
  const Cell& cell = grid_.cell(stripe, block);
  const FactorRows columns = replicas_[unit.group]->acquire(block, context.domain);
  const StepRule step = rule_.at(unit.clock / clocks_);
  const AccessSection inner_loop;
  seen_[stripe * grid_.blocks() + block] =
      kernels_.train_cell({cell.batches.data(), cell.rows.data(), cell.columns.data(), cell.values.data()},
                          state_.stripe(stripe), columns, state_.stride(), step);
}

void HybridTrainee::connect(Outbox&, Clock start) { exchange_.connect(start); }

void HybridTrainee::block_begins(BlockId block, Clock clock, UnitContext& context) {
  exchange_.block_begins(block, clock, context.worker, context.domain);
}

void HybridTrainee::block_ends(BlockId block, Clock clock, UnitContext& context) {
  exchange_.block_ends(block, clock, context.worker);
}

Bytes HybridTrainee::pack_block(BlockId block, std::uint32_t group) { return exchange_.pack_block(block, group); }

void HybridTrainee::unpack_block(BlockId block, std::uint32_t group, std::span<const std::byte> bytes) {
  exchange_.unpack_block(block, group, bytes);
}

Bytes HybridTrainee::pack_partial(Clock clock) { return exchange_.pack_partial(clock); }

void HybridTrainee::commit(Clock clock, std::span<const Bytes> partials) {
  exchange_.commit(clock, std::vector<std::span<const std::byte>>(partials.begin(), partials.end()));
}

void HybridTrainee::copy_block(BlockId block, const FactorRows& from, const FactorRows& to) const {
  const std::size_t count = state_.columns_in(block);
  std::copy_n(from.factors, count * state_.stride(), to.factors);
  std::copy_n(from.sides, count, to.sides);
}

FactorRows HybridTrainee::base_of(std::uint32_t group, BlockId block) const {
  return bases_.empty() ? state_.block(block) : bases_[group]->view(block);
}

FactorRows HybridTrainee::part_of(std::uint32_t group, BlockId block, Part part) const {
  return (part == Part::base ? bases_ : replicas_)[group]->view(block);
}

void HybridTrainee::copy_to_replica(std::uint32_t group, BlockId block, DomainId domain) {
  copy_block(block, state_.block(block), replicas_[group]->acquire(block, domain));
}

void HybridTrainee::keep_base(std::uint32_t group, BlockId block) {
  copy_block(block, replicas_[group]->view(block), bases_[group]->view(block));
}

float HybridTrainee::weight(std::uint32_t item, float energy, const StepRule& step) const {
  const float all = static_cast<float>(grid_.columns().counts[item]) / static_cast<float>(clocks_);
  const float length = step.rate / __builtin_sqrtf(1.0F + energy);
  return (1.0F + length * all / static_cast<float>(exchange_.groups())) / (1.0F + length * all);
}

// Of each item: what its factors, its bias and its energy have gained. The replica becomes base + gain, or at a
// staleness the group would go on with more than it has told the others.
Bytes HybridTrainee::gain(std::uint32_t group, BlockId block, Clock clock) {
  const StepRule step = rule_.at(clock / clocks_);
  const FactorRows base = base_of(group, block), replica = replicas_[group]->view(block);
  const std::size_t rank = state_.rank(), stride = state_.stride(), count = state_.columns_in(block);
  std::vector<float> gains(count * (rank + 2));
  float* out = gains.data();
  for (std::size_t i = 0; i < count; ++i, out += rank + 2) {
    const float share =
        weight(grid_.columns().begin[block] + static_cast<std::uint32_t>(i), base.sides[i].energy, step);
    float* const now = replica.factors + i * stride;
    const float* const before = base.factors + i * stride;
    for (std::size_t d = 0; d < rank; ++d) {
      out[d] = share * (now[d] - before[d]);
      now[d] = before[d] + out[d];
    }
    Side& side = replica.sides[i];
    out[rank] = share * (side.bias - base.sides[i].bias);
    side.bias = base.sides[i].bias + out[rank];
    out[rank + 1] = side.energy - base.sides[i].energy;
  }
  Bytes bytes;
  bytes.reserve(gains.size() * sizeof(float));
  put_all(bytes, std::span<const float>(gains));
  return bytes;
}

void HybridTrainee::add(const FactorRows& rows, BlockId block, std::span<const std::byte> gain) const {
  const std::size_t rank = state_.rank(), stride = state_.stride();
  std::vector<float> of_item(rank + 2);
  WireReader in(gain);
  for (std::size_t i = 0; i < state_.columns_in(block); ++i) {
    in.take_all(std::span(of_item));
    float* const factors = rows.factors + i * stride;
    for (std::size_t d = 0; d < rank; ++d) factors[d] += of_item[d];
    rows.sides[i].bias += of_item[rank];
    rows.sides[i].energy += of_item[rank + 1];
  }
}

void HybridTrainee::add_to_replica(std::uint32_t group, BlockId block, std::span<const std::byte> gain) {
  add(replicas_[group]->view(block), block, gain);
}

void HybridTrainee::add_to_model(BlockId block, std::span<const std::byte> gain) {
  add(state_.block(block), block, gain);
}

Bytes HybridTrainee::pack_replica(std::uint32_t group, BlockId block, Part part) {
  const FactorRows rows = part_of(group, block, part);
  const std::size_t count = state_.columns_in(block);
  Bytes bytes;
  bytes.reserve(state_.block_bytes(block));
  put_all(bytes, std::span<const float>(rows.factors, count * state_.stride()));
  put_all(bytes, std::span<const Side>(rows.sides, count));
  return bytes;
}

void HybridTrainee::unpack_replica(std::uint32_t group, BlockId block, Part part, std::span<const std::byte> bytes) {
  const FactorRows rows = part_of(group, block, part);
  const std::size_t count = state_.columns_in(block);
  WireReader in(bytes);
  in.take_all(std::span(rows.factors, count * state_.stride()));
  in.take_all(std::span(rows.sides, count));
}

double HybridTrainee::seen_squares(const ParallelFor&) const { return sum_of_cells_here(seen_); }

}  // namespace orrery::mf
