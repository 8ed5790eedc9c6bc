// A program of a library user: trains a factorisation on a file, without any of our command line.
//   consumer RATINGS RUN_DIRECTORY
#include <atomic>
#include <cstdio>
#include <exception>
#include <string>

#include "algorithms/algorithm.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/model_store.h"
#include "engine/training.h"

namespace {

class Printer final : public orrery::TrainingObserver {
 public:
  void evaluated(const orrery::ProgressPoint& point) override {
    std::printf("iteration %lld objective %.6f\n", static_cast<long long>(point.iteration), point.evaluation.objective);
  }
};

void run(const std::string& data, const std::string& directory) {
  orrery::Engine engine({.threads = 2, .seed = 7});
  const auto algorithm = orrery::find_algorithm("mf").make();
  algorithm->params().set("rank", "8");
  algorithm->load({.path = data, .format = {}, .valid = {}, .init = {}}, engine);
  const orrery::WorkerId workers = algorithm->default_workers();
  const orrery::Training training = algorithm->prepare(engine, workers, 7, "auto");

  orrery::TrainOptions options;
  options.workers = workers;
  options.stop.iterations = 5;
  options.clocks_per_iteration = training.clocks_per_iteration;
  Printer printer;
  const std::atomic<bool> never{false};
  orrery::train(engine, *training.schedule, *training.trainee, options, printer, never);

  orrery::ModelWriter writer(directory);
  algorithm->write_model(writer, engine);
  std::printf("model %s\n", writer.finish("{}").c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: consumer RATINGS RUN_DIRECTORY\n");
    return 2;
  }
  try {
    run(argv[1], argv[2]);
    return 0;
  } catch (const orrery::Error& error) {
    std::fprintf(stderr, "consumer: %s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "consumer: %s\n", error.what());
    return 4;
  }
}
