// One clock algebra for threads, sockets and ranks (design section 4): a domain's clock is the minimum of its workers',
// a node's of its domains', the cluster's of its nodes'.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "engine/types.h"

namespace orrery {

/// Who sits where: workers are dealt contiguously over nodes, and a node's workers contiguously over its domains, so
/// that every node and domain holds whole subtrees of the reduction tree over worker ids.
class WorkerMap {
 public:
  /// Requires workers >= nodes >= 1 and domains >= 1.
  WorkerMap(WorkerId workers, NodeId nodes, NodeId this_node, DomainId domains);

  WorkerId workers() const noexcept { return workers_; }
  NodeId nodes() const noexcept { return nodes_; }
  NodeId this_node() const noexcept { return this_node_; }
  DomainId domains() const noexcept { return domains_; }
  NodeId node_of(WorkerId worker) const noexcept;
  /// Workers [first_worker(n), first_worker(n + 1)) belong to node n.
  WorkerId first_worker(NodeId node) const noexcept;
  /// The domain of one of this node's workers.
  DomainId domain_of(WorkerId worker) const noexcept;

 private:
  WorkerId workers_;
  NodeId nodes_, this_node_;
  DomainId domains_;
};

/// The clocks of this node's workers, its domains, all nodes and the cluster. One thread at a time advances them (the
/// executor does so under its lock); any thread may read them.
class ClockTree {
 public:
  ClockTree(const WorkerMap& map, Clock start);

  Clock worker(WorkerId worker) const noexcept;
  Clock domain(DomainId domain) const noexcept;
  Clock node(NodeId node) const noexcept;
  Clock cluster() const noexcept;
  /// The furthest of this node's workers.
  Clock fastest() const noexcept { return fastest_; }

  /// One of this node's workers has finished one more iteration. Cost: a store, and for the last of
  /// the slowest of its domain a look at its siblings, the domains and the nodes.
  void tick(WorkerId worker);
  /// What another node said of itself. Never lowers a clock: a late message must not turn time back.
  void node_reached(NodeId node, Clock clock);

 private:
  void raise_domain(DomainId domain);
  void raise_node();
  void raise_cluster();

  const WorkerMap map_;
  std::vector<std::vector<WorkerId>> workers_of_domain_;
  std::vector<std::size_t> slowest_of_domain_;  ///< workers that stand at the domain's clock
  // Written by one thread at a time with release, read with acquire: who sees a clock sees what was done before it.
  std::vector<std::atomic<Clock>> workers_, domains_, nodes_;
  std::atomic<Clock> cluster_;
  Clock fastest_;
};

}  // namespace orrery
