#include "algorithms/pagerank_graph.h"

#include <algorithm>
#include <numeric>

namespace orrery::pagerank {

Graph::Graph(std::span<const Edge> edges, std::uint32_t nodes, const WorkerMap& map, const Topology& topology,
             const ParallelFor& parallel)
    : map_(map), external_(nodes), out_degree_(nodes, 0), in_begin_(nodes + std::size_t{1}, 0) {
  const std::vector<std::uint32_t> internal = number_by_in_degree(edges);
  deal();
  std::vector<std::uint32_t*> list(nodes, nullptr);  // where a node's next source goes; null: to another engine node
  sources_.resize(workers());
  for (WorkerId worker = first_here(); worker < end_here(); ++worker) {
    const std::uint64_t begin = in_begin_[first_[worker]];
    const std::uint64_t count = in_begin_[first_[worker + 1]] - begin;
    sources_[worker] = Buffer::local(count * sizeof(std::uint32_t), map.domain_of(worker), topology);
    std::uint32_t* const sources = sources_[worker].as<std::uint32_t>().data();
    for (std::uint32_t v = first_[worker]; v < first_[worker + 1]; ++v) list[v] = sources + (in_begin_[v] - begin);
  }
  for (const Edge& edge : edges) {
    if (std::uint32_t*& next = list[internal[edge.target]]; next != nullptr) *next++ = internal[edge.source];
  }
  std::vector<std::uint64_t> repeated(end_here() - first_here(), 0);
  parallel(repeated.size(), [&](std::size_t i) { sort_sources(first_here() + static_cast<WorkerId>(i), repeated[i]); });
  repeated_edges_ = std::accumulate(repeated.begin(), repeated.end(), std::uint64_t{0});
}

// Sets external_, out_degree_ and in_begin_. @return the new number of each of the reader's.
std::vector<std::uint32_t> Graph::number_by_in_degree(std::span<const Edge> edges) {
  std::vector<std::uint32_t> in_degree(external_.size(), 0), internal(external_.size());
  for (const Edge& edge : edges) ++in_degree[edge.target];
  std::iota(external_.begin(), external_.end(), std::uint32_t{0});
  std::stable_sort(external_.begin(), external_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return in_degree[a] > in_degree[b]; });
  for (std::uint32_t v = 0; v < nodes(); ++v) {
    internal[external_[v]] = v;
    in_begin_[v + std::size_t{1}] = in_begin_[v] + in_degree[external_[v]];
  }
  for (const Edge& edge : edges) ++out_degree_[internal[edge.source]];
  return internal;
}

void Graph::deal() {
  constexpr std::uint64_t kNodeWork = 4;  // writing a rank costs about as much as reading that many edges
  const auto work_before = [&](std::uint32_t v) { return in_begin_[v] + kNodeWork * v; };
  const std::uint64_t all = work_before(nodes());
  std::uint32_t v = 0;
  for (WorkerId worker = 0; worker < workers(); ++worker) {
    while (v < nodes() && work_before(v) * workers() < all * worker) ++v;
    first_.push_back(v);
  }
  first_.push_back(nodes());
}

void Graph::sort_sources(WorkerId worker, std::uint64_t& repeated) {
  std::uint32_t* at = sources_[worker].as<std::uint32_t>().data();
  for (std::uint32_t v = first_[worker]; v < first_[worker + 1]; ++v) {
    std::uint32_t* const end = at + (in_begin_[v + std::size_t{1}] - in_begin_[v]);
    std::sort(at, end);
    for (std::uint32_t* source = at; source + 1 < end; ++source) repeated += source[0] == source[1] ? 1 : 0;
    at = end;
  }
}

}  // namespace orrery::pagerank
