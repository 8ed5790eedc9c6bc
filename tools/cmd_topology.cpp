// `orrery topology`: what the engine sees of this or another machine, and where it would put threads and memory.
#include <optional>
#include <string>

#include "engine/error.h"
#include "engine/params.h"
#include "numa/pinning.h"
#include "numa/topology.h"
#include "numa/topology_report.h"
#include "tools/commands.h"
#include "tools/output.h"
#include "tools/toml.h"

namespace orrery::tools {

namespace {

Topology read_topology(const std::string& synthetic, const std::string& xml) {
  if (!synthetic.empty() && !xml.empty()) throw usage_error("--synthetic and --xml exclude each other");
  if (!xml.empty()) {
    static_cast<void>(read_text_file(xml));  // says why a file cannot be read, which hwloc does not
    try {
      return Topology::xml(xml);
    } catch (const TopologyError& error) {
      throw data_error(xml, error.what());
    }
  }
  try {
    return synthetic.empty() ? Topology::detect() : Topology::synthetic(synthetic);
  } catch (const TopologyError& error) {
    if (synthetic.empty()) throw;
    throw usage_error(std::string{"--synthetic: "} + error.what());
  }
}

}  // namespace

int topology_command(Words words) {
  std::string synthetic;
  std::string xml;
  std::optional<int> threads;
  bool json = false;
  ParamSet options;
  options.add("synthetic", synthetic, "a machine that need not exist, such as \"numa:2 core:4 pu:1\"")
      .add("xml", xml, "a machine saved by lstopo FILE.xml")
      .add("threads", threads, "whose places are shown; auto: one for each core", between(1, 4096))
      .add("json", json, "as JSON");
  Arguments arguments("topology", "Shows NUMA domains, cores, caches, and where a run's threads would go.");
  if (!arguments.options(options).parse(words)) return kDone;
  const Topology topology = read_topology(synthetic, xml);
  const PinPlan plan = plan_pins(topology, threads ? static_cast<unsigned>(*threads) : topology.allowed_cores());
  print(json ? topology_json(topology, plan) : topology_text(topology, plan));
  return kDone;
}

}  // namespace orrery::tools
