// Loading on one thread: text to ratings, and ratings to the block layout that is trained on. Both are given per rating
// too, because the second must cost less than the first.
#include <benchmark/benchmark.h>

#include <string>

#include "algorithms/mf_layout.h"
#include "bench/micro/benchmarks.h"
#include "bench/micro/temporary_file.h"
#include "bench/micro/workloads.h"
#include "engine/data/ratings.h"

namespace orrery::bench {

namespace {

constexpr RatingsShape kShape{100000, 20000, 2000000};

void set_ratings(benchmark::State& state) {
  const auto ratings = static_cast<std::int64_t>(kShape.ratings) * state.iterations();
  state.SetItemsProcessed(ratings);
  state.counters["seconds_per_item"] =
      benchmark::Counter(static_cast<double>(ratings), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void parse(benchmark::State& state) {
  const std::string text = ratings_text(kShape, 1);
  const TemporaryFile file(text);
  for (auto _ : state) benchmark::DoNotOptimize(read_ratings(file.path()));
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size()) * state.iterations());
  set_ratings(state);
}

void lay_out(benchmark::State& state) {
  const auto shape = mf::choose_grid(kShape.ratings, kShape.rows, kShape.columns, 64, 0);
  for (auto _ : state) {
    state.PauseTiming();
    RatingStore ratings = make_ratings(kShape, 1);
    state.ResumeTiming();
    const auto counts = mf::count_ratings(ratings, kShape.rows, kShape.columns, serial_for);
    benchmark::DoNotOptimize(mf::CellGrid::build(std::move(ratings), deal_axis(counts.rows, shape.stripes, kShape.rows),
                                                 deal_axis(counts.columns, shape.blocks, mf::kMaxBlockColumns),
                                                 serial_for));
  }
  set_ratings(state);
}

}  // namespace

void register_readers() {
  benchmark::RegisterBenchmark("reader/ratings", parse)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("reader/layout", lay_out)->Unit(benchmark::kMillisecond);
}

}  // namespace orrery::bench
