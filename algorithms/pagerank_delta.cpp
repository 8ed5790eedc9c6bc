#include "algorithms/pagerank_delta.h"

#include <algorithm>
#include <numeric>

#include "engine/reduce.h"

namespace orrery::pagerank {

DeltaTrainee::DeltaTrainee(const Graph& graph, const PageRankParams& params)
    : PageRankTrainee(graph, params),
      out_begin_(graph.nodes() + std::size_t{1}, 0),
      targets_(graph.edges()),
      value_(graph.nodes(), 0),
      delta_(graph.nodes(), (1 - params.damping) / graph.nodes()),
      outboxes_(std::size_t{graph.workers()} * graph.workers()),
      worker_pending_(graph.workers()),
      worker_mass_(graph.workers()) {
  for (std::uint32_t u = 0; u < graph.nodes(); ++u) {
    out_begin_[u + std::size_t{1}] = out_begin_[u] + graph.out_degree(u);
  }
  std::vector<std::uint64_t> next(out_begin_.begin(), out_begin_.end() - 1);
  for (WorkerId worker = 0; worker < graph.workers(); ++worker) {
    for (std::uint32_t v = graph.first(worker); v < graph.first(worker + 1); ++v) {
      for (const std::uint32_t u : graph.sources(worker, v)) targets_[next[u]++] = v;
    }
    sum_up(worker);
  }
  share_sums();
}

void DeltaTrainee::run_unit(const WorkUnit& unit, UnitContext&) {
  if (unit.clock % kClocksPerIteration == 0) {
    process(unit.worker);
  } else {
    receive(unit.worker);
    sum_up(unit.worker);
  }
}

void DeltaTrainee::process(WorkerId worker) {
  const double least = 0.5 * pending_ / graph_.nodes();
  for (std::uint32_t u = graph_.first(worker); u < graph_.first(worker + 1); ++u) {
    if (delta_[u] < least) continue;
    value_[u] += delta_[u];
    if (!graph_.dangling(u)) {
      const double share = params_.damping * delta_[u] / graph_.out_degree(u);
      WorkerId to = 0;
      for (std::uint64_t i = out_begin_[u]; i < out_begin_[u + std::size_t{1}]; ++i) {
        while (targets_[i] >= graph_.first(to + 1)) ++to;
        outbox(worker, to).push_back({targets_[i], share});
      }
    }
    delta_[u] = 0;
  }
}

void DeltaTrainee::receive(WorkerId worker) {
  for (WorkerId from = 0; from < graph_.workers(); ++from) {
    std::vector<Message>& messages = outbox(from, worker);
    for (const Message& message : messages) delta_[message.target] += message.value;
    messages.clear();
  }
}

void DeltaTrainee::sum_up(WorkerId worker) {
  const std::uint32_t first = graph_.first(worker), last = graph_.first(worker + 1);
  worker_pending_[worker] = std::accumulate(delta_.begin() + first, delta_.begin() + last, 0.0);
  worker_mass_[worker] = std::accumulate(value_.begin() + first, value_.begin() + last, 0.0);
}

void DeltaTrainee::share_sums() {
  pending_ = tree_sum(std::span<double>{worker_pending_});
  mass_ = tree_sum(std::span<double>{worker_mass_});
}

void DeltaTrainee::commit(Clock clock, std::span<const Bytes>) {
  if (clock % kClocksPerIteration == 1) share_sums();
}

// In the redistributing system x = v/Σv misses its equations by (Δ - ΣΔ/n)/Σv, whose L1 norm is below twice ΣΔ/Σv.
double DeltaTrainee::residual_bound() const {
  if (params_.dangling == Dangling::drop) return pending_;
  return mass_ > 0 ? 2 * pending_ / mass_ : 2;
}

double DeltaTrainee::conserved() const {
  double with_edges = 0, rest = 0;
  for (std::uint32_t v = 0; v < graph_.nodes(); ++v) {
    (graph_.dangling(v) ? rest : with_edges) += value_[v];
    rest += delta_[v];
  }
  return with_edges + rest / (1 - params_.damping);
}

std::vector<double> DeltaTrainee::ranks() const {
  std::vector<double> ranks = value_;
  if (params_.dangling == Dangling::redistribute && mass_ > 0) {
    for (double& rank : ranks) rank /= mass_;
  }
  return ranks;
}

std::vector<double> DeltaTrainee::save() const {
  std::vector<double> state = value_;
  state.insert(state.end(), delta_.begin(), delta_.end());
  return state;
}

void DeltaTrainee::load(std::span<const double> state) {
  std::copy_n(state.begin(), value_.size(), value_.begin());
  std::copy_n(state.begin() + static_cast<std::ptrdiff_t>(value_.size()), delta_.size(), delta_.begin());
  for (WorkerId worker = 0; worker < graph_.workers(); ++worker) sum_up(worker);
  share_sums();
}

}  // namespace orrery::pagerank
