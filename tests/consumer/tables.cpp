// A program of a library user on a table: eight workers estimate the mean of their numbers by steps on one shared row,
// some up to three clocks ahead of others. What is shared is declared; consistency, caches and counting come with it.
#include <atomic>
#include <cstdio>

#include "engine/engine.h"
#include "engine/error.h"
#include "engine/schedule.h"
#include "engine/table_store.h"
#include "engine/training.h"

namespace {

class Mean final : public orrery::TableProgram {
 public:
  Mean(const orrery::Engine& engine, const orrery::WorkerMap& map)
      : TableProgram(engine, map), mean_(tables().add<float>({.name = "mean", .rows = 1, .width = 1})) {}

  void run_unit(const orrery::WorkUnit& unit, orrery::UnitContext& context) override {
    const float seen = mean_.read(context, 0)[0];
    const float number = static_cast<float>(unit.worker);  // a worker's data
    mean_.add(context, 0, 0, 0.02F * (number - seen));
  }
  orrery::Evaluation evaluate(orrery::Engine&, bool) override {
    orrery::Evaluation evaluation;
    evaluation.objective = mean_.row(0)[0];
    tables().report(evaluation);  // how stale the reads were
    return evaluation;
  }

 private:
  orrery::Table<float>& mean_;
};

}  // namespace

int main() {
  try {
    orrery::Engine engine({.threads = 2, .consistency = orrery::Consistency::ssp, .staleness = 3});
    constexpr orrery::WorkerId kWorkers = 8;
    Mean program(engine, orrery::WorkerMap(kWorkers, 1, 0, engine.domains()));
    orrery::DataParallelSchedule schedule(std::vector<std::uint32_t>(kWorkers, 1));
    orrery::TrainOptions options;
    options.workers = kWorkers;
    options.stop.iterations = 200;
    options.evaluate_every = 200;
    orrery::TrainingObserver silent;
    const std::atomic<bool> never{false};
    const auto result = orrery::train(engine, schedule, program, options, silent, never);
    std::printf("mean %.3f\n", result.final.objective);
    // Who runs ahead pulls towards its own number for up to three clocks: 3.5, give or take.
    return result.final.objective > 2.5 && result.final.objective < 4.5 ? 0 : 1;
  } catch (const orrery::Error& error) {
    std::fprintf(stderr, "tables: %s\n", error.what());
    return error.exit_code();
  }
}
