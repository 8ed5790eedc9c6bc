// Counter-based random numbers: what a draw costs, also when each item has a stream of its own.
#include "engine/random.h"

#include <benchmark/benchmark.h>

#include "bench/micro/benchmarks.h"

namespace orrery::bench {

namespace {

void words(benchmark::State& state) {
  RandomStream draws = Random(1, Purpose::test).stream(0, 0);
  for (auto _ : state) benchmark::DoNotOptimize(draws.next());
}

void uniforms(benchmark::State& state) {
  RandomStream draws = Random(1, Purpose::test).stream(0, 0);
  for (auto _ : state) benchmark::DoNotOptimize(draws.uniform());
}

void normals(benchmark::State& state) {
  RandomStream draws = Random(1, Purpose::test).stream(0, 0);
  for (auto _ : state) benchmark::DoNotOptimize(draws.normal());
}

void streams(benchmark::State& state) {
  const Random random(1, Purpose::test);
  std::uint64_t item = 0;
  for (auto _ : state) benchmark::DoNotOptimize(random.stream(0, item++).next());
}

}  // namespace

void register_random() {
  benchmark::RegisterBenchmark("random/word", words);
  benchmark::RegisterBenchmark("random/uniform", uniforms);
  benchmark::RegisterBenchmark("random/normal", normals);
  benchmark::RegisterBenchmark("random/stream", streams);
}

}  // namespace orrery::bench
