// The roofs: how many bytes a second one core can read, change and write back, from each level of the memory hierarchy,
// in one sweep and by rows of 256 bytes in random order (what training does to the rows of items). Bytes count once.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/micro/benchmarks.h"
#include "bench/micro/workloads.h"
#include "engine/random.h"

namespace orrery::bench {

namespace {

constexpr std::size_t kRowFloats = 64;

struct Level {
  const char* name;
  std::size_t bytes;
};

/// Half of a cache, so that nothing else drives the set out of it. The third level is shared and often reported whole
/// (virtual machines), so its set is a multiple of the second level; "memory" is beyond every cache we may count on.
std::vector<Level> levels() {
  const auto size = [](int name, std::size_t otherwise) {
    const long found = sysconf(name);
    return found > 0 ? static_cast<std::size_t>(found) : otherwise;
  };
  const std::size_t l1 = size(_SC_LEVEL1_DCACHE_SIZE, 32 << 10);
  const std::size_t l2 = size(_SC_LEVEL2_CACHE_SIZE, 1 << 20);
  const std::size_t l3 = size(_SC_LEVEL3_CACHE_SIZE, 32 << 20);
  const std::size_t memory = std::clamp<std::size_t>(2 * l3, std::size_t{256} << 20, std::size_t{1} << 30);
  return {{"L1", l1 / 2}, {"L2", l2 / 2}, {"L3", std::min(8 * l2, l3 / 2)}, {"memory", memory}};
}

// One body for all processors: the loader picks the widest clone, and nothing here is about bits.
__attribute__((target_clones("avx512f", "avx2", "default"))) void add_all(float* values, std::size_t count,
                                                                          float term) {
  for (std::size_t i = 0; i < count; ++i) values[i] += term;
}

__attribute__((target_clones("avx512f", "avx2", "default"))) void add_rows(float* values, const std::uint32_t* order,
                                                                           std::size_t rows, float term) {
  for (std::size_t r = 0; r < rows; ++r) {
    float* row = values + std::size_t{order[r]} * kRowFloats;
    for (std::size_t i = 0; i < kRowFloats; ++i) row[i] += term;
  }
}

void sweep(benchmark::State& state, std::size_t bytes) {
  const HugeArray memory(bytes);
  for (auto _ : state) {
    add_all(memory.as<float>(), bytes / sizeof(float), 1.0F);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}

void random_rows(benchmark::State& state, std::size_t bytes) {
  const HugeArray memory(bytes);
  const std::size_t rows = bytes / (kRowFloats * sizeof(float));
  const auto order = Random(1, Purpose::test).permutation(static_cast<std::uint32_t>(rows), 0, 0);
  for (auto _ : state) {
    add_rows(memory.as<float>(), order.data(), rows, 1.0F);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(rows * kRowFloats * sizeof(float)) * state.iterations());
}

}  // namespace

void register_bandwidth() {
  for (const Level& level : levels()) {
    benchmark::RegisterBenchmark((std::string("bandwidth_rmw/") + level.name).c_str(), sweep, level.bytes);
    benchmark::RegisterBenchmark((std::string("bandwidth_rows/") + level.name).c_str(), random_rows, level.bytes);
  }
}

}  // namespace orrery::bench
