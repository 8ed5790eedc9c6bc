// Runs inside a guest with several NUMA nodes (numa-guest.sh) and checks numa/ on what is real there: pages, threads,
// policies, control groups. Built for plain x86-64: an emulated processor has no AVX-512.
//
//   guest_probe all|placement|threads|spill|counted DOMAINS MEMORY_ONLY BARE
//
// Outside a guest, "all" leaves out what would change the machine.
// Exit status 0: all right; 1: something is wrong, each thing on a line that begins with WRONG; 2: wrong arguments.
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string_view>

#include "numa/topology_report.h"
#include "tests/guest/probe.h"

namespace {

using namespace orrery;
using namespace orrery::guest;

bool number(std::string_view text, unsigned& value) {
  return std::from_chars(text.data(), text.data() + text.size(), value).ptr == text.data() + text.size() &&
         !text.empty();
}

/// numa-guest.sh says so. CPUs of a real machine must not be taken offline, nor its control groups be changed.
bool in_guest() { return std::getenv("NUMA_GUEST") != nullptr; }

int run(std::string_view part, const Expected& expected) {
  const Topology topology = Topology::detect();
  std::printf("%s", topology_text(topology, plan_pins(topology, topology.allowed_cores())).c_str());
  Checks checks;
  check_shape(checks, topology, expected);
  const bool all = part == "all";
  if (all || part == "placement") check_placement(checks, topology);
  if (all || part == "threads") check_threads(checks, topology);
  if (all && in_guest()) check_narrowing(checks, topology);
  if (part == "spill") check_spill(checks, topology);
  if (part == "counted") read_everywhere(topology);
  checks.print("guest_probe");
  return checks.good() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Expected expected;
  if (argc != 5 || !number(argv[2], expected.domains) || !number(argv[3], expected.memory_only) ||
      !number(argv[4], expected.bare)) {
    std::fprintf(stderr, "usage: guest_probe all|placement|threads|spill|counted DOMAINS MEMORY_ONLY BARE\n");
    return 2;
  }
  try {
    return run(argv[1], expected);
  } catch (const std::exception& error) {
    std::printf("WRONG: %s\n", error.what());
    return 1;
  }
}
