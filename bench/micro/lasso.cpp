// What a scheduled round costs beside its work: drawing coordinates by their last change squared and holding each
// against those that were taken, on short sparse columns, where it can least be hidden.
#include "algorithms/lasso_rounds.h"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "bench/micro/benchmarks.h"
#include "engine/coordinate_scheduler.h"
#include "engine/random.h"

namespace orrery::bench {

namespace {

constexpr std::uint32_t kColumns = 100000, kRows = 10000, kEntriesPerRow = 180;  // 18 entries a column

SparseRows make_rows() {
  const Random random(1, Purpose::generator);
  SparseRows rows;
  rows.column_count = kColumns;
  for (std::uint32_t r = 0; r < kRows; ++r) {
    RandomStream draw = random.stream(0, r);
    for (std::uint32_t i = 0; i < kEntriesPerRow; ++i) {  // one column of each stripe, so that they ascend
      constexpr std::uint32_t kStripe = kColumns / kEntriesPerRow;
      rows.columns.push_back(i * kStripe + static_cast<std::uint32_t>(draw.below(kStripe)));
      rows.values.push_back(static_cast<float>(draw.normal()));
    }
    rows.labels.push_back(draw.normal());
    rows.starts.push_back(rows.columns.size());
  }
  return rows;
}

void draws(benchmark::State& state) {
  const lasso::Design design(make_rows(), true, true, lasso::kernels(SimdLevel::portable), serial_for);
  const lasso::ColumnCorrelation correlation(design);
  SampledSource source(kColumns, 1e-6, 1);
  const auto width = static_cast<std::size_t>(state.range(0));
  CoordinateScheduler scheduler(correlation, source, {.width = width, .most_dependence = 0.1});
  std::vector<double> changes;  // drawn before, so that drawing them is not timed
  RandomStream draw = Random(2, Purpose::generator).stream(0, 0);
  for (int k = 0; k < 4096; ++k) changes.push_back(draw.normal());
  std::vector<std::vector<std::uint32_t>> bins(1);
  std::int64_t drawn = 0;
  Clock round = 0;
  for (auto _ : state) {
    bins[0].clear();
    scheduler.pick(round, bins);
    for (const std::uint32_t j : bins[0])
      source.told(j, changes[(j + static_cast<std::size_t>(round)) % changes.size()]);
    scheduler.pulled();
    drawn += static_cast<std::int64_t>(bins[0].size());
    ++round;
  }
  state.SetItemsProcessed(drawn);
  state.counters["seconds_per_draw"] =
      benchmark::Counter(static_cast<double>(drawn), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

}  // namespace

void register_lasso() { benchmark::RegisterBenchmark("schedule/sampled", draws)->Arg(8)->Arg(64); }

}  // namespace orrery::bench
