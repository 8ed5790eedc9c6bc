// A graph as PageRank reads it: for every node the sources of its in-edges. Nodes are renumbered by falling in-degree,
// so that neighbours in the order have equally long lists (the loop over one ends where the branch predictor expects
// it: a quarter of the time of an iteration on R-MAT), and dealt to workers in contiguous ranges of about equal work.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/clock.h"
#include "engine/data/edges.h"
#include "engine/data/parallel_for.h"
#include "numa/memory.h"
#include "numa/topology.h"

namespace orrery::pagerank {

class Graph {
 public:
  /// Lays out `edges` between the nodes [0, nodes) for the map's workers; a worker's sources lie in the memory of its
  /// domain. The layout is a function of the set of edges and the number of workers; of several (engine) nodes each
  /// keeps the sources of its own workers only. Cost: a counting sort of the edges and a sort of each node's sources,
  /// 4 bytes an edge kept.
  Graph(std::span<const Edge> edges, std::uint32_t nodes, const WorkerMap& map, const Topology& topology,
        const ParallelFor& parallel);

  std::uint32_t nodes() const { return static_cast<std::uint32_t>(out_degree_.size()); }
  std::uint64_t edges() const { return in_begin_.back(); }
  WorkerId workers() const { return map_.workers(); }
  const WorkerMap& map() const { return map_; }
  /// Workers [first_here(), end_here()) are on this engine node.
  WorkerId first_here() const { return map_.first_worker(map_.this_node()); }
  WorkerId end_here() const { return map_.first_worker(map_.this_node() + 1); }
  /// Nodes [first(w), first(w + 1)) belong to worker w.
  std::uint32_t first(WorkerId worker) const { return first_[worker]; }
  std::uint32_t out_degree(std::uint32_t node) const { return out_degree_[node]; }
  bool dangling(std::uint32_t node) const { return out_degree_[node] == 0; }
  /// The number that the reader gave to a node.
  std::uint32_t external(std::uint32_t node) const { return external_[node]; }
  /// The sources of the in-edges of one of the nodes of a worker that is here, ascending; one that occurs twice has two
  /// edges.
  std::span<const std::uint32_t> sources(WorkerId worker, std::uint32_t node) const {
    const std::uint64_t begin = in_begin_[node];
    return sources_[worker].as<std::uint32_t>().subspan(begin - in_begin_[first_[worker]], in_begin_[node + 1] - begin);
  }
  /// Among the in-edges that are here.
  std::uint64_t repeated_edges() const { return repeated_edges_; }

 private:
  std::vector<std::uint32_t> number_by_in_degree(std::span<const Edge> edges);
  void deal();
  void sort_sources(WorkerId worker, std::uint64_t& repeated);

  const WorkerMap map_;
  std::vector<std::uint32_t> external_, out_degree_;
  std::vector<std::uint64_t> in_begin_;  ///< nodes + 1
  std::vector<std::uint32_t> first_;     ///< workers + 1
  std::vector<Buffer> sources_;          ///< by worker; empty for those that are not here
  std::uint64_t repeated_edges_ = 0;
};

/// Σ contribution[source] in an order that the list alone determines.
inline double pull(std::span<const std::uint32_t> sources, const double* contribution) {
  double first = 0, second = 0, third = 0, fourth = 0;  // four chains of additions that do not wait for each other
  std::size_t i = 0;
  for (; i + 4 <= sources.size(); i += 4) {
    first += contribution[sources[i]];
    second += contribution[sources[i + 1]];
    third += contribution[sources[i + 2]];
    fourth += contribution[sources[i + 3]];
  }
  for (; i < sources.size(); ++i) first += contribution[sources[i]];
  return (first + second) + (third + fourth);
}

}  // namespace orrery::pagerank
