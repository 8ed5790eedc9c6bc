// Runs inside a guest that counts accesses: workers of two domains read and add to rows of a table that all share. Only
// what a unit does to the table is counted.
//
//   table_probe STALENESS
#include <cstdio>
#include <cstdlib>

#include "engine/error.h"
#include "engine/executor.h"
#include "engine/random.h"
#include "engine/schedule.h"
#include "engine/table_store.h"
#include "numa/access_section.h"

namespace {

using namespace orrery;

constexpr std::uint32_t kRows = 1000, kWidth = 32;

class Mixing final : public TableProgram {
 public:
  Mixing(const Engine& engine, const WorkerMap& map)
      : TableProgram(engine, map), rows_(tables().add<float>({.name = "rows", .rows = kRows, .width = kWidth})) {}

  void run_unit(const WorkUnit& unit, UnitContext& context) override {
    RandomStream draws = Random(1, Purpose::test).stream(unit.clock, unit.worker);
    const AccessSection inner_loop;
    for (int i = 0; i < 200; ++i) {
      const auto row = static_cast<std::uint32_t>(draws.below(kRows));
      const std::span<const float> seen = rows_.read(context, row);
      float delta[kWidth];
      for (std::uint32_t d = 0; d < kWidth; ++d) delta[d] = 0.5F - seen[d];
      if (i % 4 == 0) rows_.add(context, row, delta);
    }
  }
  Evaluation evaluate(Engine&, bool) override { return {}; }

 private:
  Table<float>& rows_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: table_probe STALENESS\n");
    return 2;
  }
  try {
    EngineOptions options;
    options.threads = 4;
    options.staleness = std::atoi(argv[1]);
    options.consistency = options.staleness == 0 ? Consistency::bsp : Consistency::ssp;
    Engine engine(options);
    constexpr WorkerId kWorkers = 8;
    Mixing program(engine, WorkerMap(kWorkers, 1, 0, engine.domains()));
    DataParallelSchedule schedule(std::vector<std::uint32_t>(kWorkers, 1));
    Executor executor(engine, schedule, program, kWorkers, {});
    executor.run(6);
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "table_probe: %s\n", error.what());
    return error.exit_code();
  }
}
