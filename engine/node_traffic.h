// For profiles: what a table program would send between nodes, if its workers were dealt to several, counted from what
// one node recorded (design sections 6 and 7). So placement is judged before anybody starts a cluster.
#pragma once

#include <cstdint>

#include "engine/access_report.h"
#include "engine/types.h"

namespace orrery {

struct RowBytes {
  std::size_t update = 0;  ///< of what is added to a row
  std::size_t state = 0;   ///< of a row with what its rule keeps
};

/// Bytes of values in a clock, the mean over the recorded ones: sums to the homes of rows (settled: one for each
/// complete subtree of a node that added; `versioned`: one for each worker that did), and changed rows from there to
/// the nodes that read them. Headers, some 200 bytes for each pair of nodes, come on top.
struct NodeTraffic {
  std::uint64_t by_range = 0;  ///< homes in ranges
  std::uint64_t by_use = 0;    ///< homes by use (home_by_use())
  std::uint64_t least = 0;     ///< every row at its best home, however unbalanced
};
/// `table` has the workers of one node alone. Requires nodes <= workers. Cost: a pass over the records, 8 bytes for
/// each row and node.
NodeTraffic node_traffic(const RecordedTable& table, NodeId nodes, bool versioned, const RowBytes& bytes);

}  // namespace orrery
