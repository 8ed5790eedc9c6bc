// Properties of every topology, whatever the machine; what each kind of machine must come out as; and what this process
// sees when its CPU set, its environment or its rights are narrowed.
#include "numa/topology.h"

#include <gmock/gmock.h>
#include <sched.h>

#include <algorithm>
#include <random>
#include <set>
#include <thread>

#include "numa/pinning.h"
#include "tests/numa/support.h"

namespace orrery::test {
namespace {

using testing::HasSubstr;

/// What must hold for every machine.
void expect_sound(const Topology& topology) {
  SCOPED_TRACE(topology.source());
  ASSERT_FALSE(topology.domains().empty());
  std::set<unsigned> seen;
  unsigned cores = 0, id = 0;
  for (const Domain& domain : topology.domains()) {
    EXPECT_EQ(domain.id, id++);
    ASSERT_FALSE(domain.cores.empty());
    cores += static_cast<unsigned>(domain.cores.size());
    const std::vector<unsigned> pus = domain.pus();
    EXPECT_EQ(pus.size(), domain.pu_count());
    EXPECT_TRUE(std::is_sorted(pus.begin(), pus.end()));
    for (const Core& core : domain.cores) {
      ASSERT_FALSE(core.pus.empty());
      for (const unsigned pu : core.pus) {
        EXPECT_TRUE(seen.insert(pu).second) << "PU " << pu << " belongs to two cores";
        EXPECT_EQ(topology.domain_of_pu(pu), static_cast<int>(domain.id));
      }
      if (core.package >= 0) {
        const Package& package = topology.packages().at(static_cast<std::size_t>(core.package));
        EXPECT_THAT(package.domains, testing::Contains(domain.id));
      }
    }
    EXPECT_EQ(domain.package, domain.cores.front().package);
    if (domain.memory_node >= 0) {
      EXPECT_GE(topology.domain_of_node(domain.memory_node), 0);
    }
  }
  EXPECT_EQ(topology.allowed_pus(), seen.size());
  EXPECT_EQ(topology.allowed_cores(), cores);
  EXPECT_EQ(topology.pus(), std::vector<unsigned>(seen.begin(), seen.end()));
  EXPECT_EQ(topology.domain_of_pu(1U << 30), -1);
  EXPECT_EQ(topology.domain_of_node(-1), -1);
  if (!topology.distances().empty()) {
    ASSERT_EQ(topology.distances().size(), topology.domains().size());
    for (std::size_t a = 0; a < topology.distances().size(); ++a) {
      const auto& row = topology.distances()[a];
      ASSERT_EQ(row.size(), topology.domains().size());
      for (const unsigned value : row) EXPECT_GE(value, row[a]) << "own memory is the nearest";
    }
  }
  for (const MemoryNode& node : topology.memory_only()) {
    EXPECT_LT(node.nearest_domain, topology.domains().size());
    for (const Domain& domain : topology.domains()) EXPECT_TRUE(node.os_node < 0 || domain.os_node != node.os_node);
  }
  EXPECT_EQ(std::set<std::string>(topology.warnings().begin(), topology.warnings().end()).size(),
            topology.warnings().size());
  EXPECT_FALSE(topology.description().empty());
}

TEST(Topology, EveryMachineIsSound) {
  for (const Topology& topology : all_machines()) expect_sound(topology);
}

TEST(Topology, SyntheticShapesHaveTheirCounts) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(shape.text);
    const Topology topology = Topology::synthetic(shape.text);
    EXPECT_EQ(topology.domains().size(), shape.domains);
    EXPECT_EQ(topology.packages().size(), shape.packages);
    for (const Domain& domain : topology.domains()) {
      EXPECT_EQ(domain.cores.size(), shape.cores_per_domain);
      EXPECT_EQ(domain.pu_count(), shape.cores_per_domain * shape.pus_per_core);
      EXPECT_EQ(domain.os_node, -1);
      EXPECT_EQ(domain.memory_node, -1);
      EXPECT_GT(domain.memory_bytes, 0U);
    }
    EXPECT_FALSE(topology.is_this_system());
    EXPECT_FALSE(topology.can_bind_threads());
    EXPECT_FALSE(topology.can_bind_memory());
    EXPECT_TRUE(topology.warnings().empty()) << joined(topology.warnings());
    EXPECT_EQ(any_contains(topology.notes(), "one NUMA domain"), shape.domains == 1);
  }
}

