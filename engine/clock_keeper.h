// Clocks as the executor keeps them: which are open, what their units wait for, what is committed. Events come from
// any thread; whoever posts one while nobody processes takes the role of processor, so that a long commit() keeps
// nobody waiting.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/block_traffic.h"
#include "engine/clock.h"
#include "engine/clock_frame.h"
#include "engine/program.h"
#include "engine/ready_lanes.h"
#include "engine/schedule.h"
#include "engine/types.h"

namespace orrery {

struct ClockEvent {
  enum class Kind {
    begin,       ///< run to `clock`
    tick,        ///< `worker` has finished its clock
    node_clock,  ///< all workers of `node` have finished the clocks below `clock`
    settled,     ///< all parts of the settlement under way are done
    message      ///< another node's partial, or a message of its program
  };
  Kind kind = Kind::begin;
  WorkerId worker = 0;
  NodeId node = 0;
  Clock clock = 0;
  std::uint64_t run = 0;  ///< begin: its number, given back when it is over
  Message message;
};

class ClockKeeper {
 public:
  struct Settings {
    Clock start = 0;
    Clock bound = 0;  ///< how far apart clocks may be
    std::function<bool()> should_stop;
    /// The run of that number has come to its end. Called by the processor, and again by late events.
    std::function<void(std::uint64_t)> run_over;
  };
  ClockKeeper(const WorkerMap& map, Schedule& schedule, Program& program, BlockTraffic& blocks, Settings settings);

  /// Takes an event in, and whatever follows from it: units that became ready are appended. Any thread.
  /// @throws what plan() or commit() throws; the keeper is then spent.
  void post(ClockEvent event, ReadyList& ready);

  /// A part of a settlement is done. Any thread. @return true for the last one: then post `settled`.
  bool settled_part() { return parts_left_.fetch_sub(1) == 1; }

  const ClockTree& tree() const noexcept { return tree_; }
  /// For the calling thread between runs and in a replay, when nobody processes.
  ClockFrame* frame_of(Clock clock);
  const ChainEnd& chain_end(std::uint32_t group, BlockId block) const;
  bool run_is_over() { return tree_.cluster() >= limit_ && committed_ >= limit_ && program_.may_end(limit_); }

 private:
  void process(ClockEvent& event, ReadyList& ready);
  void start_next_turn(WorkerId worker, ReadyList& ready);
  void receive(Message& message);
  void hand_in_partials();
  std::vector<Bytes>& partials_of(Clock clock);
  void commit_finished_clocks(ReadyList& ready);
  bool is_settled(Clock clock, ReadyList& ready);
  void open_clocks(ReadyList& ready);
  void open(Clock clock, ReadyList& ready);

  const WorkerMap& map_;
  Schedule& schedule_;
  Program& program_;
  BlockTraffic& blocks_;
  const Settings settings_;

  std::mutex events_mutex_;
  std::deque<ClockEvent> events_;
  bool processing_ = false;

  // The processor's own.
  ClockTree tree_;
  std::map<Clock, std::unique_ptr<ClockFrame>> frames_;
  std::map<Clock, std::vector<Bytes>> partials_;
  std::vector<ChainEnd> chain_ends_;
  Clock next_open_, node_done_, committed_, limit_;
  Clock settled_;  ///< clocks below it are
  bool is_settling_ = false;
  std::deque<PendingUnit> parts_;  ///< of the settlement under way
  std::atomic<std::size_t> parts_left_{0};
  Clock run_start_ = 0;
  std::uint64_t run_ = 0;
};

}  // namespace orrery
