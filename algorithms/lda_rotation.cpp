#include "algorithms/lda_rotation.h"

#include <algorithm>
#include <utility>

#include "engine/assert.h"
#include "engine/random.h"
#include "engine/wire.h"
#include "numa/access_section.h"

namespace orrery::lda {

RotatingTrainee::RotatingTrainee(LdaState& state, const Topology& topology, const WorkerMap& map,
                                 const Completion& held_out, const TrainingPlan& plan)
    : LdaTrainee(state, topology, map, held_out, plan), visited_(state.grid.blocks(), 0) {}

void RotatingTrainee::run_unit(const WorkUnit& unit, UnitContext& context) {
  visited_[unit.blocks[0]] = 1;
  sample(unit, context, state_.words);
}

void RotatingTrainee::sample(const WorkUnit& unit, UnitContext& context, WordTopics& words) {
  Worker& worker = *workers_[unit.worker];
  if (worker.clock != unit.clock) {
    worker.started.resize(state_.topics());
    state_.totals.start_clock(unit.worker, worker.started);
    begin_clock(worker, unit.worker, unit.clock);
  }
  const BlockId block = unit.blocks[0];
  std::byte* const memory = words.acquire(block, context.domain);
  Stripe& stripe = state_.grid.stripe(worker.stripe);
  DocumentTopics& documents = *state_.documents[worker.stripe];
  const std::uint32_t first_word = state_.grid.words().begin[block];
  RandomStream draws = Random(plan_.seed, Purpose::sampling)
                           .stream(unit.clock, std::uint64_t{unit.worker} * state_.grid.blocks() + block);
  std::size_t token = stripe.token_begin[block];
  const AccessSection inner_loop;
  const std::span<const Run> runs = stripe.runs_of(block);
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const Run& run = runs[r];
    if (r + 1 < runs.size()) words.prefetch(memory, block, runs[r + 1].word);
    const WordTopics::Row row = words.row(memory, block, run.word);
    Visit visit = visit_of(stripe, token, run.tokens, first_word + run.word);
    worker.row.open(row, visit);
    worker.sampler->sample(visit, worker.view, documents, draws);
    worker.row.close(row, visit);
    token += run.tokens;
  }
}

void RotatingTrainee::worker_ended(WorkerId id, Clock clock) {
  Worker& worker = *workers_[id];
  ORRERY_CHECK(worker.clock == clock);
  std::vector<std::int64_t> moves(worker.view.topics);
  for (std::size_t k = 0; k < moves.size(); ++k) {
    moves[k] = (worker.view.totals[k] - worker.started[k]) / worker.view.step;
  }
  state_.totals.hand_over(id, clock, std::move(moves));
  if (!state_.is_streamed(worker.stripe)) return;
  summarise(worker.stripe);
  state_.release(worker.stripe, true);
}

Bytes RotatingTrainee::pack_partial(Clock clock) {
  Bytes partial;
  if (!is_alone()) put_all(partial, std::span<const std::int64_t>(state_.totals.moves_of(clock)));
  return partial;
}

void RotatingTrainee::commit(Clock clock, std::span<const Bytes> partials) {
  std::vector<std::int64_t> far(is_alone() ? 0 : state_.topics(), 0);
  for (NodeId node = 0; node < partials.size(); ++node) {
    if (node == map_.this_node()) continue;
    WireReader in(partials[node]);
    for (std::int64_t& moves : far) moves += in.take<std::int64_t>();
  }
  state_.totals.commit(clock, far);
  if ((clock + 1) % static_cast<Clock>(state_.grid.document_blocks()) == 0) summarised_ = true;
  fit_priors_if_due(clock);
}

Bytes RotatingTrainee::pack_block(BlockId block, std::uint32_t) {
  visited_[block] = 0;
  return state_.words.pack(block);
}

void RotatingTrainee::unpack_block(BlockId block, std::uint32_t, std::span<const std::byte> bytes) {
  state_.words.unpack(block, bytes);
}

void RotatingTrainee::words_were_counted() { std::fill(visited_.begin(), visited_.end(), 0); }

std::vector<BlockId> RotatingTrainee::blocks_here() const {
  const bool none_travelled = std::none_of(visited_.begin(), visited_.end(), [](std::uint8_t v) { return v != 0; });
  std::vector<BlockId> blocks;
  for (BlockId block = 0; block < visited_.size(); ++block) {
    if (visited_[block] != 0 || (none_travelled && nodes_.is_first())) blocks.push_back(block);
  }
  return blocks;
}

void RotatingTrainee::bring_words() {
  if (is_alone()) return;
  Bytes mine;
  for (BlockId block = 0; block < visited_.size(); ++block) {
    if (visited_[block] == 0) continue;
    const Bytes packed = state_.words.pack(block);
    put(mine, block);
    put(mine, std::uint64_t{packed.size()});
    put_all(mine, std::span<const std::byte>(packed));
  }
  const std::vector<Bytes> all = nodes_.to_all(std::move(mine));
  Bytes packed;
  for (NodeId node = 0; node < all.size(); ++node) {
    if (node == map_.this_node()) continue;
    for (WireReader in(all[node]); !in.empty();) {
      const auto block = in.take<BlockId>();
      packed.resize(in.take<std::uint64_t>());
      in.take_all(std::span(packed));
      state_.words.unpack(block, packed);
    }
  }
}

std::size_t RotatingTrainee::block_bytes(BlockId block) const {
  const Axis& words = state_.grid.words();
  std::size_t bytes = 0;
  for (std::uint32_t word = words.begin[block]; word < words.begin[block + 1]; ++word) {
    bytes += WordTopics::row_bytes(words.counts[word], state_.topics());
  }
  return bytes;
}

}  // namespace orrery::lda
