// Runs inside a guest, or where hwloc is told that the CPUs of this machine are domains: the threads of the engine's
// arenas are on their domain while they work, for every number of threads, run after run in one process, and nobody is
// left bound afterwards.
//
//   arena_probe
//
// Exit status 0: all right; 125: one domain only, nothing tested; 1: something is wrong, each thing on a line that
// begins with WRONG.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "engine/parallel.h"
#include "numa/pinning.h"
#include "tests/guest/probe.h"

namespace {

using namespace orrery;

/// Where one task found itself.
struct Seen {
  std::size_t lane = 0;
  int cpu = -1;
  unsigned mask_size = 0;
};

/// What the tasks of one look share; the last one to leave frees it.
struct Look {
  explicit Look(unsigned threads) : seen(threads) {}
  void around(std::size_t place, std::size_t lane) {
    seen[place] = {lane, current_cpu(), allowed_cpu_count()};
    arrived.fetch_add(1);
    // Nobody leaves before all have come, so that no thread takes two of the tasks.
    while (arrived.load() < seen.size()) std::this_thread::yield();
  }

  std::vector<Seen> seen;
  std::atomic<unsigned> arrived{0};
};

/// Fills every lane with one task for each of its threads, and looks from inside.
std::vector<Seen> look_around(Arenas& arenas) {
  const auto look = std::make_shared<Look>(arenas.threads());
  arenas.join([&] {
    std::size_t place = 1;
    for (std::size_t lane = 0; lane < arenas.lanes().size(); ++lane) {
      for (unsigned i = lane == 0 ? 1 : 0; i < arenas.lanes()[lane].threads; ++i, ++place) {
        arenas.enqueue(lane, [look, place, lane] { look->around(place, lane); });
      }
    }
    look->around(0, 0);
  });
  return look->seen;
}

void check(guest::Checks& checks, const Topology& topology, unsigned threads) {
  const PinPlan plan = plan_pins(topology, threads);
  const auto warn = [&](const std::string& text) { checks.expect(false, "arenas warn: " + text); };
  const std::string what = std::to_string(threads) + " threads: ";
  {
    Arenas arenas(topology, plan, warn);
    for (int round = 0; round < 3; ++round) {
      for (const Seen& seen : look_around(arenas)) {
        const unsigned domain = arenas.lanes()[seen.lane].domains.front();
        const std::size_t mask_size = plan.binding == Binding::pu ? 1 : topology.domains()[domain].pu_count();
        checks.expect(
            topology.domain_of_pu(static_cast<unsigned>(seen.cpu)) == static_cast<int>(domain),
            what + "a thread of lane " + std::to_string(seen.lane) + " is on CPU " + std::to_string(seen.cpu));
        checks.expect(seen.mask_size == mask_size, what + "a mask of " + std::to_string(seen.mask_size) + " CPUs");
      }
      checks.expect(allowed_cpu_count() == topology.allowed_pus(), what + "the calling thread was left bound");
    }
  }
}

}  // namespace

int main() {
  const Topology topology = Topology::detect();
  guest::Checks checks;
  if (topology.domains().size() < 2) {
    std::printf("NOT RUN: one domain only, so nothing can be seen\n");
    return 125;
  }
  const auto domains = static_cast<unsigned>(topology.domains().size());
  // Falling too: threads that are left over from a run with more of them must not keep their masks.
  for (const unsigned threads : {domains, domains + 1, topology.allowed_cores(), topology.allowed_pus(), domains}) {
    check(checks, topology, threads);
  }
  checks.print("arena_probe");
  return checks.good() ? 0 : 1;
}
