// Topic models by rotation (Yu et al., WWW 2015; STRADS: Kim et al., EuroSys 2016).
//
// A unit is the tokens of one worker's documents and one block of words. Units that run together share neither
// documents nor words, so no count has two writers; the only shared state is how many tokens a topic has (TopicTotals),
// of which every worker has a copy that is brought up to date between clocks. On several nodes blocks of words travel.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/lda_trainee.h"
#include "engine/profile_source.h"

namespace orrery::lda {

class RotatingTrainee : public LdaTrainee, public ShowsBlocks {
 public:
  /// Borrows state, topology and held-out documents (which may be empty).
  RotatingTrainee(LdaState& state, const Topology& topology, const WorkerMap& map, const Completion& held_out,
                  const TrainingPlan& plan);

  void run_unit(const WorkUnit& unit, UnitContext& context) override;
  void worker_ended(WorkerId worker, Clock clock) override;
  Bytes pack_partial(Clock clock) override;
  void commit(Clock clock, std::span<const Bytes> partials) override;
  Bytes pack_block(BlockId block, std::uint32_t group) override;
  void unpack_block(BlockId block, std::uint32_t group, std::span<const std::byte> bytes) override;
  std::size_t block_bytes(BlockId block) const override;

 protected:
  /// The tokens of a unit, by the counts of its words that are in `words`.
  void sample(const WorkUnit& unit, UnitContext& context, WordTopics& words);

 private:
  void words_were_counted() override;
  void bring_words() override;
  /// Its own or, before any was visited, all at the first node.
  std::vector<BlockId> blocks_here() const override;

  std::vector<std::uint8_t> visited_;  ///< by block, its owner's: it is here, as its last visitor left it
};

}  // namespace orrery::lda
