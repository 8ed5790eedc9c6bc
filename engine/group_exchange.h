// What the groups of a hybrid run tell each other (design section 4). Within a group the blocks rotate; every group
// works on a replica of its own, and what it has added to a block in a clock goes to all nodes with the partial of that
// clock. Every node adds up the gains of all groups in one order, so all have the same model between clocks, to the
// bit.
//
// At staleness s a group begins its clock c with what all groups had added through clock c - s - 1, and with what it
// has added itself since: rules 2 to 4 of design section 5 with a group for a worker. It never takes in more, although
// more may be there, so the bits do not depend on who was how fast, at any staleness.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "engine/clock.h"
#include "engine/message.h"
#include "engine/types.h"

namespace orrery {

/// The memory of a program's blocks: the model's, and a replica for each group that has workers on this node. All calls
/// for a block of a group come from the owner of that replica; those for the model come between clocks at staleness 0,
/// and at any time, but never two at once, above that: then the model must not be touched by units.
class ReplicatedBlocks {
 public:
  virtual ~ReplicatedBlocks() = default;
  /// The replica becomes what the model's block is; in the memory of `domain` for who works on it next.
  virtual void copy_to_replica(std::uint32_t group, BlockId block, DomainId domain) = 0;
  /// Remembers the replica as it is, as the base of what gain() says. Only at staleness > 0; else it is the model.
  virtual void keep_base(std::uint32_t group, BlockId block) = 0;
  /// What the group has added to its replica since the base, in `clock`. Afterwards the replica is its base and just
  /// that.
  virtual Bytes gain(std::uint32_t group, BlockId block, Clock clock) = 0;
  virtual void add_to_replica(std::uint32_t group, BlockId block, std::span<const std::byte> gain) = 0;
  virtual void add_to_model(BlockId block, std::span<const std::byte> gain) = 0;
  /// A replica on its way to another node, or its base.
  enum class Part : std::uint8_t { replica, base };
  virtual Bytes pack_replica(std::uint32_t group, BlockId block, Part part) = 0;
  virtual void unpack_replica(std::uint32_t group, BlockId block, Part part, std::span<const std::byte> bytes) = 0;
};

/// A program with a HybridSchedule passes on the calls of Program that have these names.
class GroupExchange {
 public:
  /// `blocks` outlives it. The schedule must be a HybridSchedule of as many groups and blocks.
  GroupExchange(const WorkerMap& map, std::uint32_t groups, BlockId block_count, Clock staleness,
                ReplicatedBlocks& blocks);

  std::uint32_t groups() const noexcept { return groups_; }
  std::uint32_t group_of(WorkerId worker) const;
  /// Does a group have workers on this node?
  bool is_here(std::uint32_t group) const;

  /// The clock of the first units. The model has all that is below it.
  void connect(Clock start) { start_ = start; }
  void block_begins(BlockId block, Clock clock, WorkerId worker, DomainId domain);
  void block_ends(BlockId block, Clock clock, WorkerId worker);
  /// Between two clocks at staleness 0 only the right to a replica travels: its next visitor takes the model.
  Bytes pack_block(BlockId block, std::uint32_t group);
  void unpack_block(BlockId block, std::uint32_t group, std::span<const std::byte> bytes);
  /// The gains of the blocks whose last visit in `clock` was here.
  Bytes pack_partial(Clock clock);
  /// `partials`: what pack_partial() gave on every node.
  void commit(Clock clock, std::span<const std::span<const std::byte>> partials);

 private:
  struct Gain {
    BlockId block;
    std::uint32_t group;
    Bytes bytes;
  };
  std::size_t place_of(std::uint32_t group, BlockId block) const { return std::size_t{group} * block_count_ + block; }
  static std::vector<Gain> parsed(std::span<const std::span<const std::byte>> partials);

  const WorkerMap map_;
  const std::uint32_t groups_;
  const BlockId block_count_;
  const Clock staleness_;
  ReplicatedBlocks& blocks_;
  Clock start_ = 0;
  std::vector<std::uint8_t> rests_;           ///< by replica, its owner's: no visit of the clock is left
  std::mutex mutex_;                          ///< guards which clocks the maps have, and the lists of `ended_`
  std::map<Clock, std::vector<Gain>> ended_;  ///< of blocks whose last visit was here; not yet packed
  std::map<Clock, std::vector<Gain>>
      committed_;  ///< staleness > 0: by block, then group; replicas have yet to take them
};

}  // namespace orrery
