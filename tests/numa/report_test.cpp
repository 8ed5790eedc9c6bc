// `orrery topology`: the JSON says what the topology says, on every machine; texts are readable and never break.
#include "numa/topology_report.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/numa/support.h"

namespace orrery::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

TEST(Report, JsonSaysWhatTheTopologySays) {
  for (const Topology& topology : all_machines()) {
    SCOPED_TRACE(topology.source());
    for (const unsigned threads : {1U, topology.allowed_cores(), topology.allowed_pus() + 1}) {
      const PinPlan plan = plan_pins(topology, threads);
      const Json json = Json::parse(topology_json(topology, plan));
      EXPECT_EQ(json.at("source"), topology.source());
      EXPECT_EQ(json.at("this_system"), topology.is_this_system());
      EXPECT_EQ(json.at("allowed_pus"), topology.allowed_pus());
      EXPECT_EQ(json.at("domains").size(), topology.domains().size());
      EXPECT_EQ(json.at("memory_only").size(), topology.memory_only().size());
      for (const Domain& domain : topology.domains()) {
        const Json& entry = json.at("domains").at(domain.id);
        EXPECT_EQ(entry.at("pus").get<std::vector<unsigned>>(), domain.pus());
        EXPECT_EQ(entry.at("cores").size(), domain.cores.size());
        EXPECT_EQ(entry.at("memory_node"), domain.memory_node);
      }
      EXPECT_EQ(json.at("plan").at("threads"), threads);
      EXPECT_EQ(json.at("plan").at("threads_per_domain").get<std::vector<unsigned>>(), plan.threads_per_domain);
      EXPECT_EQ(json.at("plan").at("places").size(), threads);
      EXPECT_EQ(json.at("warnings").get<std::vector<std::string>>(), topology.warnings());
      EXPECT_EQ(json.at("notes").get<std::vector<std::string>>(), topology.notes());
      const Json record = Json::parse(topology_record(topology));
      EXPECT_EQ(record.at("domains"), json.at("domains"));
      EXPECT_EQ(topology_record(topology).find('\n'), std::string::npos);
    }
  }
}

TEST(Report, TextNamesDomainsPlanAndWarnings) {
  const Topology topology = Topology::xml((topology_folder() / "2-sockets-2-memory-only-hmat.xml").string());
  const std::string text = topology_text(topology, plan_pins(topology, 4));
  EXPECT_THAT(text, HasSubstr("2 NUMA domains, 4 cores, 4 PUs"));
  EXPECT_THAT(text, HasSubstr("domain 1: node 1, package 1, 2 cores, PUs 2-3"));
  EXPECT_THAT(text, HasSubstr("memory only: node 2"));
  EXPECT_THAT(text, HasSubstr("10 21"));
  EXPECT_THAT(text, HasSubstr("plan for 4 threads"));
  EXPECT_THAT(text, HasSubstr("note: "));
  for (const Topology& machine : all_machines()) {
    for (const std::string& note : machine.notes())
      EXPECT_THAT(topology_text(machine, plan_pins(machine, 1)), HasSubstr(note));
  }
}

TEST(Report, NamesWithOddBytesStayValidJson) {
  const TemporaryFolder folder;
  std::ifstream stream(topology_folder() / "2-sockets-2-nodes-smt.xml");
  std::ostringstream whole;
  whole << stream.rdbuf();
  const std::string path = folder.write("odd \"\\\n\xff name.xml", whole.str());
  const Topology topology = Topology::xml(path);
  const Json json = Json::parse(topology_json(topology, plan_pins(topology, 1)));
  EXPECT_THAT(json.at("source").get<std::string>(), HasSubstr("odd \"\\\n"));
}

}  // namespace
}  // namespace orrery::test
