#include "algorithms/pagerank_delta.h"

#include <algorithm>
#include <cmath>

#include "engine/reduce.h"

namespace orrery::pagerank {

DeltaTrainee::DeltaTrainee(const Graph& graph, const PageRankParams& params)
    : PageRankTrainee(graph, params),
      out_begin_(graph.nodes() + std::size_t{1}, 0),
      targets_(graph.edges()),
      value_(graph.nodes(), 0),
      delta_(graph.nodes(), (1 - params.damping) / graph.nodes()),
      given_(graph.nodes(), 0),
      outboxes_(std::size_t{graph.workers()} * graph.workers()),
      worker_sums_(graph.workers()),
      worker_edges_(graph.workers(), 0),
      processed_edges_(static_cast<double>(graph.edges())) {
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
  sums_ = all_sums();
  choose_way();
}

void DeltaTrainee::run_unit(const WorkUnit& unit, UnitContext&) {
  switch (unit.clock % kClocksPerIteration) {
    case 0:
      process(unit.worker);
      break;
    case 1:
      receive(unit.worker);
      sum_up(unit.worker);
      break;
    default:
      sum_up(unit.worker);
  }
}

void DeltaTrainee::commit(Clock clock, std::span<const Bytes>) {
  switch (clock % kClocksPerIteration) {
    case 0:
      length_ = 1;
      processed_edges_ = tree_sum(std::span<double>{worker_edges_});
      break;
    case 1:
      sums_ = all_sums();
      length_ = length_without_change();
      break;
    default:
      sums_ = all_sums();
      choose_way();
  }
}

void DeltaTrainee::choose_way() {
  constexpr double kPushCost = 8;  // a message is written, read, and added where memory is far
  all_pull_ = kPushCost * processed_edges_ >= static_cast<double>(graph_.edges());
}

void DeltaTrainee::process(WorkerId worker) {
  const double least = 0.5 * sums_.pending / graph_.nodes();
  double edges = 0;
  for (std::uint32_t u = graph_.first(worker); u < graph_.first(worker + 1); ++u) {
    value_[u] = longer_value(u);
    delta_[u] = longer_delta(u);
    given_[u] = 0;
    if (std::abs(delta_[u]) < least) continue;
    value_[u] += delta_[u];
    if (!graph_.dangling(u)) {
      given_[u] = params_.damping * delta_[u] / graph_.out_degree(u);
      edges += graph_.out_degree(u);
      if (!all_pull_) send(worker, u, given_[u]);
    }
    delta_[u] = 0;
  }
  worker_edges_[worker] = edges;
}

void DeltaTrainee::send(WorkerId worker, std::uint32_t node, double share) {
  WorkerId to = 0;
  for (std::uint64_t i = out_begin_[node]; i < out_begin_[node + std::size_t{1}]; ++i) {
    while (targets_[i] >= graph_.first(to + 1)) ++to;
    outbox(worker, to).push_back({targets_[i], share});
  }
}

void DeltaTrainee::receive(WorkerId worker) {
  if (all_pull_) {
    for (std::uint32_t v = graph_.first(worker); v < graph_.first(worker + 1); ++v) {
      delta_[v] += pull(graph_.sources(worker, v), given_.data());
    }
    return;
  }
  for (WorkerId from = 0; from < graph_.workers(); ++from) {
    std::vector<Message>& messages = outbox(from, worker);
    for (const Message& message : messages) delta_[message.target] += message.value;
    messages.clear();
  }
}

double DeltaTrainee::longer_delta(std::uint32_t node) const {
  return length_ * delta_[node] + (1 - length_) * ((1 - params_.damping) / graph_.nodes());
}

void DeltaTrainee::sum_up(WorkerId worker) {
  Sums sums;
  for (std::uint32_t v = graph_.first(worker); v < graph_.first(worker + 1); ++v) {
    const double delta = longer_delta(v);
    sums = add(sums, {std::abs(delta), delta, longer_value(v)});
  }
  worker_sums_[worker] = sums;
}

DeltaTrainee::Sums DeltaTrainee::all_sums() const {
  std::vector<Sums> sums = worker_sums_;
  return tree_combine(std::span<Sums>{sums}, add);
}

double DeltaTrainee::length_without_change() const {
  const double rest = (1 - params_.damping) - sums_.change;
  const bool is_worth_it = std::abs(sums_.change) >= 0.5 * sums_.pending && rest > 0;
  return is_worth_it ? (1 - params_.damping) / rest : 1;
}

// In the redistributing system x = v/Σv misses its equations by (Δ - ΣΔ/n)/Σv.
double DeltaTrainee::residual_bound() const {
  if (params_.dangling == Dangling::drop) return sums_.pending;
  return sums_.mass > 0 ? (sums_.pending + std::abs(sums_.change)) / sums_.mass : 2;
}

double DeltaTrainee::conserved() const {
  double with_edges = 0, rest = 0;
  for (std::uint32_t v = 0; v < graph_.nodes(); ++v) {
    (graph_.dangling(v) ? rest : with_edges) += longer_value(v);
    rest += longer_delta(v);
  }
  return with_edges + rest / (1 - params_.damping);
}

std::vector<double> DeltaTrainee::ranks() const {
  const double scale = params_.dangling == Dangling::redistribute && sums_.mass > 0 ? 1 / sums_.mass : 1;
  std::vector<double> ranks(value_.size());
  for (std::uint32_t v = 0; v < graph_.nodes(); ++v) ranks[v] = scale * longer_value(v);
  return ranks;
}

std::vector<double> DeltaTrainee::save() const {
  std::vector<double> state;
  state.reserve(2 * value_.size() + 1);
  for (std::uint32_t v = 0; v < graph_.nodes(); ++v) state.push_back(longer_value(v));
  for (std::uint32_t v = 0; v < graph_.nodes(); ++v) state.push_back(longer_delta(v));
  state.push_back(processed_edges_);
  return state;
}

void DeltaTrainee::load(std::span<const double> state) {
  std::copy_n(state.begin(), value_.size(), value_.begin());
  std::copy_n(state.begin() + static_cast<std::ptrdiff_t>(value_.size()), delta_.size(), delta_.begin());
  processed_edges_ = state.back();
  length_ = 1;
  for (WorkerId worker = 0; worker < graph_.workers(); ++worker) sum_up(worker);
  sums_ = all_sums();
  choose_way();
}

}  // namespace orrery::pagerank
