// Known numbers of accesses, to check the access counter by. Loop variables live in registers and on the thread's own
// stack: captured by reference they would lie on the stack of the thread that made this one, on another node.
#include <thread>

#include "numa/access_section.h"
#include "numa/memory.h"
#include "numa/pinning.h"
#include "tests/guest/probe.h"

namespace orrery::guest {
namespace {

constexpr std::size_t kWords = 100000;
constexpr int kRounds = 8;

long read_all(const long* words) {
  long sum = 0;
  const AccessSection section;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < kWords; ++i) {
      asm volatile("" ::: "memory");  // each word is loaded in each round
      sum += words[i];
    }
  }
  return sum;
}

}  // namespace

void read_everywhere(const Topology& topology) {
  for (const Domain& reader : topology.domains()) {
    for (const Domain& home : topology.domains()) {
      Buffer buffer = Buffer::local(kWords * sizeof(long), home.id, topology);
      buffer.populate();
      access_counts_reset();
      long sum = 0;
      std::thread([&topology, &reader, &sum, words = buffer.as<long>().data()] {
        // To one processor: a section belongs to the one on which it begins.
        const ThreadPin pin = ThreadPin::to_pu(topology, reader.pus().front());
        sum = read_all(words);
      }).join();
      access_counts_print();
      std::printf("read %zu words: reader %d memory %d sum %ld\n", kWords * kRounds, reader.os_node, home.memory_node,
                  sum);
    }
  }
}

}  // namespace orrery::guest
