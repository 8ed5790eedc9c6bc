// What an algorithm gives to the engine: the body of a unit and what is to happen at the borders of clocks. The engine
// decides when and where; a program never starts threads, never waits and never asks which thread it is on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/clock.h"
#include "engine/message.h"
#include "engine/unit.h"

namespace orrery {

/// A running algorithm as the engine sees it. Calls that may overlap in time are said so; all others are alone.
class Program {
 public:
  virtual ~Program() = default;

  /// Does the work of one unit. Units that share no block and no worker run at the same time.
  virtual void run_unit(const WorkUnit& unit, UnitContext& context) = 0;

  /// The first and the last visit of a block in its clock, called by the owner just before and after that visit.
  /// In a hybrid schedule of the replica of the worker's group (group_exchange.h). Overlaps other units.
  virtual void block_begins(BlockId /*block*/, Clock /*clock*/, UnitContext& /*context*/) {}
  virtual void block_ends(BlockId /*block*/, Clock /*clock*/, UnitContext& /*context*/) {}

  /// A block on its way to another node and back into memory there. Only called when a block changes node.
  /// `group`: of a hybrid schedule, whose replica it is; else 0.
  virtual Bytes pack_block(BlockId block, std::uint32_t group);
  virtual void unpack_block(BlockId block, std::uint32_t group, std::span<const std::byte> bytes);

  /// Units may run on other nodes (unit_lending.h): packed by their owner, which has their blocks, run by a helper that
  /// has no state of the worker's, and taken back by the owner as if run_unit() had run there. Bytes must hold all that
  /// a unit reads and the helper has not been sent before; and all that it wrote. Each overlaps other units.
  virtual bool lends() const { return false; }
  virtual Bytes pack_unit(const WorkUnit& unit, NodeId helper);
  virtual Bytes run_guest(const WorkUnit& unit, std::span<const std::byte> packed, UnitContext& context);
  virtual void take_unit(const WorkUnit& unit, std::span<const std::byte> wrote);

  /// How far apart clocks may be for this program, where that is less than the engine's bound.
  virtual Clock clock_bound(Clock engines) const { return engines; }

  /// The worker has run its last unit of `clock`. Called once, on the thread that ran it, before anybody learns that
  /// the clock is over. Overlaps units of other workers.
  virtual void worker_ended(WorkerId /*worker*/, Clock /*clock*/) {}

  /// Clocks may have moved: called before any unit starts that this makes ready. Never overlaps itself, the partials
  /// or commit(); overlaps units.
  virtual void clocks_moved(const ClockTree& /*clocks*/) {}

  /// What this node tells all others when all its workers have finished `clock` (deltas, partial results); nothing is
  /// sent when it is empty. In clock order. At staleness > 0 units of later clocks may be running.
  virtual Bytes pack_partial(Clock /*clock*/) { return {}; }

  /// On one node at staleness 0: work between the last unit of `clock` and commit(), in so many parts, which may
  /// overlap each other and nothing else. settle_parts() is alone; it is asked again after those, until it says 0.
  virtual std::size_t settle_parts(Clock /*clock*/) { return 0; }
  virtual void settle(Clock /*clock*/, std::size_t /*part*/) {}

  /// Every worker of every node has finished `clock`; partials[n] is what node n packed. Called once for every clock,
  /// in clock order, on every node, with the same bytes. At staleness 0 no unit runs meanwhile.
  virtual void commit(Clock /*clock*/, std::span<const Bytes> /*partials*/) {}

  /// Messages of a program's own (Message::Kind subscribe, update, pull, rows), for what need not go to everybody.
  /// `outbox` takes them from now on; the first units will be those of `start`. Called once, before anything else.
  virtual void connect(Outbox& /*outbox*/, Clock /*start*/) {}
  /// All workers of this node have finished `clock`: what is sent now arrives before the news of it. In clock order.
  virtual void node_ended(Clock /*clock*/) {}
  /// A message from another node's program. Never overlaps itself, clocks_moved() or commit(); overlaps units.
  virtual void message_arrived(const Message& /*message*/, const ClockTree& /*clocks*/) {}
  /// Is what units of `clock` need of other nodes here? Asked when the clocks allow them, and again after every event
  /// while the answer is no; a program that says no has asked for what it lacks.
  virtual bool may_begin(Clock /*clock*/) { return true; }
  /// The same for a state between clocks: everything below `clock` is here.
  virtual bool may_end(Clock /*clock*/) { return true; }
};

}  // namespace orrery
