// The plan: properties over all machines and numbers of threads. The pin: what it changes it gives back, and a machine
// that refuses is no reason to stop.
#include "numa/pinning.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

#include "numa/cpu_mask.h"
#include "numa/memory.h"
#include "tests/numa/refuse.h"
#include "tests/numa/support.h"

namespace orrery::test {
namespace {

std::vector<unsigned> my_cpus() { return detail::cpus_of(detail::thread_mask(0)); }

void expect_sound(const Topology& topology, unsigned threads) {
  SCOPED_TRACE(topology.source() + ", " + std::to_string(threads) + " threads");
  const PinPlan plan = plan_pins(topology, threads);
  ASSERT_EQ(plan.threads.size(), threads);
  ASSERT_EQ(plan.threads_per_domain.size(), topology.domains().size());
  EXPECT_EQ(plan.visiting(), threads < topology.domains().size());
  EXPECT_EQ(plan.oversubscribed, threads > topology.allowed_pus());
  EXPECT_EQ(plan.reason.empty(), plan.binding == Binding::pu);
  if (plan.visiting()) {
    EXPECT_EQ(plan.binding, Binding::none);
    for (const ThreadPlace& place : plan.threads) EXPECT_TRUE(!place.domain && !place.pu && place.mask.empty());
    return;
  }
  std::vector<std::vector<unsigned>> pus(topology.domains().size());
  unsigned last = 0;
  for (const ThreadPlace& place : plan.threads) {
    ASSERT_TRUE(place.domain && place.pu);
    EXPECT_GE(*place.domain, last);
    last = *place.domain;
    EXPECT_EQ(topology.domain_of_pu(*place.pu), static_cast<int>(*place.domain));
    pus[*place.domain].push_back(*place.pu);
    if (!topology.is_this_system()) {
      EXPECT_TRUE(place.mask.empty());
    } else {
      EXPECT_TRUE(std::find(place.mask.begin(), place.mask.end(), *place.pu) != place.mask.end());
    }
  }
  const bool pus_bound = threads >= topology.allowed_cores() && threads <= topology.allowed_pus();
  EXPECT_EQ(plan.binding, pus_bound ? Binding::pu : Binding::domain);
  for (const Domain& domain : topology.domains()) {
    const auto& here = pus[domain.id];
    EXPECT_EQ(here.size(), plan.threads_per_domain[domain.id]);
    EXPECT_GE(here.size(), 1U) << "domain " << domain.id;
    // All cores before any second hardware thread; no PU twice before all are taken.
    const std::size_t cores = std::min(here.size(), domain.cores.size());
    std::set<const Core*> used;
    for (std::size_t i = 0; i < cores; ++i) {
      for (const Core& core : domain.cores) {
        if (std::find(core.pus.begin(), core.pus.end(), here[i]) != core.pus.end()) used.insert(&core);
      }
    }
    EXPECT_EQ(used.size(), cores);
    const std::size_t distinct = std::min<std::size_t>(here.size(), domain.pu_count());
    EXPECT_EQ(std::set<unsigned>(here.begin(), here.begin() + static_cast<std::ptrdiff_t>(distinct)).size(), distinct);
    if (threads <= topology.allowed_cores()) {
      // In proportion to the cores: the exact share rounded down or up, or the one thread that everybody gets.
      const std::uint64_t scaled = std::uint64_t{threads} * domain.cores.size(), all = topology.allowed_cores();
      EXPECT_LE(here.size(), std::max<std::uint64_t>(1, (scaled + all - 1) / all));
      EXPECT_LE(here.size(), domain.cores.size());
    }
    if (threads <= topology.allowed_pus()) {
      EXPECT_LE(here.size(), domain.pu_count());
    }
    if (threads >= topology.allowed_cores()) {
      EXPECT_GE(here.size(), domain.cores.size());
    }
  }
}

TEST(PinPlan, IsSoundOnEveryMachineForEveryNumberOfThreads) {
  for (const Topology& topology : all_machines()) {
    const unsigned pus = topology.allowed_pus();
    for (unsigned threads = 1; threads <= pus + 2; ++threads) expect_sound(topology, threads);
    for (const unsigned threads : {2 * pus, 3 * pus + 1, 7 * pus - 1}) expect_sound(topology, threads);
  }
}

TEST(PinPlan, EqualDomainsGetEqualThreads) {
  const Topology topology = Topology::synthetic("numa:4 core:8 pu:2");
  for (const unsigned threads : {4U, 8U, 32U, 64U, 128U}) {
    for (const unsigned here : plan_pins(topology, threads).threads_per_domain) EXPECT_EQ(here, threads / 4);
  }
}

TEST(PinPlan, UnevenDomainsGetThreadsByTheirCores) {
  // Two cores with two PUs each, and one core with one PU.
  const Topology topology = Topology::xml((topology_folder() / "2-sockets-uneven-cores.xml").string());
  EXPECT_EQ(plan_pins(topology, 2).threads_per_domain, (std::vector<unsigned>{1, 1}));
  EXPECT_EQ(plan_pins(topology, 3).threads_per_domain, (std::vector<unsigned>{2, 1}));
  EXPECT_EQ(plan_pins(topology, 5).threads_per_domain, (std::vector<unsigned>{4, 1}));
  EXPECT_EQ(plan_pins(topology, 10).threads_per_domain, (std::vector<unsigned>{8, 2}));
}

TEST(PinPlan, NeighbouringThreadsUseDifferentCaches) {
  const Topology topology = Topology::synthetic("numa:1 l3:4 core:2 pu:2");
  const PinPlan plan = plan_pins(topology, 8);
  std::map<unsigned, int> cache;
  for (const Core& core : topology.domains()[0].cores) cache[core.pus.front()] = core.l3;
  std::set<int> first_four;
  for (std::size_t i = 0; i < 4; ++i) first_four.insert(cache.at(*plan.threads[i].pu));
  EXPECT_EQ(first_four.size(), 4U);
}

TEST(PinPlan, DoesNotDependOnAnythingButTheTopologyAndTheThreads) {
  for (const Topology& topology : all_machines()) {
    const PinPlan a = plan_pins(topology, 5), b = plan_pins(Topology(topology), 5);
    for (std::size_t t = 0; t < 5; ++t) {
      EXPECT_EQ(a.threads[t].domain, b.threads[t].domain);
      EXPECT_EQ(a.threads[t].pu, b.threads[t].pu);
      EXPECT_EQ(a.threads[t].mask, b.threads[t].mask);
    }
  }
}

TEST(PinPlan, CanBeLoosenedButNotTightened) {
  const Topology topology = Topology::detect();
  const unsigned cores = topology.allowed_cores();
  EXPECT_EQ(plan_pins(topology, cores, Binding::none).binding, Binding::none);
  EXPECT_EQ(plan_pins(topology, cores, Binding::domain).binding, Binding::domain);
  EXPECT_EQ(plan_pins(topology, topology.allowed_pus() + 1, Binding::pu).binding, Binding::domain);
  const PinPlan off = plan_pins(topology, cores, Binding::none);
  for (const ThreadPlace& place : off.threads) EXPECT_TRUE(place.domain && place.mask.empty());
}

TEST(PinPlan, NoThreadsIsTheCallersMistake) { EXPECT_THROW(plan_pins(Topology::detect(), 0), std::invalid_argument); }

TEST(ThreadPin, BindsAndGivesBack) {
  const Topology topology = Topology::detect();
  const std::vector<unsigned> before = my_cpus();
  for (const unsigned pu : topology.pus()) {
    const ThreadPin pin = ThreadPin::to_pu(topology, pu);
    ASSERT_TRUE(pin.bound()) << pin.reason();
    EXPECT_TRUE(pin.reason().empty());
    EXPECT_EQ(my_cpus(), std::vector<unsigned>{pu});
    EXPECT_EQ(current_cpu(), static_cast<int>(pu));
    EXPECT_EQ(topology.domain_of_node(current_node()), topology.domain_of_pu(pu));
    EXPECT_EQ(allowed_cpu_count(), 1U);
  }
  EXPECT_EQ(my_cpus(), before);
}

TEST(ThreadPin, PinsNest) {
  const Topology topology = Topology::detect();
  const std::vector<unsigned> before = my_cpus();
  const ThreadPin outer = ThreadPin::to_domain(topology, 0);
  ASSERT_TRUE(outer.bound());
  const std::vector<unsigned> middle = my_cpus();
  EXPECT_EQ(middle, topology.domains()[0].pus());
  {
    const ThreadPin inner = ThreadPin::to_pu(topology, middle.back());
    EXPECT_EQ(my_cpus(), std::vector<unsigned>{middle.back()});
  }
  EXPECT_EQ(my_cpus(), middle);
  ThreadPin last = ThreadPin::to_pu(topology, middle.front());
  last.release();
  last.release();
  EXPECT_FALSE(last.bound());
  EXPECT_EQ(my_cpus(), middle);
  EXPECT_EQ(before.empty(), false);
}

TEST(ThreadPin, MovingKeepsThePromise) {
  const Topology topology = Topology::detect();
  const std::vector<unsigned> before = my_cpus();
  const unsigned first = topology.pus().front(), last = topology.pus().back();
  {
    ThreadPin a = ThreadPin::to_pu(topology, first);
    ThreadPin b = std::move(a);
    EXPECT_TRUE(b.bound());
    EXPECT_EQ(my_cpus(), std::vector<unsigned>{first});
    b = ThreadPin();
    EXPECT_EQ(my_cpus(), before);
    b = ThreadPin::to_pu(topology, last);
    EXPECT_EQ(my_cpus(), std::vector<unsigned>{last});
  }
  EXPECT_EQ(my_cpus(), before);
}

TEST(ThreadPin, RestoresTheThreadThatItBound) {
  const Topology topology = Topology::detect();
  const std::vector<unsigned> before = my_cpus();
  ThreadPin pin;
  std::vector<unsigned> during, after;
  int ends[2], back[2];
  ASSERT_EQ(pipe(ends) + pipe(back), 0);
  std::thread other([&] {
    pin = ThreadPin::to_pu(topology, topology.pus().back());
    during = my_cpus();
    char byte = 0;
    EXPECT_EQ(write(back[1], "x", 1), 1);
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
    after = my_cpus();
  });
  char byte = 0;
  ASSERT_EQ(read(back[0], &byte, 1), 1);
  pin.release();
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  other.join();
  EXPECT_EQ(during, std::vector<unsigned>{topology.pus().back()});
  EXPECT_EQ(after, before);
  EXPECT_EQ(my_cpus(), before);
}

TEST(ThreadPin, InheritedMaskNeedNotComeBack) {
  const Topology topology = Topology::detect();
  const ThreadPin parent = ThreadPin::to_pu(topology, topology.pus().front());
  std::vector<unsigned> after;
  std::thread([&] {
    {
      ThreadPin pin = ThreadPin::to_pu(topology, topology.pus().back());
      pin.restore_to(topology.pus());
    }
    after = my_cpus();
  }).join();
  EXPECT_EQ(after, topology.pus());
}

TEST(ThreadPin, FollowsThePlan) {
  const Topology topology = Topology::detect();
  const std::vector<unsigned> before = my_cpus();
  for (const unsigned threads : {1U, topology.allowed_cores(), topology.allowed_pus(), 2 * topology.allowed_pus()}) {
    for (const ThreadPlace& place : plan_pins(topology, threads).threads) {
      const ThreadPin pin(place);
      EXPECT_EQ(pin.bound(), !place.mask.empty());
      EXPECT_TRUE(pin.reason().empty()) << pin.reason();
      if (pin.bound()) {
        EXPECT_EQ(my_cpus(), place.mask);
      }
    }
    EXPECT_EQ(my_cpus(), before);
  }
}

TEST(ThreadPin, RefusalIsAReasonAndChangesNothing) {
  const Topology topology = Topology::detect();
  const std::vector<unsigned> before = my_cpus();
  for (const unsigned pu : {1023U, 4000U, 70000U}) {
    const ThreadPin pin = ThreadPin::to_pu(topology, pu);
    EXPECT_FALSE(pin.bound());
    EXPECT_NE(pin.reason().find("PU " + std::to_string(pu)), std::string::npos) << pin.reason();
    EXPECT_EQ(my_cpus(), before);
  }
  EXPECT_FALSE(ThreadPin::to_domain(topology, 1000).bound());
  EXPECT_FALSE(ThreadPin::to_domain(topology, 1000).reason().empty());
}

TEST(ThreadPin, AnotherMachineBindsNothing) {
  const Topology topology = Topology::synthetic("numa:2 core:1 pu:1");
  const std::vector<unsigned> before = my_cpus();
  const ThreadPin pu = ThreadPin::to_pu(topology, 0), domain = ThreadPin::to_domain(topology, 1);
  EXPECT_FALSE(pu.bound() || domain.bound());
  EXPECT_FALSE(pu.reason().empty() || domain.reason().empty());
  const PinPlan plan = plan_pins(topology, 2);
  const ThreadPin planned(plan.threads[0]);
  EXPECT_FALSE(planned.bound());
  EXPECT_TRUE(planned.reason().empty()) << "that nothing is bound stands in the topology's notes already";
  EXPECT_EQ(my_cpus(), before);
}

TEST(Refusal, SystemCallsThatAreForbiddenAreSaidOnceAndDoNotStopTheRun) {
  EXPECT_EQ(in_child([]() -> std::string {
              if (!refuse_placement()) return "cannot install a filter";
              const Topology topology = Topology::detect();
              if (topology.can_bind_threads() || topology.can_bind_memory()) return "did not notice";
              if (!any_contains(topology.warnings(), "threads cannot be bound")) return joined(topology.warnings());
              const ThreadPin pin = ThreadPin::to_pu(topology, topology.pus().front());
              if (pin.bound() || pin.reason().find("not permitted") == std::string::npos)
                return "reason: " + pin.reason();
              Buffer buffer = Buffer::interleaved(std::size_t{3} << 20, topology);
              buffer.as<char>()[5] = 1;
              const PageReport report = where_pages_are(buffer.data(), buffer.size());
              if (report.unknown != buffer.size() || report.reason.empty()) return "pages: " + report.reason;
              return "";
            }),
            "");
}

}  // namespace
}  // namespace orrery::test
