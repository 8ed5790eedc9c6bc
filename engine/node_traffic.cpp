#include "engine/node_traffic.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "engine/assert.h"
#include "engine/clock.h"
#include "engine/combining_tree.h"
#include "engine/row_homes.h"

namespace orrery {
namespace {

/// What nodes do to rows, over all recorded clocks.
class NodeUse {
 public:
  NodeUse(const RecordedTable& table, NodeId nodes, bool versioned)
      : nodes_(nodes),
        accesses_(nodes, std::vector<std::uint32_t>(table.rows, 0)),
        sums_(nodes, std::vector<std::uint32_t>(table.rows, 0)),
        changes_(table.rows, 0),
        reads_(nodes, std::vector<bool>(table.rows, false)) {
    const auto workers = static_cast<WorkerId>(table.workers.size());
    const WorkerMap map(workers, nodes, 0, 1);
    const std::vector<std::uint32_t> part = versioned ? each_alone(workers) : subtrees(workers);
    std::vector<LastAdd> last(table.rows);
    for (const Clock clock : clocks_of(table)) {
      for (WorkerId w = 0; w < workers; ++w) note(*table.workers[w], clock, map.node_of(w), part[w], last);
    }
  }

  const std::vector<std::vector<std::uint32_t>>& accesses() const { return accesses_; }
  /// What crosses for a row in all clocks with its home there.
  std::uint64_t bytes(std::uint32_t row, NodeId home, const RowBytes& bytes) const {
    std::uint64_t sums = 0, readers = 0;
    for (NodeId node = 0; node < nodes_; ++node) {
      if (node == home) continue;
      sums += sums_[node][row];
      readers += reads_[node][row] ? 1 : 0;
    }
    return sums * bytes.update + readers * changes_[row] * bytes.state;
  }
  std::size_t clocks() const { return clocks_; }

 private:
  static std::vector<std::uint32_t> each_alone(WorkerId workers) {
    std::vector<std::uint32_t> part(workers);
    for (WorkerId w = 0; w < workers; ++w) part[w] = w;
    return part;
  }
  /// By worker: the first worker of the largest complete subtree on its node.
  std::vector<std::uint32_t> subtrees(WorkerId workers) const {
    std::vector<std::uint32_t> part(workers);
    for (NodeId node = 0; node < nodes_; ++node) {
      const WorkerMap map(workers, nodes_, node, 1);
      const CombiningTree tree(map);
      for (const Subtree at : tree.largest()) {
        const WorkerId first = tree.first_worker(at);
        const auto last = std::min<std::uint64_t>(map.first_worker(node + 1), first + (std::uint64_t{1} << at.level));
        std::fill(part.begin() + first, part.begin() + static_cast<std::ptrdiff_t>(last), first);
      }
    }
    return part;
  }
  std::set<Clock> clocks_of(const RecordedTable& table) {
    std::set<Clock> clocks;
    for (const AccessRecorder* worker : table.workers) {
      for (const AccessRecorder::ClockRecord& clock : worker->clocks()) clocks.insert(clock.clock);
    }
    clocks_ = clocks.size();
    return clocks;
  }
  struct LastAdd {
    Clock clock = -1;
    std::uint32_t part = 0;
  };
  /// Clocks ascend, and within one workers come in order: those of a part one after the other.
  void note(const AccessRecorder& worker, Clock clock, NodeId node, std::uint32_t part, std::vector<LastAdd>& last) {
    const auto clocks = worker.clocks();
    const auto found = std::lower_bound(clocks.begin(), clocks.end(), clock,
                                        [](const auto& one, Clock wanted) { return one.clock < wanted; });
    if (found == clocks.end() || found->clock != clock) return;
    for (std::size_t i = found->first; i < found->first + found->count; ++i) {
      const AccessRecorder::Access access = worker[i];
      ++accesses_[node][access.row];
      if (!access.adds) {
        reads_[node][access.row] = true;
        continue;
      }
      LastAdd& before = last[access.row];
      if (before.clock == clock && before.part == part) continue;
      changes_[access.row] += before.clock != clock ? 1 : 0;
      ++sums_[node][access.row];
      before = {clock, part};
    }
  }

  const NodeId nodes_;
  std::size_t clocks_ = 0;
  std::vector<std::vector<std::uint32_t>> accesses_, sums_;  ///< by node and row
  std::vector<std::uint32_t> changes_;                       ///< by row: clocks in which somebody added
  std::vector<std::vector<bool>> reads_;                     ///< by node and row
};

}  // namespace

NodeTraffic node_traffic(const RecordedTable& table, NodeId nodes, bool versioned, const RowBytes& bytes) {
  ORRERY_CHECK(nodes > 0 && nodes <= table.workers.size());
  const NodeUse use(table, nodes, versioned);
  NodeTraffic traffic;
  if (use.clocks() == 0) return traffic;
  const RowHomes by_range(table.rows, nodes), by_use(home_by_use(use.accesses()), nodes);
  for (std::uint32_t row = 0; row < table.rows; ++row) {
    traffic.by_range += use.bytes(row, by_range.of(row), bytes);
    traffic.by_use += use.bytes(row, by_use.of(row), bytes);
    std::uint64_t least = use.bytes(row, 0, bytes);
    for (NodeId home = 1; home < nodes; ++home) least = std::min(least, use.bytes(row, home, bytes));
    traffic.least += least;
  }
  for (std::uint64_t* sum : {&traffic.by_range, &traffic.by_use, &traffic.least}) *sum /= use.clocks();
  return traffic;
}

}  // namespace orrery
