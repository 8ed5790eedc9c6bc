// PageRank from an edge list to a model and back, against a serial oracle written from the equations.
#include "algorithms/pagerank.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "algorithms/pagerank_delta.h"
#include "algorithms/pagerank_graph.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/executor.h"
#include "engine/random.h"
#include "tests/engine/toy_programs.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

using Edges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
using Ranks = std::map<std::uint64_t, double>;
using PageRankParams = std::map<std::string, std::string>;

/// The equations iterated as they stand, one edge at a time, until nothing moves.
Ranks oracle(const Edges& edges, double damping, bool redistribute) {
  std::map<std::uint64_t, double> degree, rank;
  for (const auto& [source, target] : edges) {
    degree[source] += 1;
    rank[source] = rank[target] = 0;
  }
  const auto n = static_cast<double>(rank.size());
  for (auto& entry : rank) entry.second = 1 / n;
  for (double error = 1; error > 1e-14; error *= std::max(damping, 0.1)) {
    double dangling = 0;
    for (const auto& [node, value] : rank) dangling += degree.contains(node) ? 0 : value;
    Ranks next;
    for (const auto& entry : rank) next[entry.first] = (1 - damping + (redistribute ? damping * dangling : 0)) / n;
    for (const auto& [source, target] : edges) next[target] += damping * rank[source] / degree[source];
    rank = std::move(next);
  }
  return rank;
}

double distance(const Ranks& a, const Ranks& b) {
  double sum = 0;
  for (const auto& [node, value] : a) sum += std::abs(value - b.at(node));
  return sum;
}

double mass(const Ranks& ranks) {
  double sum = 0;
  for (const auto& entry : ranks) sum += entry.second;
  return sum;
}

/// Skewed, with repeated edges, self loops and dangling nodes.
Edges random_graph(std::uint64_t nodes, std::uint64_t edges, std::uint64_t seed) {
  const Random random(seed, Purpose::test);
  Edges graph;
  for (std::uint64_t e = 0; e < edges; ++e) {
    RandomStream draws = random.stream(0, e);
    const double source = draws.uniform(), target = draws.uniform();
    graph.emplace_back(static_cast<std::uint64_t>(0.7 * source * static_cast<double>(nodes)),
                       static_cast<std::uint64_t>(target * target * static_cast<double>(nodes)));
  }
  return graph;
}

struct CollectingObserver final : TrainingObserver {
  void evaluated(const ProgressPoint& point) override { objectives.push_back(point.evaluation.objective); }
  void checkpoint(Clock, std::vector<StateSection>&& state) override { states.push_back(std::move(state)); }
  std::vector<double> objectives;
  std::vector<std::vector<StateSection>> states;
};

class PageRankTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("orrery-pagerank-" + std::to_string(getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  void write_edges(const Edges& edges) const {
    std::ofstream out(path("graph"));
    for (const auto& [source, target] : edges) out << source << '\t' << target << '\n';
  }

  static EngineOptions with(unsigned threads, const std::string& topology = {}) {
    EngineOptions options;
    options.threads = threads;
    options.topology = topology;
    return options;
  }

  struct Outcome {
    Ranks ranks;
    std::string checksum;
    TrainResult result;
    CollectingObserver seen;
    std::vector<std::string> warnings;
  };
  /// Trains on `edges` to a residual of 1e-11, or `iterations`; from a checkpoint if there is one.
  Outcome solve(const Edges& edges, const PageRankParams& params, const EngineOptions& options = {},
                WorkerId workers = 5, Clock iterations = 2000,
                const std::vector<StateSection>* resume_from = nullptr) const {
    write_edges(edges);
    Engine engine(options);
    return solve_on(engine, params, workers, iterations, resume_from);
  }
  /// The same on several nodes, each a thread of one process: what the first of them comes to.
  Outcome solve_on_cluster(NodeId nodes, const Edges& edges, const PageRankParams& params, WorkerId workers,
                           Clock iterations, const std::vector<StateSection>* resume_from = nullptr) const {
    write_edges(edges);
    Outcome first;
    toy::on_cluster(nodes, with(1), [&](NodeId node, Engine& engine) {
      Outcome outcome = solve_on(engine, params, workers, iterations, resume_from);
      if (node == 0) first = std::move(outcome);
    });
    return first;
  }
  Outcome solve_on(Engine& engine, const PageRankParams& params, WorkerId workers, Clock iterations,
                   const std::vector<StateSection>* resume_from) const {
    const auto algorithm = make_pagerank();
    for (const auto& [name, value] : params) algorithm->params().set(name, value);
    algorithm->load({.path = path("graph"), .format = {}, .valid = {}, .init = {}}, engine);
    const Training training = algorithm->prepare(engine, workers, 1, "auto");
    TrainOptions train_options;
    train_options.workers = workers;
    train_options.stop.iterations = iterations;
    train_options.stop.target = 1e-11;
    train_options.clocks_per_iteration = training.clocks_per_iteration;
    train_options.checkpoint_every = 3;
    const std::atomic<bool> interrupted{false};
    Outcome outcome;
    outcome.result =
        train(engine, *training.schedule, *training.trainee, train_options, outcome.seen, interrupted, resume_from);
    if (engine.transport().node() != 0) return outcome;
    ModelWriter writer(directory_);
    algorithm->write_model(writer, engine);
    outcome.checksum = writer.finish("{\"algorithm\":\"pagerank\"}");
    const ModelReader reader(directory_);
    const auto nodes = reader.read_text("nodes");
    const auto values = reader.read<double>("rank");
    for (std::size_t i = 0; i < nodes.size(); ++i) outcome.ranks[std::stoull(nodes[i])] = values[i];
    outcome.warnings = engine.warnings();
    return outcome;
  }

  fs::path directory_;
};

TEST_F(PageRankTest, both_methods_solve_both_systems_for_any_damping) {
  const Edges edges = random_graph(60, 250, 1);
  for (const char* damping : {"0", "0.3", "0.85", "0.95"}) {
    for (const bool redistribute : {true, false}) {
      const Ranks expected = oracle(edges, std::stod(damping), redistribute);
      for (const char* method : {"power", "delta"}) {
        const Outcome found = solve(
            edges, {{"damping", damping}, {"method", method}, {"dangling", redistribute ? "redistribute" : "drop"}}, {},
            5, 2000);
        EXPECT_EQ(found.result.stopped_by, StoppedBy::target);
        EXPECT_LE(found.result.final.objective, 1e-11) << "the bound that stopped it holds for the residual itself";
        EXPECT_LE(distance(found.ranks, expected), 1e-11 / (1 - std::stod(damping)) + 1e-12)
            << method << ' ' << damping << ' ' << redistribute;
      }
    }
  }
}

TEST_F(PageRankTest, nodes_change_no_bit_and_a_run_goes_on_on_others) {
  const Edges edges = random_graph(300, 1500, 3);  // long enough for deltas to be both pulled and pushed
  for (const PageRankParams& params :
       {PageRankParams{{"method", "power"}}, PageRankParams{{"method", "power"}, {"dangling", "drop"}},
        PageRankParams{{"method", "delta"}}, PageRankParams{{"method", "delta"}, {"dangling", "drop"}}}) {
    const Outcome one = solve(edges, params, with(2), 7);
    const Outcome three = solve_on_cluster(3, edges, params, 7, 2000);
    EXPECT_EQ(three.checksum, one.checksum);
    EXPECT_EQ(three.seen.objectives, one.seen.objectives);
    ASSERT_GE(three.seen.states.size(), 2);
    EXPECT_EQ(three.seen.states.back().front().bytes, one.seen.states.back().front().bytes);
    const std::vector<StateSection>& middle = three.seen.states.at(three.seen.states.size() / 2);
    EXPECT_EQ(solve_on_cluster(2, edges, params, 7, 2000, &middle).checksum, one.checksum);
  }
}

TEST_F(PageRankTest, symmetric_graphs_have_the_ranks_of_closed_forms) {
  constexpr std::uint64_t kNodes = 9;
  Edges cycle, complete, star;
  for (std::uint64_t v = 0; v < kNodes; ++v) {
    cycle.emplace_back(v, (v + 1) % kNodes);
    for (std::uint64_t u = 0; u < kNodes; ++u) {
      if (u != v) complete.emplace_back(u, v);
    }
    if (v > 0) star.insert(star.end(), {{0, v}, {v, 0}});
  }
  for (const char* method : {"power", "delta"}) {
    for (const Edges& edges : {cycle, complete}) {
      for (const auto& [node, rank] : solve(edges, {{"method", method}}).ranks) EXPECT_NEAR(rank, 1.0 / kNodes, 1e-10);
    }
    // The hub h gets all that the leaves pass on: h = (1 - d)/n + d (1 - h).
    const double hub = (0.15 / kNodes + 0.85) / 1.85;
    EXPECT_NEAR(solve(star, {{"method", method}}).ranks.at(0), hub, 1e-10);
  }
}

TEST_F(PageRankTest, the_same_workers_give_the_same_bits_on_any_threads_and_domains) {
  const Edges edges = random_graph(150, 1000, 2);
  for (const char* method : {"power", "delta"}) {
    const std::string expected = solve(edges, {{"method", method}}, with(1)).checksum;
    for (const unsigned threads : {2U, 4U}) {
      EXPECT_EQ(solve(edges, {{"method", method}}, with(threads)).checksum, expected);
    }
    EXPECT_EQ(solve(edges, {{"method", method}}, with(4, "numa:2 core:2 pu:1")).checksum, expected);
  }
}

TEST_F(PageRankTest, the_order_of_edges_changes_no_bit_and_new_ids_change_no_rank) {
  const Edges edges = random_graph(120, 900, 3);
  const Outcome expected = solve(edges, {});
  const Random random(9, Purpose::test);
  Edges shuffled = edges;
  random.shuffle(std::span{shuffled}, 0, 0);
  EXPECT_EQ(solve(shuffled, {}).checksum, expected.checksum);
  const std::vector<std::uint32_t> name = random.permutation(120, 1, 0);
  Edges renamed;
  for (const auto& [source, target] : edges) renamed.emplace_back(name[source], name[target]);
  const Ranks found = solve(renamed, {}).ranks;
  for (const auto& [node, rank] : expected.ranks) EXPECT_NEAR(found.at(name[node]), rank, 1e-12);
}

TEST_F(PageRankTest, changes_contract_by_the_damping_and_mass_stays_one) {
  const Edges edges = random_graph(150, 900, 4);
  const Outcome whole = solve(edges, {});
  for (std::size_t i = 1; i < whole.seen.objectives.size(); ++i) {
    EXPECT_LE(whole.seen.objectives[i], 0.85 * whole.seen.objectives[i - 1] + 1e-14);
  }
  for (const Clock iterations : {0, 1, 2, 5}) {
    EXPECT_NEAR(mass(solve(edges, {}, {}, 5, iterations).ranks), 1, 1e-13) << iterations;
  }
}

TEST_F(PageRankTest, deltas_conserve_mass_at_every_clock_and_pending_mass_shrinks_as_promised) {
  const Edges named = random_graph(150, 900, 5);
  std::vector<Edge> edges;
  for (const auto& [source, target] : named) {
    edges.push_back({static_cast<std::uint32_t>(source), static_cast<std::uint32_t>(target)});
  }
  Engine engine(with(2));
  const WorkerMap map(7, 1, 0, engine.domains());
  const pagerank::Graph graph(edges, 150, map, engine.topology(), engine.parallel_for_function());
  pagerank::PageRankParams params;
  params.dangling = pagerank::Dangling::drop;
  pagerank::DeltaTrainee trainee(graph, params);
  DataParallelSchedule schedule(std::vector<std::uint32_t>(7, 1));
  Executor executor(engine, schedule, trainee, 7, {});
  double pending = trainee.evaluate(engine, false).objective;
  for (Clock iteration = 1; iteration <= 60; ++iteration) {
    executor.run(iteration * pagerank::DeltaTrainee::kClocksPerIteration);
    EXPECT_NEAR(trainee.conserved(), 1, 1e-13);
    const double now = trainee.evaluate(engine, false).objective;
    EXPECT_NEAR(now, trainee.evaluate(engine, true).objective, 1e-13) << "pending deltas are the residual";
    if (!trainee.changed_length()) {
      EXPECT_LE(now, (1 - 0.5 * (1 - params.damping)) * pending + 1e-15);
    }
    pending = now;
  }
}

TEST_F(PageRankTest, a_resumed_run_ends_with_the_same_bits) {
  const Edges edges = random_graph(200, 1500, 6);
  for (const char* method : {"power", "delta"}) {
    const Outcome whole = solve(edges, {{"method", method}}, with(2));
    for (const std::size_t which : {std::size_t{0}, std::size_t{2}}) {
      const Outcome resumed = solve(edges, {{"method", method}}, with(1), 5, 2000, &whole.seen.states.at(which));
      EXPECT_EQ(resumed.checksum, whole.checksum) << method;
    }
  }
}

TEST_F(PageRankTest, edge_shapes_have_a_solution) {
  const std::vector<Edges> shapes = {
      {{7, 7}},                          // one node
      {{1, 2}},                          // one edge into a dangling node
      {{1, 2}, {1, 3}, {1, 4}},          // all targets dangle
      {{1, 2}, {2, 1}, {8, 9}, {9, 8}},  // two components
      {{1, 1}, {1, 1}, {1, 2}, {2, 1}},  // a self loop, twice
      {{0, 18446744073709551615U}},      // the widest ids
  };
  for (const Edges& edges : shapes) {
    for (const char* method : {"power", "delta"}) {
      for (const bool redistribute : {true, false}) {
        const Ranks found =
            solve(edges, {{"method", method}, {"dangling", redistribute ? "redistribute" : "drop"}}, {}, 4).ranks;
        EXPECT_LE(distance(found, oracle(edges, 0.85, redistribute)), 1e-10);
      }
    }
  }
}

TEST_F(PageRankTest, repeated_edges_count_as_weights_and_are_reported_with_self_loops) {
  const Outcome found = solve({{1, 2}, {1, 2}, {1, 3}, {2, 1}, {3, 1}, {3, 3}}, {{"damping", "0.5"}});
  // 1 passes two thirds of its rank on to 2 and a third to 3.
  EXPECT_NEAR(found.ranks.at(2), 0.5 / 3 + 0.5 * found.ranks.at(1) * 2 / 3, 1e-11);
  ASSERT_EQ(found.warnings.size(), 2U);
  EXPECT_TRUE(found.warnings[0].starts_with("1 edges repeat"));
  EXPECT_TRUE(found.warnings[1].starts_with("1 edges lead from a node to itself"));
}

TEST_F(PageRankTest, a_model_from_disk_tells_ranks_and_its_residual) {
  const Outcome found = solve({{10, 20}, {20, 30}, {30, 10}, {10, 30}}, {{"dangling", "drop"}});
  Engine engine(with(1));
  const auto model = open_pagerank(ModelReader(directory_));
  std::ofstream(path("ids")) << "30 10\n\n20\n";
  std::stringstream lines;
  model->predict(path("ids"), "", engine, lines);
  for (const std::uint64_t node : {30U, 10U, 20U}) {
    double rank = 0;
    ASSERT_TRUE(lines >> rank);
    EXPECT_EQ(rank, found.ranks.at(node));
  }
  EXPECT_NEAR(number_in(model->evaluate(path("graph"), "", engine), "residual"), found.result.final.objective, 1e-14);
  std::ofstream(path("ids")) << "10\n 99\n";
  try {
    model->predict(path("ids"), "", engine, lines);
    FAIL() << "an unknown node has no rank";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_NE(std::string(error.what()).find(":2:2:"), std::string::npos) << error.what();
  }
}

TEST_F(PageRankTest, what_it_does_not_do_is_refused) {
  const auto algorithm = make_pagerank();
  EXPECT_THROW(algorithm->check({.path = "g", .format = "ratings", .valid = {}, .init = {}}), Error);
  EXPECT_THROW(algorithm->check({.path = "g", .format = {}, .valid = "v", .init = {}}), Error);
  EXPECT_THROW(algorithm->check({.path = "g", .format = {}, .valid = {}, .init = "m"}), Error);
  EXPECT_THROW(algorithm->params().set("damping", "1"), Error);
  EngineOptions slack = with(1);
  slack.consistency = Consistency::ssp;
  slack.staleness = 1;
  EXPECT_THROW(solve({{1, 2}}, {}, slack), Error);
  std::ofstream(path("weighted")) << "1 2 0.5\n";
  Engine engine(with(1));
  EXPECT_THROW(algorithm->load({.path = path("weighted"), .format = {}, .valid = {}, .init = {}}, engine), Error);
}

}  // namespace
}  // namespace orrery
