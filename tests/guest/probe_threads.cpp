// Threads: on their PUs and nodes by plan and by pin, their masks given back; and processes that are narrowed from
// outside.
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "numa/memory.h"
#include "numa/pinning.h"
#include "tests/guest/probe.h"

namespace orrery::guest {
namespace {

/// The page that the calling thread's innermost frame lies on.
void expect_stack_on(Checks& checks, int node) {
  const char here = 0;
  checks.expect(where_pages_are(&here, 1).on_node(node) == 1,
                "the stack of a bound thread is not on node " + std::to_string(node));
}

/// One thread of a plan: bound, it must stay where it belongs over many chances to be moved.
void check_thread(Checks& checks, const Topology& topology, const ThreadPlace& place) {
  const unsigned before = allowed_cpu_count();
  {
    const ThreadPin pin(place);
    checks.expect(pin.bound(), "plan: " + pin.reason());
    checks.expect(allowed_cpu_count() == place.mask.size(), "plan: the mask has another size");
    expect_stack_on(checks, place.memory_node);
    for (int i = 0; i < 200; ++i) {
      const int cpu = current_cpu();
      const bool in_mask =
          std::find(place.mask.begin(), place.mask.end(), static_cast<unsigned>(cpu)) != place.mask.end();
      checks.expect(in_mask, "a bound thread is on CPU " + std::to_string(cpu));
      checks.expect(topology.domain_of_pu(static_cast<unsigned>(cpu)) == static_cast<int>(*place.domain),
                    "thread on a foreign domain");
      checks.expect(topology.domains()[*place.domain].os_node == current_node(), "thread on a foreign node");
      sched_yield();
    }
  }
  checks.expect(allowed_cpu_count() == before, "the former mask was not given back");
}

void check_plan(Checks& checks, const Topology& topology, unsigned threads) {
  const PinPlan plan = plan_pins(topology, threads);
  std::vector<Checks> results(threads);
  std::vector<std::thread> running;
  for (unsigned t = 0; t < threads; ++t) {
    running.emplace_back([&, t] { check_thread(results[t], topology, plan.threads[t]); });
  }
  for (std::thread& thread : running) thread.join();
  for (const Checks& result : results) checks.expect(result.good(), "plan for " + std::to_string(threads) + " threads");
  unsigned total = 0;
  for (const unsigned here : plan.threads_per_domain) total += here;
  checks.expect(total == threads, "threads per domain do not add up");
}

bool write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file.good();
}

/// Runs in a child what narrows the whole process. The child's complaints are printed there; only their number comes
/// back.
void in_child(Checks& checks, const std::string& what, const std::function<void(Checks&)>& body) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    Checks own;
    try {
      body(own);
    } catch (const std::exception& error) {
      own.expect(false, what + ": " + error.what());
    }
    std::fflush(stdout);
    _exit(own.good() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  checks.expect(status == 0, what);
}

bool any_contains(const std::vector<std::string>& texts, const std::string& part) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

void check_offline(Checks& checks, const Topology& topology) {
  const unsigned pu = topology.pus().back();
  const std::string file = "/sys/devices/system/cpu/cpu" + std::to_string(pu) + "/online";
  if (!write_text(file, "0")) {
    checks.expect(false, "CPU " + std::to_string(pu) + " cannot be taken offline");
    return;
  }
  const ThreadPin refused = ThreadPin::to_pu(topology, pu);
  checks.expect(!refused.bound() && refused.reason().find("offline") != std::string::npos,
                "offline CPU: " + refused.reason());
  const Topology now = Topology::detect();
  checks.expect(now.allowed_pus() + 1 == topology.allowed_pus(), "an offline CPU is counted");
  checks.expect(any_contains(now.warnings(), "1 of " + std::to_string(topology.allowed_pus()) + " CPUs are offline"),
                "no warning about it");
  // On a thread of its own: a mask that is given back while a CPU is offline lacks it for good.
  std::thread([&] {
    for (const ThreadPlace& place : plan_pins(now, now.allowed_pus()).threads) {
      const ThreadPin pin(place);
      checks.expect(pin.bound(), "with a CPU offline: " + pin.reason());
    }
  }).join();
  checks.expect(write_text(file, "1"), "the CPU does not come back");
  checks.expect(Topology::detect().allowed_pus() == topology.allowed_pus(), "the CPU is not seen again");
}

void check_memory_policy(Checks& checks, const Topology& topology) {
  in_child(checks, "numactl --membind", [&](Checks& own) {
    const int node = topology.domains().back().memory_node;
    const unsigned long mask = 1UL << node;
    constexpr int kBind = 2;  // MPOL_BIND
    own.expect(syscall(SYS_set_mempolicy, kBind, &mask, 64) == 0, "set_mempolicy");
    const Topology bound = Topology::detect();
    own.expect(bound.domains().size() == topology.domains().size(), "membind: domains vanished");
    for (const Domain& domain : bound.domains())
      own.expect(domain.memory_node == node, "membind: other nodes are used");
    own.expect(any_contains(bound.warnings(), "may not be used"), "membind: no warning");
  });
}

void check_cpu_mask(Checks& checks, const Topology& topology) {
  in_child(checks, "numactl --cpunodebind", [&](Checks& own) {
    const Domain& last = topology.domains().back();
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const unsigned pu : last.pus()) CPU_SET(pu, &set);
    own.expect(sched_setaffinity(0, sizeof set, &set) == 0, "sched_setaffinity");
    const Topology narrow = Topology::detect();
    own.expect(narrow.domains().size() == 1 && narrow.pus() == last.pus(), "cpunodebind: " + narrow.description());
    own.expect(narrow.domains()[0].id == 0 && narrow.domains()[0].os_node == last.os_node,
               "cpunodebind: logical and kernel's number");
    own.expect(narrow.memory_only().size() == topology.memory_only().size(),
               "cpunodebind: a node with CPUs passes for memory-only");
  });
}

