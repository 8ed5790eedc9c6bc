#include "algorithms/pagerank.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "algorithms/pagerank_delta.h"
#include "algorithms/pagerank_graph.h"
#include "algorithms/pagerank_model.h"
#include "algorithms/pagerank_power.h"
#include "engine/engine.h"
#include "engine/error.h"

namespace orrery {
namespace pagerank {
namespace {

AlgorithmInfo make_info() {
  AlgorithmInfo info;
  info.name = "pagerank";
  info.title = "PageRank of the nodes of a directed graph";
  info.objective =
      "x = (1 - d)/n + d (sum over edges u -> v of x_u/deg_u + D/n), D the rank of nodes without out-edges (0 with "
      "--dangling drop); printed is the L1 residual, which --tolerance bounds; the L1 error is at most that/(1 - d)";
  info.method =
      "power: every node pulls from its in-edges, once a clock; delta: nodes with the largest pending changes first, "
      "which "
      "touches fewer edges but takes more iterations (on R-MAT of scale 20 it is 1.4 to 1.9 times slower than power). "
      "Units write their own nodes only and read what the last clock left";
  info.reference = "Brin and Page, WWW 1998; Zhang et al., TPDS 2014 (Maiter, delta)";
  info.data = "graphs (SNAP edge lists: source target)";
  info.metric = "residual";
  info.smaller_is_better = true;
  info.uses_seed = false;
  info.objective_is_residual = true;
  info.schedules = {"data"};
  return info;
}

/// Everything a training holds once the graph is laid out. Parts refer to each other: never moved.
struct Prepared {
  Prepared(std::span<const Edge> edges, std::uint32_t nodes, const WorkerMap& map, Engine& engine)
      : graph(edges, nodes, map, engine.topology(), engine.parallel_for_function()),
        schedule(std::vector<std::uint32_t>(map.workers(), 1)) {}
  Graph graph;
  DataParallelSchedule schedule;
  std::unique_ptr<PageRankTrainee> trainee;
};

class PageRank final : public Algorithm {
 public:
  PageRank() : info_(make_info()), param_set_("pagerank") {
    param_set_
        .add("damping", params_.damping, "probability of following an edge rather than jumping anywhere",
             from_to_below(0, 1))
        .add_choice(
            "dangling", params_.dangling,
            "rank of nodes without out-edges: redistribute gives it to all nodes (as NetworkX and igraph), drop "
            "loses it (as the GAP benchmark)",
            {{"redistribute", Dangling::redistribute}, {"drop", Dangling::drop}})
        .add_choice("method", params_.method,
                    "power: power iteration; delta: prioritised deltas, largest first; same solution",
                    {{"power", Method::power}, {"delta", Method::delta}});
  }

  const AlgorithmInfo& info() const override { return info_; }
  ParamSet& params() override { return param_set_; }
  StopRules default_stop() const override {
    StopRules stop;
    stop.iterations = 1000;
    stop.tolerance = 1e-6;
    return stop;
  }

  void check(const DataRequest& request) const override;
  bool runs_on_several_nodes(const std::string&) const override { return true; }
  void load(const DataRequest& request, Engine& engine) override;
  DataSummary data_summary() const override;
  WorkerId default_workers() const override;
  MemoryEstimate memory(WorkerId workers) const override;
  Training prepare(Engine& engine, WorkerId workers, std::uint64_t seed, const std::string& schedule) override;
  void write_model(ModelWriter& writer, Engine& engine) const override;

 private:
  void warn_of_edges(Engine& engine) const;

