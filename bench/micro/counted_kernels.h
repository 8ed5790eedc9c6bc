// What orrery_bench_counts counts: kernels by name, each small enough to run under valgrind in a second or two.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace orrery::bench {

/// Calls its argument once; what happens in there is counted.
using Region = std::function<void(const std::function<void()>&)>;
/// Sets its data up, then runs the kernel inside the region.
using CountedKernel = std::function<void(const Region&)>;

/// Names end in the kernel's level where it has one ("mf/train/k64/avx2").
std::map<std::string, CountedKernel> counted_kernels();

}  // namespace orrery::bench
