// PageRank of a directed graph: edge list in, one rank a node out. This file says what can be set; the graph as the
// solvers see it is in pagerank_graph.h, the two methods in pagerank_power.h and pagerank_delta.h, what comes back from
// the files in pagerank_model.h.
#pragma once

#include <memory>

#include "algorithms/algorithm.h"

namespace orrery {

namespace pagerank {

enum class Method { power, delta };
/// What becomes of the rank of nodes without an out-edge.
enum class Dangling { redistribute, drop };

struct PageRankParams {
  double damping = 0.85;
  Dangling dangling = Dangling::redistribute;
  Method method = Method::power;
};

}  // namespace pagerank

/// The algorithm `pagerank` of the registry.
std::unique_ptr<Algorithm> make_pagerank();
/// A model that `pagerank` wrote. @throws Error (data) when files are missing or do not fit together.
std::unique_ptr<Model> open_pagerank(const ModelReader& reader);

}  // namespace orrery
