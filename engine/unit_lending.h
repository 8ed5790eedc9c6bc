// Units that run on another node for their owner (work re-assignment, design section 4). Worker, clock, order, random
// numbers and the place in every sum stay the owner's: what goes is what a unit reads, what comes back is what it
// wrote, and the owner goes on as if it had run here. So the bits are the same whoever ran it.
//
// A unit that was handed over is *offered* until its helper begins it or gives it back; the helper alone decides which,
// and the owner takes what comes: a result, or the unit as it went. Links lose and double nothing, so no unit is lost
// or run twice.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/clock.h"
#include "engine/clock_frame.h"
#include "engine/lending_policy.h"
#include "engine/message.h"
#include "engine/program.h"
#include "engine/ready_lanes.h"
#include "engine/transport.h"
#include "engine/wire.h"

namespace orrery {

class UnitLending {
 public:
  /// What the executor does around a unit of its own: before run_unit, and after it, up to what becomes ready.
  struct Hooks {
    std::function<void(PendingUnit&)> begin;
    std::function<void(PendingUnit&, ReadyList&)> end;
    /// The clock that some worker of this node is in.
    std::function<Clock()> clock;
  };
  UnitLending(Program& program, Outbox& outbox, ReadyLanes& lanes, const WorkerMap& map, Pacer* pacer, unsigned threads,
              Reassign mode, Hooks hooks);

  bool is_on() const noexcept { return is_on_; }
  /// Units of this node that others ran.
  std::uint64_t lent() const noexcept { return lent_.load(); }
  /// A unit of this node ran here.
  void unit_ran(double seconds) {
    if (is_on_) policy_.unit_ran(seconds);
  }
  /// Hands over waiting units from the tail for as long as it pays. Any thread.
  void lend();
  /// Nothing is ready here: says so to the others, and asks for what they have not begun. The calling thread of run().
  void idle();
  /// A message of the kinds offer to give_back. @throws what the program throws.
  void receive(Message&& message, ReadyList& ready);
  /// Runs a unit of another node that was queued here, unless it was given back meanwhile.
  void run_guest(PendingUnit& unit);

 private:
  using Key = std::pair<Clock, std::uint32_t>;  ///< of a unit: clock, index
  struct Loan {
    PendingUnit* unit = nullptr;
    NodeId helper = 0;
    double lent_at = 0;
    bool is_sent = false, is_asked_back = false;
  };
  struct Guest : PendingUnit {
    NodeId owner = 0;
    std::vector<BlockId> blocks;
    std::vector<std::uint32_t> items;
    Bytes payload;
    bool begun = false, given_back = false;
  };

  double now() const;
  void hand_over(PendingUnit& unit, NodeId helper);
  void accept(Message&& message, ReadyList& ready);
  void take_result(Message&& message, ReadyList& ready);
  void give_back(const Message& message);
  void take_back(const Message& message, ReadyList& ready);
  Loan end_of_loan(const Message& message);
  Bytes progress() const;
  void take_progress(NodeId from, WireReader& in);
  void ask_back();

  Program& program_;
  Outbox& outbox_;
  ReadyLanes& lanes_;
  const WorkerMap map_;
  Pacer* const pacer_;
  const Hooks hooks_;
  LendingPolicy policy_;
  const bool is_on_;
  std::atomic<std::uint64_t> lent_{0};

  std::mutex mutex_;
  Clock offered_ = -1;                                               ///< the last clock of an offer
  std::map<Key, Loan> loans_;                                        ///< units of this node that are with others
  std::map<std::pair<NodeId, Key>, std::unique_ptr<Guest>> guests_;  ///< and those of others that are here
  std::map<const Guest*, std::unique_ptr<Guest>> given_back_;        ///< those of them that are still queued
};

}  // namespace orrery