  AlgorithmInfo info_;
  PageRankParams params_;
  ParamSet param_set_;
  EdgeData data_;
  std::uint64_t edges_ = 0;
  std::unique_ptr<Prepared> prepared_;
};

void PageRank::check(const DataRequest& request) const {
  if (!request.format.empty() && parse_format(request.format) != DataFormat::edges) {
    throw usage_error("--format: pagerank reads edges, not " + request.format);
  }
  if (request.valid) throw usage_error("--valid: pagerank solves equations of the whole graph; nothing is held out");
  if (request.init) throw usage_error("--init: pagerank has no warm start; it starts from equal ranks");
}

void PageRank::load(const DataRequest& request, Engine& engine) {
  check(request);
  data_ = read_graph(request.path, request.format, engine);
  edges_ = data_.edges.size();
}

DataSummary PageRank::data_summary() const {
  DataSummary summary;
  summary.format = data_.recognised.describe();
  summary.checksum = data_.checksum;
  summary.shape = {{"nodes", std::to_string(data_.nodes.size())},
                   {"edges", std::to_string(edges_)},
                   {"self_loops", std::to_string(data_.self_loops)}};
  return summary;
}

WorkerId PageRank::default_workers() const {
  constexpr std::uint64_t kEdgesEach = std::uint64_t{1} << 18, kLeast = 16, kMost = 256;
  const std::uint64_t wanted = std::clamp(edges_ / kEdgesEach, kLeast, kMost);
  return static_cast<WorkerId>(std::min<std::uint64_t>(wanted, data_.nodes.size()));
}

MemoryEstimate PageRank::memory(WorkerId workers) const {
  const std::uint64_t nodes = data_.nodes.size();
  MemoryEstimate estimate;
  // The reader is at its peak with the edges in wide and in narrow form and the ids of both ends sorted.
  estimate.add("edges while they are read", edges_, 16 + 16 + sizeof(Edge))
      .add("graph by target", edges_, sizeof(std::uint32_t))
      .add("ids, degrees and ranks", nodes, 96);
  if (params_.method == Method::delta) {
    estimate.add("graph by source and messages", edges_, sizeof(std::uint32_t) + 2 * 16)
        .add("outboxes", std::uint64_t{workers} * workers, 24);
  }
  return estimate;
}

void PageRank::warn_of_edges(Engine& engine) const {
  if (const std::uint64_t repeated = prepared_->graph.repeated_edges(); repeated > 0) {
    const char* const here = prepared_->graph.map().nodes() > 1 ? " edges into nodes of this rank" : " edges";
    engine.warn(std::to_string(repeated) + here + " repeat an earlier one; each counts, as a weight");
  }
  if (data_.self_loops > 0) {
    engine.warn(std::to_string(data_.self_loops) + " edges lead from a node to itself; they count like others");
  }
}

Training PageRank::prepare(Engine& engine, WorkerId workers, std::uint64_t, const std::string&) {
  if (engine.clock_bound() > 0) {
    throw usage_error("pagerank needs --consistency bsp: an iteration must see the whole one before it");
  }
  const WorkerMap map(workers, engine.transport().nodes(), engine.transport().node(), engine.domains());
  prepared_ = std::make_unique<Prepared>(data_.edges, data_.nodes.size(), map, engine);
  data_.edges = {};
  warn_of_edges(engine);
  Training training;
  if (params_.method == Method::power) {
    prepared_->trainee = std::make_unique<PowerTrainee>(prepared_->graph, params_, engine.topology());
  } else {
    prepared_->trainee = std::make_unique<DeltaTrainee>(prepared_->graph, params_);
    training.clocks_per_iteration = DeltaTrainee::kClocksPerIteration;
  }
  training.schedule = &prepared_->schedule;
  training.trainee = prepared_->trainee.get();
  training.schedule_reason = "the ranks of an iteration depend on the last one alone, so all nodes can be cut at will";
  return training;
}

void PageRank::write_model(ModelWriter& writer, Engine&) const {
  const std::vector<double> internal = prepared_->trainee->ranks();
  std::vector<double> ranks(internal.size());
  for (std::uint32_t v = 0; v < ranks.size(); ++v) ranks[prepared_->graph.external(v)] = internal[v];
  write_pagerank_model(writer, ranks, data_.nodes, params_);
}

}  // namespace
}  // namespace pagerank

std::unique_ptr<Algorithm> make_pagerank() { return std::make_unique<pagerank::PageRank>(); }

std::unique_ptr<Model> open_pagerank(const ModelReader& reader) {
  return std::make_unique<pagerank::PageRankModel>(reader);
}

}  // namespace orrery
