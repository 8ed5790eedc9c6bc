// See counted_kernels.h.
#include "bench/micro/counted_kernels.h"

#include "algorithms/mf_layout.h"
#include "bench/micro/temporary_file.h"
#include "bench/micro/workloads.h"
#include "engine/clock.h"
#include "engine/data/ratings.h"
#include "engine/engine.h"
#include "engine/executor.h"
#include "engine/program.h"
#include "engine/random.h"
#include "engine/schedule.h"
#include "engine/simd.h"

namespace orrery::bench {

namespace {

constexpr RatingsShape kSmall{800, 2000, 60000};

CountedKernel train(std::size_t rank, SimdLevel level) {
  return [=](const Region& region) {
    FactorWorkload work(kSmall, rank);
    region([&] { work.train(mf::kernels(level)); });
  };
}

CountedKernel measure(std::size_t rank, SimdLevel level) {
  return [=](const Region& region) {
    const FactorWorkload work(kSmall, rank);
    region([&] { work.measure(mf::kernels(level)); });
  };
}

void read(const Region& region) {
  const TemporaryFile file(ratings_text(kSmall, 1));
  region([&] { read_ratings(file.path()); });
}

void lay_out(const Region& region) {
  RatingStore ratings = make_ratings(kSmall, 1);
  region([&] {
    const auto counts = mf::count_ratings(ratings, kSmall.rows, kSmall.columns, serial_for);
    mf::CellGrid::build(std::move(ratings), deal_axis(counts.rows, 4, kSmall.rows),
                        deal_axis(counts.columns, 4, mf::kMaxBlockColumns), serial_for);
  });
}

void draw_normals(const Region& region) {
  volatile double sum = 0;
  region([&] {
    RandomStream draws = Random(1, Purpose::test).stream(0, 0);
    for (int i = 0; i < 100000; ++i) sum = sum + draws.normal();
  });
}

class Empty final : public Program {
 public:
  void run_unit(const WorkUnit&, UnitContext&) override {}
};

void run_empty_units(const Region& region) {
  constexpr WorkerId kWorkers = 16;
  EngineOptions options;
  options.threads = 1;
  Engine engine(options);
  RotationSchedule schedule(kWorkers, 2 * kWorkers, 1);
  Empty program;
  Executor executor(engine, schedule, program, kWorkers, {});
  region([&] { executor.run(10); });
}

void tick(const Region& region) {
  constexpr WorkerId kWorkers = 16;
  const WorkerMap map(kWorkers, 1, 0, 2);
  ClockTree tree(map, 0);
  region([&] {
    for (WorkerId i = 0; i < 10000; ++i) tree.tick(i % kWorkers);
  });
}

}  // namespace

std::map<std::string, CountedKernel> counted_kernels() {
  std::map<std::string, CountedKernel> kernels{{"reader/ratings", read},
                                               {"reader/layout", lay_out},
                                               {"random/normal", draw_normals},
                                               {"unit/rotation", run_empty_units},
                                               {"clock/tick", tick}};
  for (const SimdLevel level : {SimdLevel::portable, SimdLevel::avx2}) {
    for (const std::size_t rank : {16U, 64U, 128U}) {
      const std::string tail = "/k" + std::to_string(rank) + "/" + std::string(to_string(level));
      kernels.emplace("mf/train" + tail, train(rank, level));
      kernels.emplace("mf/measure" + tail, measure(rank, level));
    }
  }
  return kernels;
}

}  // namespace orrery::bench
