#include "engine/clock.h"

#include <algorithm>
#include <limits>

#include "engine/assert.h"

namespace orrery {
namespace {

// The first of `parts` contiguous shares of [0, whole), sizes differing by one at most.
std::uint32_t share_begin(std::uint64_t whole, std::uint64_t parts, std::uint64_t part) {
  return static_cast<std::uint32_t>(whole * part / parts);
}

// The share that `element` is in: the inverse of share_begin.
std::uint32_t share_of(std::uint64_t whole, std::uint64_t parts, std::uint64_t element) {
  return static_cast<std::uint32_t>(((element + 1) * parts - 1) / whole);
}

// release: pairs with the acquire in the readers below.
void store(std::atomic<Clock>& clock, Clock value) { clock.store(value, std::memory_order_release); }

// acquire: pairs with the release in store().
Clock load(const std::atomic<Clock>& clock) { return clock.load(std::memory_order_acquire); }

}  // namespace

WorkerMap::WorkerMap(WorkerId workers, NodeId nodes, NodeId this_node, DomainId domains)
    : workers_(workers), nodes_(nodes), this_node_(this_node), domains_(domains) {
  ORRERY_CHECK(nodes >= 1 && workers >= nodes && this_node < nodes && domains >= 1);
}

NodeId WorkerMap::node_of(WorkerId worker) const noexcept { return share_of(workers_, nodes_, worker); }

WorkerId WorkerMap::first_worker(NodeId node) const noexcept { return share_begin(workers_, nodes_, node); }

DomainId WorkerMap::domain_of(WorkerId worker) const noexcept {
  const NodeId node = node_of(worker);
  const WorkerId first = first_worker(node);
  return share_of(first_worker(node + 1) - first, domains_, worker - first);
}

ClockTree::ClockTree(const WorkerMap& map, Clock start)
    : map_(map),
      workers_(map.workers()),
      domains_(map.domains()),
      nodes_(map.nodes()),
      cluster_(start),
      fastest_(start) {
  for (auto* level : {&workers_, &domains_, &nodes_}) {
    for (auto& clock : *level) store(clock, start);
  }
  // A domain without workers must not hold its node back.
  const WorkerId first = map_.first_worker(map_.this_node()), last = map_.first_worker(map_.this_node() + 1);
  workers_of_domain_.resize(map_.domains());
  for (WorkerId w = first; w < last; ++w) workers_of_domain_[map_.domain_of(w)].push_back(w);
  for (DomainId d = 0; d < map_.domains(); ++d) {
    slowest_of_domain_.push_back(workers_of_domain_[d].size());
    if (workers_of_domain_[d].empty()) store(domains_[d], std::numeric_limits<Clock>::max());
  }
}

Clock ClockTree::worker(WorkerId worker) const noexcept { return load(workers_[worker]); }
Clock ClockTree::domain(DomainId domain) const noexcept { return load(domains_[domain]); }
Clock ClockTree::node(NodeId node) const noexcept { return load(nodes_[node]); }
Clock ClockTree::cluster() const noexcept { return load(cluster_); }

void ClockTree::tick(WorkerId worker) {
  ORRERY_CHECK(map_.node_of(worker) == map_.this_node());
  const Clock now = load(workers_[worker]) + 1;
  store(workers_[worker], now);
  fastest_ = std::max(fastest_, now);
  const DomainId domain = map_.domain_of(worker);
  // Only the last of the slowest moves the minimum.
  if (now - 1 == load(domains_[domain]) && --slowest_of_domain_[domain] == 0) raise_domain(domain);
}

void ClockTree::node_reached(NodeId node, Clock clock) {
  if (clock <= load(nodes_[node])) return;
  store(nodes_[node], clock);
  raise_cluster();
}

void ClockTree::raise_domain(DomainId domain) {
  Clock least = std::numeric_limits<Clock>::max();
  const std::vector<WorkerId>& workers = workers_of_domain_[domain];
  for (const WorkerId w : workers) least = std::min(least, load(workers_[w]));
  const auto is_slowest = [&](WorkerId w) { return load(workers_[w]) == least; };
  slowest_of_domain_[domain] = static_cast<std::size_t>(std::count_if(workers.begin(), workers.end(), is_slowest));
  store(domains_[domain], least);
  raise_node();
}

void ClockTree::raise_node() {
  Clock least = std::numeric_limits<Clock>::max();
  for (const auto& clock : domains_) least = std::min(least, load(clock));
  node_reached(map_.this_node(), least);
}

void ClockTree::raise_cluster() {
  Clock least = std::numeric_limits<Clock>::max();
  for (const auto& clock : nodes_) least = std::min(least, load(clock));
  if (least > load(cluster_)) store(cluster_, least);
}

}  // namespace orrery
