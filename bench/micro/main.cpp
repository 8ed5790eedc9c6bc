// orrery_bench_micro: kernels, readers, clocks and units by themselves (style 26). `bench/run micro` runs it and keeps
// its figures; `--benchmark_filter=REGEX` runs a part.
#include <benchmark/benchmark.h>

#include "bench/micro/benchmarks.h"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  orrery::bench::register_bandwidth();
  orrery::bench::register_engine();
  orrery::bench::register_lasso();
  orrery::bench::register_mf_kernels();
  orrery::bench::register_random();
  orrery::bench::register_readers();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
