#include "algorithms/lda_hybrid.h"

#include "engine/wire.h"

namespace orrery::lda {

HybridTrainee::HybridTrainee(LdaState& state, const Topology& topology, const WorkerMap& map, std::uint32_t groups,
                             Clock staleness, const Completion& held_out, const TrainingPlan& plan)
    : RotatingTrainee(state, topology, map, held_out, plan),
      exchange_(map, groups, static_cast<BlockId>(state.grid.blocks()), staleness, *this),
      replicas_(make_replicas(topology)),
      bases_(staleness > 0 ? make_replicas(topology) : ByGroup()) {}

HybridTrainee::ByGroup HybridTrainee::make_replicas(const Topology& topology) const {
  ByGroup made(exchange_.groups());
  for (std::uint32_t g = 0; g < made.size(); ++g) {
    if (exchange_.is_here(g)) made[g] = std::make_unique<WordTopics>(topology, state_.grid.words(), state_.topics());
  }
  return made;
}

void HybridTrainee::run_unit(const WorkUnit& unit, UnitContext& context) {
  sample(unit, context, *replicas_[unit.group]);
}

void HybridTrainee::connect(Outbox&, Clock start) { exchange_.connect(start); }

void HybridTrainee::block_begins(BlockId block, Clock clock, UnitContext& context) {
  exchange_.block_begins(block, clock, context.worker, context.domain);
}

void HybridTrainee::block_ends(BlockId block, Clock clock, UnitContext& context) {
  exchange_.block_ends(block, clock, context.worker);
}

// The moves of the totals, then those of the words.
Bytes HybridTrainee::pack_partial(Clock clock) {
  Bytes partial = RotatingTrainee::pack_partial(clock);
  const Bytes gains = exchange_.pack_partial(clock);
  put_all(partial, std::span<const std::byte>(gains));
  return partial;
}

void HybridTrainee::commit(Clock clock, std::span<const Bytes> partials) {
  const std::size_t totals = is_alone() ? 0 : state_.topics() * sizeof(std::int64_t);
  std::vector<std::span<const std::byte>> gains;
  for (const Bytes& partial : partials) gains.push_back(std::span(partial).subspan(totals));
  exchange_.commit(clock, gains);
  RotatingTrainee::commit(clock, partials);
}

Bytes HybridTrainee::pack_block(BlockId block, std::uint32_t group) { return exchange_.pack_block(block, group); }

void HybridTrainee::unpack_block(BlockId block, std::uint32_t group, std::span<const std::byte> bytes) {
  exchange_.unpack_block(block, group, bytes);
}

std::vector<BlockId> HybridTrainee::blocks_here() const {
  std::vector<BlockId> blocks;
  for (BlockId block = map_.this_node(); block < state_.grid.blocks(); block += map_.nodes()) blocks.push_back(block);
  return blocks;
}

void HybridTrainee::copy_to_replica(std::uint32_t group, BlockId block, DomainId domain) {
  replicas_[group]->acquire(block, domain);
  replicas_[group]->copy(block, state_.words);
}

void HybridTrainee::keep_base(std::uint32_t group, BlockId block) { bases_[group]->copy(block, *replicas_[group]); }

Bytes HybridTrainee::gain(std::uint32_t group, BlockId block, Clock) {
  return replicas_[group]->difference(block, bases_.empty() ? state_.words : *bases_[group]);
}

void HybridTrainee::add_to_replica(std::uint32_t group, BlockId block, std::span<const std::byte> gain) {
  replicas_[group]->add_difference(block, gain);
}

void HybridTrainee::add_to_model(BlockId block, std::span<const std::byte> gain) {
  state_.words.add_difference(block, gain);
}

Bytes HybridTrainee::pack_replica(std::uint32_t group, BlockId block, Part part) {
  return part_of(group, part).pack(block);
}

void HybridTrainee::unpack_replica(std::uint32_t group, BlockId block, Part part, std::span<const std::byte> bytes) {
  part_of(group, part).unpack(block, bytes);
}

}  // namespace orrery::lda
