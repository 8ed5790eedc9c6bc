#include "algorithms/pagerank_trainee.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/engine.h"
#include "engine/error.h"
#include "engine/reduce.h"

namespace orrery::pagerank {
namespace {

constexpr const char* kSection = "ranks";

Residual add(const Residual& a, const Residual& b) { return {a.l1 + b.l1, a.mass + b.mass, a.dangling + b.dangling}; }

}  // namespace

Residual residual(const Graph& graph, const std::vector<double>& ranks, double damping, Dangling dangling,
                  const ParallelFor& parallel, const Collective& nodes) {
  std::vector<double> contribution(graph.nodes(), 0);
  std::vector<Residual> sums(graph.workers());
  parallel(graph.workers(), [&](std::size_t w) {
    const auto worker = static_cast<WorkerId>(w);
    for (std::uint32_t v = graph.first(worker); v < graph.first(worker + 1); ++v) {
      if (!graph.dangling(v)) contribution[v] = ranks[v] / graph.out_degree(v);
      sums[w].mass += ranks[v];
      sums[w].dangling += graph.dangling(v) ? ranks[v] : 0;
    }
  });
  Residual all = tree_combine(std::span<Residual>{sums}, add);
  const double returned = dangling == Dangling::redistribute ? damping * all.dangling : 0;
  const double teleport = ((1 - damping) + returned) / graph.nodes();
  std::vector<double> here(graph.end_here() - graph.first_here(), 0);
  parallel(here.size(), [&](std::size_t i) {
    const WorkerId worker = graph.first_here() + static_cast<WorkerId>(i);
    for (std::uint32_t v = graph.first(worker); v < graph.first(worker + 1); ++v) {
      const double right = teleport + damping * pull(graph.sources(worker, v), contribution.data());
      here[i] += std::abs(right - ranks[v]);
    }
  });
  std::vector<double> distances = nodes.joined(std::move(here));
  all.l1 = tree_sum(std::span<double>{distances});
  return all;
}

Evaluation PageRankTrainee::evaluate(Engine& engine, bool exact) {
  Evaluation out;
  if (!exact) {
    out.objective = residual_bound();
    return out;
  }
  if (!is_alone()) load(whole_state());
  const Residual found =
      residual(graph_, ranks(), params_.damping, params_.dangling, engine.parallel_for_function(), nodes_);
  out.objective = found.l1;
  out.extra = {
      {"error_bound", found.l1 / (1 - params_.damping)}, {"mass", found.mass}, {"dangling_mass", found.dangling}};
  return out;
}

std::pair<std::uint32_t, std::uint32_t> PageRankTrainee::nodes_of(NodeId node) const {
  return {graph_.first(graph_.map().first_worker(node)), graph_.first(graph_.map().first_worker(node + 1))};
}

std::vector<double> PageRankTrainee::whole_state() const {
  std::vector<double> state = save();
  if (is_alone()) return state;
  const auto [first, last] = nodes_of(graph_.map().this_node());
  for (std::size_t array = 0; array + graph_.nodes() <= state.size(); array += graph_.nodes()) {
    const double* const values = state.data() + array;
    const std::vector<double> all = nodes_.joined(std::vector<double>(values + first, values + last));
    std::copy(all.begin(), all.end(), state.begin() + static_cast<std::ptrdiff_t>(array));
  }
  return state;
}

std::vector<StateSection> PageRankTrainee::save_state() const {
  const std::vector<double> state = whole_state();
  const std::span<const std::byte> bytes = std::as_bytes(std::span{state});
  return {{kSection, Bytes(bytes.begin(), bytes.end())}};
}

void PageRankTrainee::load_state(const std::vector<StateSection>& sections) {
  std::vector<double> state(save().size());
  for (const StateSection& section : sections) {
    if (section.name != kSection || section.bytes.size() != state.size() * sizeof(double)) continue;
    std::memcpy(state.data(), section.bytes.data(), section.bytes.size());
    load(state);
    return;
  }
  throw Error(ErrorKind::data, "the checkpoint has no section 'ranks' of this graph");
}

}  // namespace orrery::pagerank
