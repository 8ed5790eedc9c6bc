#include "algorithms/pagerank_delta.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/reduce.h"
#include "engine/wire.h"

namespace orrery::pagerank {

DeltaTrainee::DeltaTrainee(const Graph& graph, const PageRankParams& params)
    : PageRankTrainee(graph, params),
      out_begin_(graph.nodes() + std::size_t{1}, 0),
      value_(graph.nodes(), 0),
      delta_(graph.nodes(), (1 - params.damping) / graph.nodes()),
      given_(graph.nodes(), 0),
      outboxes_(std::size_t{graph.workers()} * graph.workers()),
      givers_(graph.workers()),
      worker_sums_(graph.workers()),
      worker_edges_(graph.workers(), 0),
      processed_edges_(static_cast<double>(graph.edges())) {
  turn_round();
  for (WorkerId worker = 0; worker < graph.workers(); ++worker) sum_up(worker);
  sums_ = all_sums();
  choose_way();
}

void DeltaTrainee::turn_round() {
  const auto for_each_edge = [&](const auto& visit) {
    for (WorkerId worker = graph_.first_here(); worker < graph_.end_here(); ++worker) {
      for (std::uint32_t v = graph_.first(worker); v < graph_.first(worker + 1); ++v) {
        for (const std::uint32_t u : graph_.sources(worker, v)) visit(u, v);
      }
    }
  };
  for_each_edge([&](std::uint32_t u, std::uint32_t) { ++out_begin_[u + std::size_t{1}]; });
  std::partial_sum(out_begin_.begin(), out_begin_.end(), out_begin_.begin());
  targets_.resize(out_begin_.back());
  std::vector<std::uint64_t> next(out_begin_.begin(), out_begin_.end() - 1);
  for_each_edge([&](std::uint32_t u, std::uint32_t v) { targets_[next[u]++] = v; });
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

Bytes DeltaTrainee::pack_partial(Clock clock) {
  Bytes partial;
  if (is_alone()) return partial;
  const std::size_t begin = graph_.first_here(), workers = graph_.end_here() - begin;
  if (clock % kClocksPerIteration != 0) {
    put_all(partial, std::span<const Sums>(worker_sums_).subspan(begin, workers));
    return partial;
  }
  put_all(partial, std::span<const double>(worker_edges_).subspan(begin, workers));
  if (all_pull_) {
    const auto [first, last] = nodes_of(graph_.map().this_node());
    put_all(partial, std::span<const double>(given_).subspan(first, last - first));
    return partial;
  }
  for (std::size_t worker = begin; worker < begin + workers; ++worker) {
    put(partial, std::uint64_t{givers_[worker].size()});
    put_all(partial, std::span<const Message>(givers_[worker]));
  }
  return partial;
}

void DeltaTrainee::take_partial(Clock clock, NodeId from, std::span<const std::byte> partial) {
  WireReader in(partial);
  const std::size_t begin = graph_.map().first_worker(from), workers = graph_.map().first_worker(from + 1) - begin;
  if (clock % kClocksPerIteration != 0) {
    in.take_all(std::span(worker_sums_).subspan(begin, workers));
    return;
  }
  in.take_all(std::span(worker_edges_).subspan(begin, workers));
  if (all_pull_) {
    const auto [first, last] = nodes_of(from);
    in.take_all(std::span(given_).subspan(first, last - first));
    return;
  }
  for (std::size_t worker = begin; worker < begin + workers; ++worker) {
    givers_[worker].resize(in.take<std::uint64_t>());
    in.take_all(std::span(givers_[worker]));
  }
}

void DeltaTrainee::commit(Clock clock, std::span<const Bytes> partials) {
  for (NodeId node = 0; node < partials.size(); ++node) {
    if (node != graph_.map().this_node()) take_partial(clock, node, partials[node]);
  }
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
  givers_[worker].clear();
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
  WorkerId to = graph_.first_here();
  for (const std::uint32_t target : targets(node)) {
    while (target >= graph_.first(to + 1)) ++to;
    outbox(worker, to).push_back({target, share});
  }
  if (!is_alone()) givers_[worker].push_back({node, share});
}

void DeltaTrainee::receive(WorkerId worker) {
  if (all_pull_) {
    for (std::uint32_t v = graph_.first(worker); v < graph_.first(worker + 1); ++v) {
      delta_[v] += pull(graph_.sources(worker, v), given_.data());
    }
    return;
  }
  for (WorkerId from = 0; from < graph_.workers(); ++from) {
    if (from < graph_.first_here() || from >= graph_.end_here()) {
      receive_from_afar(from, worker);
      continue;
    }
    std::vector<Message>& messages = outbox(from, worker);
    for (const Message& message : messages) delta_[message.node] += message.value;
    messages.clear();
  }
}

// In the order in which messages would have been.
void DeltaTrainee::receive_from_afar(WorkerId from, WorkerId worker) {
  for (const Message& giver : givers_[from]) {
    const std::span<const std::uint32_t> all = targets(giver.node);
    for (auto it = std::lower_bound(all.begin(), all.end(), graph_.first(worker));
         it != all.end() && *it < graph_.first(worker + 1); ++it) {
      delta_[*it] += giver.value;
    }
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
