// Topic models under a hybrid schedule: blocks of words rotate within each group of workers (lda_rotation.h), and every
// group has a replica of their counts, to which the moves of the other groups' tokens are added under the staleness
// bound (engine/group_exchange.h). Between groups this is AD-LDA (Newman et al., JMLR 2009) with groups for processors,
// and as there nothing is lost: a group's replica always has each of its own tokens where it is and each of the others'
// where it was some clocks ago, so every row is a row of counts of all tokens of its word, none negative.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "algorithms/lda_rotation.h"
#include "engine/group_exchange.h"

namespace orrery::lda {

class HybridTrainee final : public RotatingTrainee, private ReplicatedBlocks {
 public:
  /// Borrows state, topology and held-out documents (which may be empty). The state's counts of words are the model, on
  /// every node.
  HybridTrainee(LdaState& state, const Topology& topology, const WorkerMap& map, std::uint32_t groups, Clock staleness,
                const Completion& held_out, const TrainingPlan& plan);

  void run_unit(const WorkUnit& unit, UnitContext& context) override;
  void connect(Outbox& outbox, Clock start) override;
  void block_begins(BlockId block, Clock clock, UnitContext& context) override;
  void block_ends(BlockId block, Clock clock, UnitContext& context) override;
  Bytes pack_partial(Clock clock) override;
  void commit(Clock clock, std::span<const Bytes> partials) override;
  Bytes pack_block(BlockId block, std::uint32_t group) override;
  void unpack_block(BlockId block, std::uint32_t group, std::span<const std::byte> bytes) override;

 private:
  /// Null for groups that have no workers here.
  using ByGroup = std::vector<std::unique_ptr<WordTopics>>;
  ByGroup make_replicas(const Topology& topology) const;
  WordTopics& part_of(std::uint32_t group, Part part) { return *(part == Part::base ? bases_ : replicas_)[group]; }

  void words_were_counted() override {}
  void bring_words() override {}
  /// All nodes have all: each answers for some.
  std::vector<BlockId> blocks_here() const override;

  void copy_to_replica(std::uint32_t group, BlockId block, DomainId domain) override;
  void keep_base(std::uint32_t group, BlockId block) override;
  Bytes gain(std::uint32_t group, BlockId block, Clock clock) override;
  void add_to_replica(std::uint32_t group, BlockId block, std::span<const std::byte> gain) override;
  void add_to_model(BlockId block, std::span<const std::byte> gain) override;
  Bytes pack_replica(std::uint32_t group, BlockId block, Part part) override;
  void unpack_replica(std::uint32_t group, BlockId block, Part part, std::span<const std::byte> bytes) override;

  GroupExchange exchange_;
  ByGroup replicas_;
  ByGroup bases_;  ///< at a staleness; else the model is the base
};

}  // namespace orrery::lda
