// What `orrery topology` prints: the machine as the engine sees it, and where a run's threads would go.
#pragma once

#include <string>

#include "numa/pinning.h"
#include "numa/topology.h"

namespace orrery {

/// For people: source, domains with cores, memory and caches, distances, the pin plan, warnings and notes.
std::string topology_text(const Topology& topology, const PinPlan& plan);
/// The same as one JSON object, indented, ending in a newline. Keys only get added, never renamed.
std::string topology_json(const Topology& topology, const PinPlan& plan);
/// The machine without a plan and on one line, for "topology" in run.json.
std::string topology_record(const Topology& topology);

}  // namespace orrery
