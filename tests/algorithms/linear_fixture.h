// What the tests of linear classifiers share: a training from a file to a model and back.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "engine/engine.h"
#include "engine/transport.h"
#include "tests/engine/files.h"

namespace orrery {

using Params = std::map<std::string, std::string>;

class LinearTest : public testing::Test {
 protected:
  explicit LinearTest(const char* algorithm) : entry_(find_algorithm(algorithm)) {}

  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }

  struct Outcome {
    std::string checksum;
    TrainResult result;
    std::vector<std::string> warnings;
    double value(const std::string& name) const {
      for (const auto& [key, number] : result.final.extra) {
        if (key == name) return number;
      }
      return std::numeric_limits<double>::quiet_NaN();
    }
  };
  struct Job {
    std::string data = "rows", valid = {}, init = {}, out = "run";
    Params params = {};
    EngineOptions engine = {};
    WorkerId workers = 8;
    StopRules stop = {};
    Clock checkpoint_every = 0;
    const std::vector<StateSection>* resume_from = nullptr;
  };
  static Job job(Params params = {}) {
    Job made;
    made.params = std::move(params);
    made.engine.threads = 1;
    made.stop.iterations = 100;
    made.stop.tolerance = 1e-12;
    return made;
  }

  /// Keeps the newest checkpoint.
  struct Keeper final : TrainingObserver {
    void checkpoint(Clock, std::vector<StateSection>&& state) override { newest = std::move(state); }
    std::vector<StateSection> newest;
  };

  Outcome train_model(const Job& job, Keeper* keeper = nullptr, Transport* transport = nullptr) const {
    const auto algorithm = entry_.make();
    for (const auto& [name, value] : job.params) algorithm->params().set(name, value);
    Engine engine(job.engine, transport);
    DataRequest request;
    request.path = path(job.data);
    if (!job.valid.empty()) request.valid = path(job.valid);
    if (!job.init.empty()) request.init = path(job.init);
    algorithm->load(request, engine);
    const Training training = algorithm->prepare(engine, job.workers, 1, "auto");
    TrainOptions options;
    options.workers = job.workers;
    options.stop = job.stop;
    options.has_valid = !job.valid.empty();
    options.clocks_per_iteration = training.clocks_per_iteration;
    options.checkpoint_every = job.checkpoint_every;
    Keeper none;
    const std::atomic<bool> interrupted{false};
    Outcome outcome;
    outcome.result = train(engine, *training.schedule, *training.trainee, options, keeper != nullptr ? *keeper : none,
                           interrupted, job.resume_from);
    std::filesystem::create_directories(path(job.out));
    ModelWriter writer(path(job.out));
    algorithm->write_model(writer, engine);
    outcome.checksum = writer.finish("{}");
    outcome.warnings = engine.warnings();
    return outcome;
  }

  /// The checksums of the models that the nodes of a cluster in this process come to; `keeper` is the first one's.
  std::vector<std::string> checksums_on(NodeId nodes, const Job& job, Keeper* keeper = nullptr) const {
    LocalCluster cluster(nodes);
    std::vector<std::future<std::string>> runs;
    for (NodeId node = 0; node < nodes; ++node) {
      runs.push_back(std::async(std::launch::async, [&, node] {
        Job own = job;
        own.out += "-" + std::to_string(node);
        return train_model(own, node == 0 ? keeper : nullptr, &cluster.node(node)).checksum;
      }));
    }
    std::vector<std::string> checksums;
    for (auto& run : runs) checksums.push_back(run.get());
    return checksums;
  }

  std::unique_ptr<Model> open(const std::string& run = "run") const { return entry_.open(ModelReader(path(run))); }
  std::vector<float> weights(const std::string& run = "run") const {
    return ModelReader(path(run)).read<float>("weights");
  }

  test::TemporaryDirectory directory_;

 private:
  const AlgorithmEntry& entry_;
};

}  // namespace orrery