TEST(Topology, RandomShapesAreSound) {
  std::mt19937 random(7);
  const auto up_to = [&](unsigned most) { return 1 + static_cast<unsigned>(random() % most); };
  for (int round = 0; round < 100; ++round) {
    const unsigned packages = up_to(4), nodes = up_to(3), caches = up_to(3), cores = up_to(5), pus = up_to(2);
    const Topology topology = Topology::synthetic("pack:" + std::to_string(packages) +
                                                  " numa:" + std::to_string(nodes) + " l3:" + std::to_string(caches) +
                                                  " core:" + std::to_string(cores) + " pu:" + std::to_string(pus));
    expect_sound(topology);
    EXPECT_EQ(topology.domains().size(), packages * nodes);
    EXPECT_EQ(topology.allowed_cores(), packages * nodes * caches * cores);
    EXPECT_EQ(topology.allowed_pus(), packages * nodes * caches * cores * pus);
  }
}

TEST(Topology, CachesAreTheSmallestAndAreSharedOut) {
  const Topology one_each =
      Topology::synthetic("pack:2 numa:1 l3:2(size=8MiB) l2:1(size=1MiB) l1:1(size=32KiB) core:4 pu:1");
  EXPECT_EQ(one_each.caches().l3, 8U << 20);
  EXPECT_EQ(one_each.caches().l2, 1U << 20);
  EXPECT_EQ(one_each.caches().l1d, 32U << 10);
  EXPECT_EQ(one_each.domains()[0].l3_bytes, 16U << 20) << "two caches belong to the node";
  const Topology shared = Topology::synthetic("pack:2 l3:1(size=8MiB) numa:2 core:4 pu:1");
  EXPECT_EQ(shared.domains()[0].l3_bytes, 4U << 20) << "half a cache belongs to the node";
  EXPECT_EQ(Topology::synthetic("numa:2 core:2 pu:1").caches().l3, 0U);
}

TEST(Topology, FilesComeOutAsTheMachinesThatTheyWereTakenFrom) {
  const auto read = [](const char* name) { return Topology::xml((topology_folder() / name).string()); };
  const Topology smt = read("2-sockets-2-nodes-smt.xml");
  EXPECT_EQ(smt.domains().size(), 2U);
  EXPECT_EQ(smt.allowed_cores(), 4U);
  EXPECT_EQ(smt.allowed_pus(), 8U);
  EXPECT_EQ(smt.distances(), (std::vector<std::vector<unsigned>>{{10, 21}, {21, 10}}));
  EXPECT_EQ(smt.domains()[1].memory_node, 1);
  const Topology snc = read("2-sockets-4-nodes-snc.xml");
  EXPECT_EQ(snc.domains().size(), 4U);
  EXPECT_EQ(snc.packages().size(), 2U);
  EXPECT_EQ(snc.packages()[1].domains, (std::vector<unsigned>{2, 3}));
  EXPECT_EQ(snc.domains()[0].l3_bytes * 2, snc.caches().l3);
  const Topology uneven = read("4-sockets-uneven-distances.xml");
  EXPECT_EQ(uneven.distances()[0], (std::vector<unsigned>{10, 16, 22, 22}));
  const Topology uneven_cores = read("2-sockets-uneven-cores.xml");
  EXPECT_EQ(uneven_cores.domains()[0].pu_count(), 4U);
  EXPECT_EQ(uneven_cores.domains()[1].pu_count(), 1U);
}

TEST(Topology, MemoryWithoutProcessorsIsNoDomain) {
  const Topology topology = Topology::xml((topology_folder() / "2-sockets-2-memory-only-hmat.xml").string());
  ASSERT_EQ(topology.domains().size(), 2U);
  EXPECT_EQ(topology.domains()[0].os_node, 0);
  EXPECT_EQ(topology.domains()[1].os_node, 1);
  ASSERT_EQ(topology.memory_only().size(), 2U);
  EXPECT_EQ(topology.memory_only()[0].os_node, 2);
  EXPECT_EQ(topology.memory_only()[0].nearest_domain, 0U);
  EXPECT_EQ(topology.memory_only()[1].os_node, 3);
  EXPECT_EQ(topology.memory_only()[1].nearest_domain, 1U);
}

