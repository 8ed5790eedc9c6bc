// What the engine itself costs: a tick of the clock tree, and a unit from ready to done when there is nothing to do in
// it.
#include <benchmark/benchmark.h>

#include "bench/micro/benchmarks.h"
#include "engine/clock.h"
#include "engine/engine.h"
#include "engine/executor.h"
#include "engine/program.h"
#include "engine/schedule.h"

namespace orrery::bench {

namespace {

constexpr WorkerId kWorkers = 16;
constexpr BlockId kBlocks = 32;
constexpr Clock kClocks = 20;  // of each timed run: enough that its beginning and end do not count

class Empty final : public Program {
 public:
  void run_unit(const WorkUnit&, UnitContext&) override {}
};

void tick(benchmark::State& state) {
  const WorkerMap map(kWorkers, 1, 0, static_cast<DomainId>(state.range(0)));
  ClockTree tree(map, 0);
  WorkerId worker = 0;
  for (auto _ : state) {
    tree.tick(worker);
    worker = (worker + 1) % kWorkers;
  }
}

/// Runs kClocks of a schedule again and again. The time is the processor time of the process, all threads together: on
/// one thread that is what a unit costs, whatever the neighbours do.
void run_units(benchmark::State& state, unsigned threads, Schedule& schedule, std::size_t units_per_clock) {
  EngineOptions options;
  options.threads = threads;
  Engine engine(options);
  Empty program;
  Executor executor(engine, schedule, program, kWorkers, {});
  Clock until = executor.run(kClocks);  // plans and threads are made here
  for (auto _ : state) {
    until += kClocks;
    executor.run(until);
  }
  const auto units = static_cast<std::int64_t>(units_per_clock) * kClocks * state.iterations();
  state.SetItemsProcessed(units);
  state.counters["seconds_per_unit"] =
      benchmark::Counter(static_cast<double>(units), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void rotating_units(benchmark::State& state) {
  RotationSchedule schedule(kWorkers, kBlocks, 1);
  run_units(state, static_cast<unsigned>(state.range(0)), schedule, kWorkers * kBlocks);
}

void data_parallel_units(benchmark::State& state) {
  DataParallelSchedule schedule(std::vector<std::uint32_t>(kWorkers, 8));
  run_units(state, static_cast<unsigned>(state.range(0)), schedule, kWorkers * 8);
}

}  // namespace

void register_engine() {
  benchmark::RegisterBenchmark("clock/tick", tick)->ArgName("domains")->Arg(1)->Arg(4);
  benchmark::RegisterBenchmark("unit/rotation", rotating_units)
      ->ArgName("threads")
      ->Arg(1)
      ->Arg(2)
      ->MeasureProcessCPUTime();
  benchmark::RegisterBenchmark("unit/data", data_parallel_units)
      ->ArgName("threads")
      ->Arg(1)
      ->Arg(2)
      ->MeasureProcessCPUTime();
}

}  // namespace orrery::bench
