#include "engine/clock_frame.h"

#include <algorithm>
#include <utility>

#include "engine/assert.h"

namespace orrery {

Visit* Visit::done() {
  static Visit mark;  // only its address is used
  return &mark;
}

std::unique_ptr<Bytes> Arrivals::expect(Visit& visit) {
  const std::lock_guard lock(mutex_);
  const auto found = early_.find(key_of(visit));
  if (found == early_.end()) {
    waiting_.emplace(key_of(visit), &visit);
    return nullptr;
  }
  auto payload = std::make_unique<Bytes>(std::move(found->second));
  early_.erase(found);
  return payload;
}

Visit* Arrivals::arrived(const ArrivalKey& key, Bytes& payload) {
  const std::lock_guard lock(mutex_);
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) {
    early_.emplace(key, std::move(payload));
    return nullptr;
  }
  Visit* visit = found->second;
  waiting_.erase(found);
  return visit;
}

ClockFrame::ClockFrame(Clock clock, ClockPlan plan, const WorkerMap& map, bool chained,
                       std::vector<ChainEnd>& chain_ends, BlockId blocks, std::vector<Visit*>& handovers,
                       std::vector<Visit*>& expected)
    : clock_(clock), plan_(std::move(plan)) {
  const NodeId here = map.this_node();
  first_worker_ = map.first_worker(here);
  const WorkerId own_workers = map.first_worker(here + 1) - first_worker_;
  for (std::size_t i = 0; i < plan_.size(); ++i) {
    const WorkUnit unit = plan_.unit(i);
    ORRERY_CHECK(unit.worker < map.workers() && unit.clock == clock);
    count_ += map.node_of(unit.worker) == here ? 1 : 0;
    visit_count_ += unit.blocks.size();
  }
  units_ = std::make_unique<PendingUnit[]>(count_);
  turns_ = std::make_unique<WorkerTurn[]>(own_workers);
  visits_ = std::make_unique<Visit[]>(visit_count_);
  for (WorkerId w = 0; w < own_workers; ++w) turns_[w].worker = first_worker_ + w;

  std::vector<PendingUnit*> last_of_worker(own_workers, nullptr);
  std::vector<Visit*> latest(chain_ends.size(), nullptr);
  visit_count_ = 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i < plan_.size(); ++i) {
    const WorkUnit unit = plan_.unit(i);
    const NodeId node = map.node_of(unit.worker);
    PendingUnit* pending = nullptr;
    if (node == here) {
      pending = &units_[next++];
      pending->unit = unit;
      pending->domain = map.domain_of(unit.worker);
      pending->turn = &turn(unit.worker);
      pending->turn->remaining.fetch_add(1);
      PendingUnit*& before = last_of_worker[unit.worker - first_worker_];
      if (chained && before != nullptr) {
        before->next_of_worker = pending;
        pending->missing.fetch_add(1);
      } else {
        pending->turn->waiting.push_back(pending);
      }
      before = pending;
    }
    link_visits(pending, unit, node, here, chain_ends, blocks, handovers, expected, latest);
  }
  for (Visit* visit : latest) {
    if (visit != nullptr) visit->last = true;
  }
  for (WorkerId w = 0; w < own_workers; ++w) ORRERY_CHECK(turns_[w].remaining.load() > 0);
}

void ClockFrame::link_visits(PendingUnit* pending, const WorkUnit& unit, NodeId node, NodeId here,
                             std::vector<ChainEnd>& chain_ends, BlockId blocks, std::vector<Visit*>& handovers,
                             std::vector<Visit*>& expected, std::vector<Visit*>& latest) {
  for (const BlockId block : unit.blocks) {
    const std::size_t chain = std::size_t{unit.group} * blocks + block;
    ORRERY_CHECK(block < blocks && chain < chain_ends.size());
    Visit& visit = visits_[visit_count_++];
    visit.unit = pending;
    visit.node = node;
    visit.block = block;
    visit.group = unit.group;
    visit.clock = clock_;
    visit.first = latest[chain] == nullptr;
    visit.number = visit.first ? 0 : latest[chain]->number + 1;
    latest[chain] = &visit;
    if (pending != nullptr) {
      if (pending->visits == nullptr) pending->visits = &visit;
      pending->missing.fetch_add(1);
    }
    ChainEnd& end = chain_ends[chain];
    const bool block_is_here = !end.visited ? node == here : end.node == here;
    if (block_is_here) {
      const bool free = end.visit == nullptr || end.visit->next.exchange(&visit) == Visit::done();
      if (free) handovers.push_back(&visit);
    } else if (node == here) {
      expected.push_back(&visit);
    }
    end = {true, node, node == here ? &visit : nullptr};
  }
}

PendingUnit* ClockFrame::find(std::uint32_t index) noexcept {
  PendingUnit* const end = units_.get() + count_;
  PendingUnit* const found = std::lower_bound(
      units_.get(), end, index, [](const PendingUnit& pending, std::uint32_t i) { return pending.unit.index < i; });
  return found != end && found->unit.index == index ? found : nullptr;
}

void ClockFrame::retire(std::vector<ChainEnd>& chain_ends) const {
  for (ChainEnd& end : chain_ends) {
    if (end.visit >= visits_.get() && end.visit < visits_.get() + visit_count_) end.visit = nullptr;
  }
}

}  // namespace orrery
