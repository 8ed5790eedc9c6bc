#include "engine/clock_keeper.h"

#include <algorithm>
#include <utility>

namespace orrery {

ClockKeeper::ClockKeeper(const WorkerMap& map, Schedule& schedule, Program& program, BlockTraffic& blocks,
                         Settings settings)
    : map_(map),
      schedule_(schedule),
      program_(program),
      blocks_(blocks),
      settings_(std::move(settings)),
      tree_(map, settings_.start),
      chain_ends_(std::size_t{schedule.blocks()} * schedule.groups()),
      next_open_(settings_.start),
      node_done_(settings_.start),
      committed_(settings_.start),
      limit_(settings_.start),
      settled_(settings_.start) {}

void ClockKeeper::post(ClockEvent event, ReadyList& ready) {
  {
    const std::lock_guard lock(events_mutex_);
    events_.push_back(std::move(event));
    if (processing_) return;  // whoever processes now will see it
    processing_ = true;
  }
  for (;;) {
    ClockEvent next;
    {
      const std::lock_guard lock(events_mutex_);
      if (events_.empty()) {
        processing_ = false;
        return;
      }
      next = std::move(events_.front());
      events_.pop_front();
    }
    try {
      process(next, ready);
    } catch (...) {
      // commit() or plan() threw. The role is given back before the exception goes on, or nobody could take it again.
      const std::lock_guard lock(events_mutex_);
      processing_ = false;
      throw;
    }
  }
}

void ClockKeeper::process(ClockEvent& event, ReadyList& ready) {
  switch (event.kind) {
    case ClockEvent::Kind::begin:
      run_ = event.run;
      run_start_ = limit_;
      limit_ = event.clock;
      break;
    case ClockEvent::Kind::tick:
      tree_.tick(event.worker);
      start_next_turn(event.worker, ready);
      break;
    case ClockEvent::Kind::node_clock:
      tree_.node_reached(event.node, event.clock);
      break;
    case ClockEvent::Kind::settled:
      is_settling_ = false;
      break;
    case ClockEvent::Kind::message:
      receive(event.message);
      break;
  }
  hand_in_partials();
  program_.clocks_moved(tree_);
  commit_finished_clocks(ready);
  open_clocks(ready);
  if (run_is_over()) settings_.run_over(run_);
}

void ClockKeeper::receive(Message& message) {
  if (message.kind == Message::Kind::partial) {
    partials_of(message.clock)[message.from] = std::move(message.payload);
  } else {
    program_.message_arrived(message, tree_);
  }
}

// The worker has finished a clock: its units of the next one, if that is open, need not wait for it any more.
void ClockKeeper::start_next_turn(WorkerId worker, ReadyList& ready) {
  ClockFrame* frame = frame_of(tree_.worker(worker));
  if (frame == nullptr) return;
  for (PendingUnit* pending : frame->turn(worker).waiting) satisfy(*pending, ready);
}

// What this node tells the others of every clock that all its workers have finished: the program's messages and the
// partial, then the clock. On one link they arrive in this order, so who knows the clock has the rest.
void ClockKeeper::hand_in_partials() {
  const NodeId here = map_.this_node();
  for (; node_done_ < tree_.node(here); ++node_done_) {
    program_.node_ended(node_done_);
    Bytes mine = program_.pack_partial(node_done_);
    if (map_.nodes() > 1) {
      Message message;
      message.clock = node_done_;
      message.kind = Message::Kind::partial;
      message.payload = mine;
      if (!mine.empty()) blocks_.send_to_others(message);
      message.kind = Message::Kind::clock;
      message.clock = node_done_ + 1;
      message.payload.clear();
      blocks_.send_to_others(message);
    }
    partials_of(node_done_)[here] = std::move(mine);
  }
}

std::vector<Bytes>& ClockKeeper::partials_of(Clock clock) {
  auto& of_nodes = partials_[clock];
  of_nodes.resize(map_.nodes());
  return of_nodes;
}

void ClockKeeper::commit_finished_clocks(ReadyList& ready) {
  for (; committed_ < std::min(tree_.cluster(), node_done_); ++committed_) {
    if (!is_settled(committed_, ready)) return;
    program_.commit(committed_, partials_of(committed_));
    partials_.erase(committed_);
    // All units of the clock are over here, so nobody but the ends of chains points into its frame.
    const auto frame = frames_.find(committed_);
    frame->second->retire(chain_ends_);
    frames_.erase(frame);
  }
}

// Settling is work for all threads: its parts go through the queues as units do, and the last one done is an event, at
// which the program is asked for more.
bool ClockKeeper::is_settled(Clock clock, ReadyList& ready) {
  if (is_settling_) return false;
  if (map_.nodes() > 1 || settings_.bound > 0 || clock < settled_) return true;
  std::size_t parts = program_.settle_parts(clock);
  for (; parts == 1; parts = program_.settle_parts(clock)) program_.settle(clock, 0);
  if (parts == 0) {
    ++settled_;
    return true;
  }
  if (parts_.size() < parts) parts_.resize(parts);
  parts_left_.store(parts);
  is_settling_ = true;
  for (std::size_t part = 0; part < parts; ++part) {
    PendingUnit& unit = parts_[part];
    unit.is_settlement = true;
    unit.unit.clock = clock;
    unit.unit.index = static_cast<std::uint32_t>(part);
    unit.domain = static_cast<DomainId>(part % map_.domains());
    ready.push_back(&unit);
  }
  return false;
}

// Opens every clock that some worker of this node has reached, that the bound allows and whose parameters are here.
void ClockKeeper::open_clocks(ReadyList& ready) {
  while (next_open_ < limit_ && next_open_ <= tree_.fastest() && next_open_ - committed_ <= settings_.bound) {
    if (settings_.should_stop && next_open_ > run_start_ && settings_.should_stop()) {
      limit_ = next_open_;
      return;
    }
    if (!program_.may_begin(next_open_)) return;
    open(next_open_++, ready);
  }
}

void ClockKeeper::open(Clock clock, ReadyList& ready) {
  ClockPlan plan;
  schedule_.plan(clock, plan);
  std::vector<Visit*> handovers, expected;
  auto made = std::make_unique<ClockFrame>(clock, std::move(plan), map_, schedule_.chained(), chain_ends_,
                                           schedule_.blocks(), handovers, expected);
  ClockFrame& frame = *made;
  frames_.emplace(clock, std::move(made));
  const NodeId here = map_.this_node();
  for (WorkerId w = map_.first_worker(here); w < map_.first_worker(here + 1); ++w) {
    if (tree_.worker(w) >= clock) continue;  // the worker is free for this clock
    for (PendingUnit* pending : frame.turn(w).waiting) pending->missing.fetch_add(1);
  }
  for (Visit* visit : handovers) blocks_.hand_over(*visit, ready);
  for (Visit* visit : expected) blocks_.expect(*visit, ready);
  for (std::size_t i = 0; i < frame.size(); ++i) satisfy(frame.unit(i), ready);
}

ClockFrame* ClockKeeper::frame_of(Clock clock) {
  const auto found = frames_.find(clock);
  return found == frames_.end() ? nullptr : found->second.get();
}

const ChainEnd& ClockKeeper::chain_end(std::uint32_t group, BlockId block) const {
  return chain_ends_[std::size_t{group} * schedule_.blocks() + block];
}

}  // namespace orrery