/// The file of a machine with one thing changed.
Topology changed(const char* file, const std::string& from, const std::string& to) {
  std::ifstream stream(topology_folder() / file);
  std::ostringstream whole;
  whole << stream.rdbuf();
  std::string text = whole.str();
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  text.replace(at, from.size(), to);
  const TemporaryFolder folder;
  return Topology::xml(folder.write("changed.xml", text));
}

TEST(Topology, NodeWithoutMemoryTakesTheNearestOnes) {
  const Topology topology = changed("4-sockets-uneven-distances.xml", R"(gp_index="51" local_memory=")",
                                    R"(gp_index="51" local_memory="0" was=")");
  expect_sound(topology);
  ASSERT_EQ(topology.domains().size(), 4U);
  EXPECT_TRUE(any_contains(topology.warnings(), "has no memory")) << topology.description();
  EXPECT_EQ(topology.domains()[1].memory_node, 0) << "node 0 is at 16, the others at 22";
  for (const unsigned d : {0U, 2U, 3U}) EXPECT_EQ(topology.domains()[d].memory_node, topology.domains()[d].os_node);
}

TEST(Topology, ForbiddenMemoryIsReplacedAndTheDomainStays) {
  const Topology topology =
      changed("2-sockets-2-nodes-smt.xml", R"(allowed_nodeset="0x00000003")", R"(allowed_nodeset="0x00000001")");
  ASSERT_EQ(topology.domains().size(), 2U);
  EXPECT_EQ(topology.domains()[1].os_node, 1);
  EXPECT_EQ(topology.domains()[1].memory_node, 0);
  EXPECT_TRUE(any_contains(topology.warnings(), "may not be used"));
}

TEST(Topology, ForbiddenProcessorsAreLeftOut) {
  const Topology topology =
      changed("2-sockets-2-nodes-smt.xml", R"(allowed_cpuset="0x000000ff")", R"(allowed_cpuset="0x0000002f")");
  expect_sound(topology);
  EXPECT_EQ(topology.pus(), (std::vector<unsigned>{0, 1, 2, 3, 5}));
  EXPECT_EQ(topology.domains()[1].cores.size(), 1U);
  // A node whose processors are all forbidden is no domain, and it is not memory without processors either.
  const Topology half =
      changed("2-sockets-2-nodes-smt.xml", R"(allowed_cpuset="0x000000ff")", R"(allowed_cpuset="0x000000f0")");
  ASSERT_EQ(half.domains().size(), 1U);
  EXPECT_EQ(half.domains()[0].id, 0U);
  EXPECT_EQ(half.domains()[0].os_node, 1);
  EXPECT_TRUE(half.memory_only().empty());
}

TEST(Topology, WhatIsNotUnderstoodIsAnErrorThatSaysWhatIsExpected) {
  for (const char* text :
       {"", "gaga", "numa", "numa:", "numa:0", "numa:2 gaga:3", "core:-1", "numa:2 core:999999999999999999999"}) {
    SCOPED_TRACE(text);
    EXPECT_THROW(Topology::synthetic(text), TopologyError);
  }
  try {
    Topology::synthetic("gaga");
    ADD_FAILURE();
  } catch (const TopologyError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'gaga'"));
    EXPECT_THAT(error.what(), HasSubstr("pack:2 numa:1 core:8 pu:2"));
  }
}

TEST(Topology, HugeDescriptionsAreRefusedBeforeTheyCostAnything) {
  for (const char* text : {"pu:4097", "numa:64 core:64 pu:2", "numa:1000000 core:1000000 pu:1000000", "4 4 4 4 4 4 4",
                           "pack:3(indexes=2*1) core:4000(size=1) pu:1"}) {
    EXPECT_THROW(Topology::synthetic(text), TopologyError) << text;
  }
  EXPECT_EQ(Topology::synthetic("numa:8 core:16 pu:2").allowed_pus(), 256U);
}

TEST(Topology, FilesThatCannotBeReadAreErrors) {
  const TemporaryFolder folder;
  const std::string text = folder.write("text.xml", "this is no topology\n");
  const std::string cut =
      folder.write("cut.xml", "<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n  <object type=\"Mach");
  for (const std::string& path : {folder.path() + "/absent.xml", folder.path(), text, cut}) {
    try {
      Topology::xml(path);
      ADD_FAILURE() << path;
    } catch (const TopologyError& error) {
      EXPECT_THAT(error.what(), HasSubstr(path));
    }
  }
}

