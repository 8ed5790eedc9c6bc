// orrery_bench_staleness: what slack between clocks is worth when nodes are slowed down, in virtual time.
//
//   orrery_bench_staleness DATA CONSISTENCY STALENESS CLOCKS EVERY "nodes:8 straggler:burst:2x …"
//
// Trains logistic regression (svmlight DATA) with adaptive steps on tables, one worker a node, and prints a line
// {"iteration", "seconds", "quality"} after every EVERY clocks: virtual seconds and the objective of the whole data.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "algorithms/adaptive_steps.h"
#include "algorithms/feature_rows.h"
#include "algorithms/logistic_loss.h"
#include "engine/data/sparse_rows.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/executor.h"
#include "engine/params.h"
#include "engine/simulated_cluster.h"

namespace orrery::bench {
namespace {

struct Settings {
  std::string data;
  Consistency consistency = Consistency::bsp;
  Clock staleness = 0, clocks = 0, every = 1;
  SimulationSpec spec;
};

Consistency consistency_of(const std::string& text) {
  for (const Consistency one : {Consistency::bsp, Consistency::ssp, Consistency::essp, Consistency::async}) {
    if (text == to_string(one)) return one;
  }
  throw usage_error("expected bsp, ssp, essp or async, got " + orrery::quoted(text));
}

class Race {
 public:
  explicit Race(const Settings& settings) : settings_(settings), data_(read_svmlight(settings.data)) {
    for (const double label : data_.rows.labels) signs_.push_back(label > 0 ? 1.0F : -1.0F);
  }

  void run() {
    const FeatureRows rows(data_.rows);
    const logistic::LogisticScoreLoss loss(signs_);
    SimulatedCluster cluster(settings_.spec);
    cluster.run([&](NodeId node, Transport& transport) {
      EngineOptions options;
      options.threads = 1;
      options.consistency = settings_.consistency;
      options.staleness = settings_.staleness;
      options.topology = "core:1 pu:1";
      Engine engine(options, &transport);
      const WorkerMap map(settings_.spec.nodes, settings_.spec.nodes, node, engine.domains());
      AdaptiveTrainee trainee(engine, map, data_.rows, loss, false, {.rate = 0.1, .l2 = kLambda, .batch = 64},
                              std::vector<float>(data_.rows.column_count, 0.0F),
                              [&](Engine& on, std::span<const float> weights, bool, Evaluation& out) {
                                out.objective = objective(rows, weights, on);
                              });
      DataParallelSchedule schedule(std::vector<std::uint32_t>(settings_.spec.nodes, 1));
      Executor executor(engine, schedule, trainee, settings_.spec.nodes, {});
      for (Clock clock = settings_.every; clock <= settings_.clocks; clock += settings_.every) {
        executor.run(clock);
        if (node == 0) print_point(clock, cluster.time(), trainee.evaluate(engine, false).objective);
      }
      if (node == 0) print_result(executor.stats());
      executor.exchange({});
    });
    std::printf("{\"result\": {\"bytes_sent\": %llu}}\n", static_cast<unsigned long long>(cluster.bytes_sent()));
  }

 private:
  static constexpr double kLambda = 1e-4;

  double objective(const FeatureRows& rows, std::span<const float> weights, Engine& engine) const {
    const ParallelFor parallel = engine.parallel_for_function();
    const logistic::Kernels& level = logistic::kernels(engine.simd());
    double squares = 0;
    for (const float weight : weights) squares += double{weight} * weight;
    return logistic::mean_loss(logistic::predict(rows, weights, 0, level, parallel), signs_, level, parallel) +
           kLambda / 2 * squares;
  }
  static void print_point(Clock clock, VirtualTime time, double quality) {
    std::printf("{\"iteration\": %lld, \"seconds\": %.9g, \"quality\": %.9g}\n", static_cast<long long>(clock), time,
                quality);
  }
  static void print_result(const ExecutorStats& stats) {
    std::printf("{\"result\": {\"staleness_mean\": %.6g, \"staleness_max\": %lld}}\n",
                stats.staleness_sum / static_cast<double>(stats.units), static_cast<long long>(stats.staleness_max));
  }

  const Settings& settings_;
  const SparseData data_;
  std::vector<float> signs_;
};

}  // namespace
}  // namespace orrery::bench

int main(int argc, char** argv) try {
  if (argc != 7) {
    std::fprintf(stderr, "usage: %s DATA CONSISTENCY STALENESS CLOCKS EVERY SIMULATION\n", argv[0]);
    return 2;
  }
  orrery::bench::Settings settings;
  settings.data = argv[1];
  settings.consistency = orrery::bench::consistency_of(argv[2]);
  settings.staleness = orrery::parse_integer("STALENESS", argv[3]);
  settings.clocks = orrery::parse_integer("CLOCKS", argv[4]);
  settings.every = orrery::parse_integer("EVERY", argv[5]);
  settings.spec = orrery::SimulationSpec::parse(argv[6]);
  orrery::bench::Race(settings).run();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return 1;
}
