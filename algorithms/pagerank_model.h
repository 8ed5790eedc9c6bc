// What pagerank leaves on disk: `rank` (float64, one a node), the `nodes` in the same order as texts, and `constants`
// (damping; 1 where dangling mass is redistributed, 0 where it is dropped).
#pragma once

#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/pagerank.h"
#include "algorithms/pagerank_trainee.h"
#include "engine/data/edges.h"
#include "engine/data/id_map.h"

namespace orrery::pagerank {

/// `ranks` by the reader's number of a node.
void write_pagerank_model(ModelWriter& writer, const std::vector<double>& ranks, const IdMap& nodes,
                          const PageRankParams& params);

/// An edge list, with the warnings that belong to it handed to the engine. @throws Error (usage) for another format.
EdgeData read_graph(const std::string& path, const std::string& format, Engine& engine);

class PageRankModel final : public Model {
 public:
  explicit PageRankModel(const ModelReader& reader);

  /// DATA: ids of nodes, separated by white space; out: the rank of each, one a line, to the last bit.
  void predict(const std::string& data, const std::string& format, Engine& engine, std::ostream& out) const override;
  /// The residual of these ranks in the equations of the graph in `data`; nodes that the model lacks have rank 0.
  ValueList evaluate(const std::string& data, const std::string& format, Engine& engine) const override;
  std::vector<Check> verify(const Run& run, Engine& engine) const override;

 private:
  Residual measure(const EdgeData& data, Engine& engine) const;

  std::vector<double> ranks_;
  IdMap nodes_;
  double damping_ = 0;
  Dangling dangling_ = Dangling::redistribute;
};

}  // namespace orrery::pagerank
