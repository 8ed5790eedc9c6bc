// The groups of micro-benchmarks. Each registers its benchmarks with Google Benchmark; main.cpp calls them in turn, so
// that nothing is registered by static objects.
#pragma once

namespace orrery::bench {

void register_bandwidth();
void register_engine();
void register_lasso();
void register_mf_kernels();
void register_random();
void register_readers();

}  // namespace orrery::bench
