// Ratings per second of the factorisation kernels at each rank and level, with the bytes that an update moves: the
// numerator of the roofline in bench/RESULTS.md.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "bench/micro/benchmarks.h"
#include "bench/micro/workloads.h"
#include "engine/simd.h"

namespace orrery::bench {

namespace {

void train(benchmark::State& state, std::size_t rank, SimdLevel level) {
  FactorWorkload work({}, rank);
  const mf::Kernels& kernels = mf::kernels(level);
  for (auto _ : state) work.train(kernels);
  state.SetItemsProcessed(static_cast<std::int64_t>(work.ratings()) * state.iterations());
  state.counters["bytes_per_update"] = work.bytes_per_update();
}

void measure(benchmark::State& state, std::size_t rank, SimdLevel level) {
  const FactorWorkload work({}, rank);
  const mf::Kernels& kernels = mf::kernels(level);
  for (auto _ : state) benchmark::DoNotOptimize(work.measure(kernels));
  state.SetItemsProcessed(static_cast<std::int64_t>(work.ratings() / 9) * state.iterations());
}

}  // namespace

void register_mf_kernels() {
  for (const SimdLevel level : {SimdLevel::portable, SimdLevel::avx2, SimdLevel::avx512}) {
    if (level > detect_simd()) continue;
    for (const std::size_t rank : {16U, 64U, 128U}) {
      const std::string tail = "/k" + std::to_string(rank) + "/" + std::string(to_string(level));
      benchmark::RegisterBenchmark(("mf/train" + tail).c_str(), train, rank, level)->Unit(benchmark::kMillisecond);
      benchmark::RegisterBenchmark(("mf/measure" + tail).c_str(), measure, rank, level)->Unit(benchmark::kMillisecond);
    }
  }
}

}  // namespace orrery::bench
