// orrery_bench_counts: each hot kernel once, in a function that callgrind can find, for `bench/counts`. Instructions of
// one thread repeat; times on a shared machine do not, so these are what a change is held against (style 27).
//
//   orrery_bench_counts --list     compiler, kind of build and the kernels as JSON
//   orrery_bench_counts KERNEL     runs it once
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <string>

#include "bench/micro/counted_kernels.h"

/// The region that is counted. It must stay a function of its own under this name.
extern "C" __attribute__((noinline)) void orrery_counted_region(const std::function<void()>& kernel) {
  kernel();
  asm volatile("" ::: "memory");  // not a tail call, or the region would end before its kernel
}

namespace {

#if defined(__clang__)
constexpr const char* kCompiler = "Clang " __clang_version__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

void list(const std::map<std::string, orrery::bench::CountedKernel>& kernels) {
  std::printf("{\"compiler\": \"%s\", \"build\": \"%s\", \"kernels\": [", kCompiler, ORRERY_BENCH_BUILD);
  const char* separator = "";
  for (const auto& [name, kernel] : kernels) {
    std::printf("%s\"%s\"", separator, name.c_str());
    separator = ", ";
  }
  std::printf("]}\n");
}

}  // namespace

int main(int argc, char** argv) {
  const auto kernels = orrery::bench::counted_kernels();
  const std::string wanted = argc == 2 ? argv[1] : "";
  if (wanted == "--list") {
    list(kernels);
    return 0;
  }
  const auto kernel = kernels.find(wanted);
  if (kernel == kernels.end()) {
    std::fprintf(stderr, "usage: orrery_bench_counts --list | KERNEL\n");
    return 2;
  }
  try {
    kernel->second(orrery_counted_region);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 4;
  }
  return 0;
}