TEST(Topology, ThisMachineIsWhatTheProcessMayUse) {
  const Topology topology = Topology::detect();
  EXPECT_EQ(topology.source(), "this machine");
  EXPECT_TRUE(topology.is_this_system());
  EXPECT_EQ(topology.allowed_pus(), allowed_cpu_count());
  EXPECT_GE(topology.domain_of_pu(static_cast<unsigned>(current_cpu())), 0);
}

TEST(Topology, CopiesAreIndependentValues) {
  Topology copy = Topology::synthetic("numa:2 core:2 pu:1");
  const Topology other = copy;
  copy = Topology::synthetic("numa:4 core:1 pu:1");
  EXPECT_EQ(other.domains().size(), 2U);
  EXPECT_EQ(copy.domains().size(), 4U);
}

TEST(Topology, NarrowedProcessSeesItsOwnCpusOnly) {
  EXPECT_EQ(in_child([]() -> std::string {
              const Topology before = Topology::detect();
              const unsigned last = before.pus().back();
              cpu_set_t set;
              CPU_ZERO(&set);
              CPU_SET(last, &set);
              if (sched_setaffinity(0, sizeof set, &set) != 0) return "cannot narrow the mask";
              const Topology topology = Topology::detect();
              if (topology.pus() != std::vector<unsigned>{last}) return "sees other CPUs: " + topology.description();
              if (before.allowed_pus() > 1 && !any_contains(topology.notes(), "CPUs may be used"))
                return "does not say so";
              return topology.warnings() == before.warnings() ? "" : "complains: " + joined(topology.warnings());
            }),
            "");
}

TEST(Topology, BoundThreadDoesNotMakeTheProcessLookSmall) {
  const Topology before = Topology::detect();
  EXPECT_EQ(in_child([&]() -> std::string {
              // Another thread keeps the wide mask.
              int ends[2];
              if (pipe(ends) != 0) return "no pipe";
              std::string complaint;
              std::thread other([&] {
                char byte;
                if (read(ends[0], &byte, 1) != 1) complaint = "pipe broken";
              });
              {
                const ThreadPin pin = ThreadPin::to_pu(before, before.pus().front());
                if (Topology::detect().pus() != before.pus()) complaint = "looks small";
              }
              if (write(ends[1], "x", 1) != 1) complaint = "pipe broken";
              other.join();
              return complaint;
            }),
            "");
}

TEST(Topology, EnvironmentVariablesOfHwlocAreHonouredAndSaid) {
  EXPECT_EQ(in_child([]() -> std::string {
              setenv("HWLOC_SYNTHETIC", "numa:3 core:2 pu:1", 1);
              const Topology topology = Topology::detect();
              if (topology.domains().size() != 3) return "not honoured";
              if (topology.is_this_system() || topology.can_bind_threads()) return "taken for this machine";
              if (topology.domains()[1].memory_node != -1) return "has a memory node";
              return any_contains(topology.warnings(), "HWLOC_SYNTHETIC is set") ? "" : joined(topology.warnings());
            }),
            "");
  EXPECT_EQ(in_child([]() -> std::string {
              setenv("HWLOC_XMLFILE", (topology_folder() / "2-sockets-4-nodes-snc.xml").c_str(), 1);
              const Topology topology = Topology::detect();
              if (topology.domains().size() != 4 || topology.is_this_system()) return topology.description();
              return any_contains(topology.warnings(), "HWLOC_XMLFILE is set") ? "" : joined(topology.warnings());
            }),
            "");
}

TEST(Topology, UnusableEnvironmentVariableLeavesThisMachine) {
  EXPECT_EQ(in_child([]() -> std::string {
              const std::vector<unsigned> cpus = Topology::detect().pus();
              setenv("HWLOC_XMLFILE", "/nonexistent.xml", 1);
              const Topology topology = Topology::detect();
              if (!topology.is_this_system() || topology.pus() != cpus) return topology.description();
              return any_contains(topology.warnings(), "cannot be used") ? "" : joined(topology.warnings());
            }),
            "");
}

TEST(Topology, EnvironmentDoesNotChangeExplicitDescriptions) {
  EXPECT_EQ(in_child([]() -> std::string {
              setenv("HWLOC_SYNTHETIC", "numa:3 core:2 pu:1", 1);
              const Topology topology = Topology::synthetic("numa:2 core:1 pu:1");
              if (!topology.warnings().empty()) return joined(topology.warnings());
              return topology.domains().size() == 2 ? "" : topology.description();
            }),
            "");
}

}  // namespace
}  // namespace orrery::test
