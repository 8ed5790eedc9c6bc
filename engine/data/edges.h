// Graphs as edge lists in the spelling of SNAP: `source target` a line, `#` comments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/format.h"
#include "engine/data/id_map.h"
#include "engine/data/parallel_for.h"

namespace orrery {

struct Edge {
  std::uint32_t source;
  std::uint32_t target;
  bool operator==(const Edge&) const = default;
};

/// Directed edges in the order of the file, with nodes numbered by ascending id. Only nodes that occur are nodes.
struct EdgeData {
  std::vector<Edge> edges;
  IdMap nodes;
  std::uint64_t self_loops = 0;
  std::uint64_t checksum = 0;  ///< of ids and edges
  Recognised recognised;
  std::vector<std::string> warnings;
};

/// Reads an edge list: two integer ids below 2^64 a line, blanks between. Parsed in parallel; the result does not
/// depend on it. Throws data_error with the place for the first line that is something else, and for a file without
/// edges.
EdgeData read_edges(const std::string& path, const ReadOptions& options = {});

/// How many edges repeat an earlier one. Sorts a copy: 8 bytes an edge for its duration.
std::uint64_t count_repeated_edges(const std::vector<Edge>& edges);

}  // namespace orrery
