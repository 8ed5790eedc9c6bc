// Matrix factorisation by stochastic gradient descent under a hybrid schedule: the objective, the update and the
// options of mf_sgd.h, with a replica of the items for each group of workers. Within a group blocks of items rotate, so
// no two units of it touch the same row and the group equals a serial program on the ratings of its users; between
// groups the gains of the items are exchanged under the staleness bound (engine/group_exchange.h). The model is the
// start and all gains, on every node the same.
//
// Groups that start from the same item and each move it towards their own users would together move it up to G times
// too far. As in mf_data_parallel.h what a group adds to an item is weighed by
//
//   (1 + s k / G) / (1 + s k),     s: the item's step, k: its ratings in an average clock of all groups
//
// which adds where steps are few or short and averages where a clock alone takes an item near its minimum ("adding
// versus averaging": Ma et al., ICML 2015); groups have about the same share of an item's ratings, for users are dealt
// by their numbers of ratings. Energies count squared errors, and are always added. A clock is one of `clocks` shares
// of a worker's users: the more, the less the groups miss of each other, and the more often gains travel.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "algorithms/mf_sgd.h"
#include "engine/block_store.h"
#include "engine/group_exchange.h"

namespace orrery::mf {

class HybridTrainee final : public MfTrainee, private ReplicatedBlocks {
 public:
  /// Borrows everything. The grid's stripes are `clocks` for each worker.
  HybridTrainee(const Topology& topology, const WorkerMap& map, std::uint32_t groups, Clock staleness,
                const CellGrid& grid, MfState& state, const Holdout* holdout, const Scaling& scaling,
                const SgdRule& rule, const Kernels& kernels);

  /// Clocks in which every rating is taken once.
  Clock clocks_per_iteration() const { return clocks_; }

  void run_unit(const WorkUnit& unit, UnitContext& context) override;
  void connect(Outbox& outbox, Clock start) override;
  void block_begins(BlockId block, Clock clock, UnitContext& context) override;
  void block_ends(BlockId block, Clock clock, UnitContext& context) override;
  Bytes pack_block(BlockId block, std::uint32_t group) override;
  void unpack_block(BlockId block, std::uint32_t group, std::span<const std::byte> bytes) override;
  Bytes pack_partial(Clock clock) override;
  void commit(Clock clock, std::span<const Bytes> partials) override;

 private:
  /// All blocks once more, of one group.
  struct Items {
    Items(const Topology& topology, std::span<const std::size_t> factor_bytes, std::span<const std::size_t> side_bytes)
        : factors(topology, factor_bytes), sides(topology, side_bytes) {}
    FactorRows acquire(BlockId block, DomainId domain);
    FactorRows view(BlockId block) const;
    BlockStore factors, sides;
  };
  /// Null for groups that have no workers here.
  using ByGroup = std::vector<std::unique_ptr<Items>>;

  ByGroup make_replicas(const Topology& topology) const;
  void copy_block(BlockId block, const FactorRows& from, const FactorRows& to) const;
  FactorRows base_of(std::uint32_t group, BlockId block) const;
  FactorRows part_of(std::uint32_t group, BlockId block, Part part) const;
  float weight(std::uint32_t item, float energy, const StepRule& step) const;
  void add(const FactorRows& rows, BlockId block, std::span<const std::byte> gain) const;
  double seen_squares(const ParallelFor& parallel) const override;

  void copy_to_replica(std::uint32_t group, BlockId block, DomainId domain) override;
  void keep_base(std::uint32_t group, BlockId block) override;
  Bytes gain(std::uint32_t group, BlockId block, Clock clock) override;
  void add_to_replica(std::uint32_t group, BlockId block, std::span<const std::byte> gain) override;
  void add_to_model(BlockId block, std::span<const std::byte> gain) override;
  Bytes pack_replica(std::uint32_t group, BlockId block, Part part) override;
  void unpack_replica(std::uint32_t group, BlockId block, Part part, std::span<const std::byte> bytes) override;

  const SgdRule rule_;
  const Clock clocks_;
  GroupExchange exchange_;
  ByGroup replicas_;
  ByGroup bases_;             ///< at a staleness; else the model is the base
  std::vector<double> seen_;  ///< by cell: Σ e² of its last visit, each error as it was before its step
};

}  // namespace orrery::mf
