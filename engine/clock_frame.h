// One open clock: its units, what each of them waits for, and who waits for them. Built by the executor from a
// ClockPlan.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "engine/clock.h"
#include "engine/program.h"
#include "engine/types.h"
#include "engine/unit.h"

namespace orrery {

struct PendingUnit;
struct WorkerTurn;

/// One visit of a block. Visits of a block form a chain over clocks and nodes; the right to the block passes along it.
struct Visit {
  /// Who comes next: set by whoever links the chain, or replaced by done() when the visit ends first. Whoever comes
  /// second of the two hands the block over. Both use seq_cst exchanges, so exactly one of them does.
  std::atomic<Visit*> next{nullptr};
  PendingUnit* unit = nullptr;  ///< null when the visitor is on another node
  NodeId node = 0;
  BlockId block = kNoBlock;
  std::uint32_t group = 0;
  Clock clock = 0;
  std::uint32_t number = 0;  ///< position among the visits of the block in this clock
  bool first = false, last = false;

  /// The mark of a finished visit.
  static Visit* done();
};

struct PendingUnit {
  WorkUnit unit;
  std::atomic<std::uint32_t> missing{1};  ///< conditions; the opener holds one until all are counted
  PendingUnit* next_of_worker = nullptr;
  WorkerTurn* turn = nullptr;
  Visit* visits = nullptr;  ///< one for each of unit.blocks
  DomainId domain = 0;
  bool is_guest = false;       ///< of another node, which wants it back done (unit_lending.h)
  bool is_begun = false;       ///< came back from a helper that had not begun it: its blocks have
  bool is_settlement = false;  ///< part unit.index of Program::settle() of unit.clock, and no unit of the schedule
};

/// A worker's part of one clock.
struct WorkerTurn {
  std::atomic<std::uint32_t> remaining{0};  ///< units not finished yet
  WorkerId worker = 0;
  std::vector<PendingUnit*> waiting;  ///< units that wait until the worker has finished the clock before
};

/// Where the chain of a block ends at the moment.
struct ChainEnd {
  bool visited = false;
  NodeId node = 0;
  Visit* visit = nullptr;  ///< null: that visit is over and the block lies here (or on `node`)
};

/// What messages of blocks are matched by.
using ArrivalKey = std::tuple<std::uint32_t, BlockId, Clock, std::uint32_t>;
inline ArrivalKey key_of(const Visit& visit) { return {visit.group, visit.block, visit.clock, visit.number}; }

/// Blocks that came before their visitor was planned, and visitors that wait for their block.
class Arrivals {
 public:
  /// @return the payload when it is here already; else remembers the visit.
  std::unique_ptr<Bytes> expect(Visit& visit);
  /// @return the visit that waits for it; else keeps the payload.
  Visit* arrived(const ArrivalKey& key, Bytes& payload);

 private:
  std::mutex mutex_;
  std::map<ArrivalKey, Visit*> waiting_;
  std::map<ArrivalKey, Bytes> early_;
};

/// The units of one clock. Addresses stay valid until the frame is destroyed.
class ClockFrame {
 public:
  /// Takes the plan of `clock` and links the units of this node: worker after worker in plan order when `chained`, and
  /// along the chains of their blocks, whose ends it moves on. Nothing is released: every unit still lacks the opener's
  /// hold. A block whose way leads to a visit that can be handed over at once is appended to `handovers`.
  ClockFrame(Clock clock, ClockPlan plan, const WorkerMap& map, bool chained, std::vector<ChainEnd>& chain_ends,
             BlockId blocks, std::vector<Visit*>& handovers, std::vector<Visit*>& expected);

  Clock clock() const noexcept { return clock_; }
  std::size_t size() const noexcept { return count_; }
  PendingUnit& unit(std::size_t i) noexcept { return units_[i]; }
  WorkerTurn& turn(WorkerId worker) noexcept { return turns_[worker - first_worker_]; }
  /// The unit of this node with that index in the plan, or null.
  PendingUnit* find(std::uint32_t index) noexcept;
  /// Forgets visits of this frame in `chain_ends`: they are all over.
  void retire(std::vector<ChainEnd>& chain_ends) const;

 private:
  void link_visits(PendingUnit* pending, const WorkUnit& unit, NodeId node, NodeId here,
                   std::vector<ChainEnd>& chain_ends, BlockId blocks, std::vector<Visit*>& handovers,
                   std::vector<Visit*>& expected, std::vector<Visit*>& latest);

  Clock clock_;
  ClockPlan plan_;
  std::size_t count_ = 0, visit_count_ = 0;
  WorkerId first_worker_ = 0;
  std::unique_ptr<PendingUnit[]> units_;
  std::unique_ptr<WorkerTurn[]> turns_;
  std::unique_ptr<Visit[]> visits_;
};

}  // namespace orrery