void check_control_group(Checks& checks, const Topology& topology) {
  const std::string top = "/sys/fs/cgroup", group = top + "/probe";
  const bool made =
      write_text(top + "/cgroup.subtree_control", "+cpuset +memory +cpu") && mkdir(group.c_str(), 0755) == 0;
  checks.expect(made, "no control group can be made");
  if (!made) return;
  const Domain& first = topology.domains().front();
  checks.expect(write_text(group + "/cpuset.mems", std::to_string(first.memory_node)), "cpuset.mems");
  checks.expect(write_text(group + "/memory.max", "100M") && write_text(group + "/cpu.max", "150000 100000"), "limits");
  in_child(checks, "control group", [&](Checks& own) {
    own.expect(write_text(group + "/cgroup.procs", std::to_string(getpid())), "cannot enter the group");
    const Topology narrow = Topology::detect();
    own.expect(narrow.domains().size() == topology.domains().size(), "cpuset.mems: domains vanished");
    for (const Domain& domain : narrow.domains())
      own.expect(domain.memory_node == first.memory_node, "cpuset.mems: forbidden memory");
    Buffer buffer = Buffer::local(Buffer::kHugePage, static_cast<unsigned>(narrow.domains().size() - 1), narrow);
    buffer.populate();
    own.expect(buffer.remark().empty(), "cpuset.mems: " + buffer.remark());
    own.expect(where_pages_are(buffer.data(), buffer.size()).share_on(first.memory_node) == 1.0,
               "cpuset.mems: pages elsewhere");
    own.expect(narrow.cpu_quota() == 1.5 && any_contains(narrow.warnings(), "time of 1.5 CPUs"), "cpu.max is not seen");
    const AvailableMemory memory = available_memory();
    own.expect(memory.limit_bytes == 100U << 20 && memory.usable() <= 100U << 20, "memory.max is not seen");
  });
  rmdir(group.c_str());
}

}  // namespace

void check_shape(Checks& checks, const Topology& topology, const Expected& expected) {
  checks.expect(topology.is_this_system() && topology.can_bind_threads() && topology.can_bind_memory(),
                "binding is refused");
  checks.expect(topology.domains().size() == expected.domains, "domains: " + topology.description());
  checks.expect(topology.memory_only().size() == expected.memory_only, "memory-only nodes: " + topology.description());
  checks.expect(topology.distances().size() == expected.domains, "distances: " + topology.description());
  unsigned borrowed = 0;
  for (const Domain& domain : topology.domains()) borrowed += domain.memory_node != domain.os_node;
  checks.expect(borrowed == expected.bare, "domains without memory: " + topology.description());
  checks.expect(topology.warnings().size() == expected.bare,
                "warnings: " + (topology.warnings().empty() ? "" : topology.warnings().front()));
}

void check_threads(Checks& checks, const Topology& topology) {
  for (const unsigned threads : {static_cast<unsigned>(topology.domains().size()), topology.allowed_cores(),
                                 topology.allowed_pus(), topology.allowed_pus() + 3}) {
    check_plan(checks, topology, threads);
  }
  for (const Domain& domain : topology.domains()) {
    const ThreadPin pin = ThreadPin::to_domain(topology, domain.id);
    checks.expect(pin.bound() && current_node() == domain.os_node, "to_domain: " + pin.reason());
    expect_stack_on(checks, domain.memory_node);
  }
}

void check_narrowing(Checks& checks, const Topology& topology) {
  check_memory_policy(checks, topology);
  check_cpu_mask(checks, topology);
  check_control_group(checks, topology);
  check_offline(checks, topology);
}

}  // namespace orrery::guest
