#include "algorithms/pagerank_power.h"

#include <cmath>

#include "engine/reduce.h"
#include "engine/wire.h"

namespace orrery::pagerank {

PowerTrainee::PowerTrainee(const Graph& graph, const PageRankParams& params, const Topology& topology)
    : PageRankTrainee(graph, params),
      rank_(graph.nodes()),
      share_(graph.nodes(), 0),
      worker_dangling_(graph.workers()),
      worker_change_(graph.workers(), 0) {
  for (Buffer& buffer : contributions_) buffer = Buffer::interleaved(graph.nodes() * sizeof(double), topology);
  for (std::uint32_t v = 0; v < graph.nodes(); ++v) {
    if (!graph.dangling(v)) share_[v] = 1.0 / graph.out_degree(v);
  }
  set_ranks(std::vector<double>(graph.nodes(), 1.0 / graph.nodes()));
}

void PowerTrainee::run_unit(const WorkUnit& unit, UnitContext&) {
  const double damping = params_.damping;
  const double teleport = ((1 - damping) + damping * dangling_) / graph_.nodes();
  const double* const now = contributions(current_);
  double* const next = contributions(1 - current_);
  double change = 0, on_dangling = 0;
  for (std::uint32_t v = graph_.first(unit.worker); v < graph_.first(unit.worker + 1); ++v) {
    const double rank = teleport + damping * pull(graph_.sources(unit.worker, v), now);
    change += std::abs(rank - rank_[v]);
    on_dangling += share_[v] == 0 ? rank : 0;
    next[v] = rank * share_[v];
    rank_[v] = rank;
  }
  worker_change_[unit.worker] = change;
  worker_dangling_[unit.worker] = on_dangling;
}

Bytes PowerTrainee::pack_partial(Clock) {
  Bytes partial;
  if (is_alone()) return partial;
  for (WorkerId worker = graph_.first_here(); worker < graph_.end_here(); ++worker) {
    put(partial, worker_change_[worker]);
    put(partial, worker_dangling_[worker]);
  }
  const auto [first, last] = nodes_of(graph_.map().this_node());
  put_all(partial, std::span<const double>(contributions(1 - current_) + first, last - first));
  return partial;
}

void PowerTrainee::take_partial(NodeId from, std::span<const std::byte> partial) {
  WireReader in(partial);
  for (WorkerId worker = graph_.map().first_worker(from); worker < graph_.map().first_worker(from + 1); ++worker) {
    worker_change_[worker] = in.take<double>();
    worker_dangling_[worker] = in.take<double>();
  }
  const auto [first, last] = nodes_of(from);
  in.take_all(std::span<double>(contributions(1 - current_) + first, last - first));
}

void PowerTrainee::commit(Clock, std::span<const Bytes> partials) {
  for (NodeId node = 0; node < partials.size(); ++node) {
    if (node != graph_.map().this_node()) take_partial(node, partials[node]);
  }
  change_ = tree_sum(std::span<double>{worker_change_});
  dangling_ = tree_sum(std::span<double>{worker_dangling_});
  current_ = 1 - current_;
}

double PowerTrainee::scale() const {
  if (params_.dangling == Dangling::redistribute) return 1;
  return (1 - params_.damping) / ((1 - params_.damping) + params_.damping * dangling_);
}

std::vector<double> PowerTrainee::ranks() const {
  std::vector<double> scaled = rank_;
  for (double& rank : scaled) rank *= scale();
  return scaled;
}

std::vector<double> PowerTrainee::save() const {
  std::vector<double> state = rank_;
  state.push_back(change_);
  return state;
}

void PowerTrainee::load(std::span<const double> state) {
  set_ranks(state.first(rank_.size()));
  change_ = state.back();
}

// The sums are made as run_unit() makes them, so that a resumed run goes on to the same bits.
void PowerTrainee::set_ranks(std::span<const double> ranks) {
  for (WorkerId worker = 0; worker < graph_.workers(); ++worker) {
    double on_dangling = 0;
    for (std::uint32_t v = graph_.first(worker); v < graph_.first(worker + 1); ++v) {
      rank_[v] = ranks[v];
      contributions(current_)[v] = rank_[v] * share_[v];
      on_dangling += share_[v] == 0 ? rank_[v] : 0;
    }
    worker_dangling_[worker] = on_dangling;
  }
  dangling_ = tree_sum(std::span<double>{worker_dangling_});
}

}  // namespace orrery::pagerank
