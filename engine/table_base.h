// A table as the engine handles it, whatever the type of its values: who is home to which rows, what is said to other
// nodes and when (design sections 5 and 7).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/access_learner.h"
#include "engine/access_recorder.h"
#include "engine/clock.h"
#include "engine/message.h"
#include "engine/row_homes.h"
#include "engine/row_stream.h"
#include "engine/table_peers.h"
#include "engine/types.h"
#include "engine/update_rule.h"
#include "engine/wire.h"

namespace orrery {

struct TableSpec {
  std::string name;
  std::uint32_t rows = 0;
  std::uint32_t width = 1;
  std::optional<Clock> staleness = {};  ///< of this table, where it must be fresher than the engine's bound
  UpdateRule rule = {};                 ///< what add() does to a row
};

/// How far behind its clock reads were: counts[k] reads of a worker at clock c saw every update with a timestamp below
/// c - k, and not all of c - k. The last bucket holds all beyond.
struct ObservedStaleness {
  static constexpr std::size_t kBuckets = 65;
  std::array<std::uint64_t, kBuckets> counts{};
  void add(const ObservedStaleness& other) {
    for (std::size_t k = 0; k < kBuckets; ++k) counts[k] += other.counts[k];
  }
};

/// How rows come from their home to the other nodes.
enum class RowDelivery {
  push,  ///< as soon as the home knows more, without being asked
  pull   ///< when what is here has become too old
};

/// The traffic of one table. All calls are the processor's (see engine/DESIGN.md), unless said otherwise; those that
/// may overlap units are said so.
class TableBase {
 public:
  /// `bound`: how far apart clocks may be. At 0 rows are pushed whatever `delivery` says: a reader needs all that is
  /// new.
  TableBase(TableSpec spec, Clock bound, RowDelivery delivery, const WorkerMap& map);
  virtual ~TableBase() = default;
  const TableSpec& spec() const noexcept { return spec_; }
  /// Rows are replaced while units run, because clocks may differ.
  bool versioned() const noexcept { return bound_ > 0; }
  virtual ObservedStaleness observed() const = 0;
  /// What this node's workers accessed, and how the plan served it. While no unit runs.
  virtual AccessCounts accesses() const = 0;
  /// Records what this node's workers access (TableStore::record); and what was recorded so far, by worker. While no
  /// unit runs.
  virtual void record(const RecordedClocks& clocks) = 0;
  virtual std::vector<const AccessRecorder*> recorded() const = 0;
  /// Of a row with all that its rule keeps of it; and of an update to it.
  virtual std::size_t row_bytes() const noexcept = 0;
  virtual std::size_t update_bytes() const noexcept = 0;

  /// Before the first run: workers of this node will read these rows while units run, and may read no others. On
  /// several nodes only they are delivered then. A table for which this is not called is delivered whole.
  void will_read(std::span<const std::uint32_t> rows);

  /// Before the first run, on every node with the same streams, one for each worker of the cluster: rows are at home
  /// where they are accessed most (home_by_use()). Without this call: in ranges. What comes out is the same.
  void place(std::span<const RowStream> streams);
  const RowHomes& homes() const noexcept { return homes_; }

  void connect(Outbox& outbox, std::uint32_t number, Clock start);
  /// The worker has ended its clock: its updates are handed over. On the thread that ended it; overlaps units.
  virtual void worker_ended(WorkerId worker, Clock clock) = 0;
  /// See Program::settle_parts() and settle().
  virtual std::size_t settle_parts(Clock clock) = 0;
  virtual void settle(Clock clock, std::size_t part) = 0;
  /// All workers of this node have ended the clock: other homes get their updates. Overlaps units.
  void node_ended(Clock clock);
  void message_arrived(const Message& message, const ClockTree& clocks);
  /// Makes visible what may be. Overlaps units.
  void clocks_moved(const ClockTree& clocks);
  /// Everybody has ended `clock`. At staleness 0 no unit runs.
  void commit(Clock clock);
  /// Are the rows that units of `clock` may read fresh enough? Asks for them if not.
  bool may_begin(Clock clock);
  /// Is every row here, with all updates below `clock`? Asks for them if not.
  bool may_end(Clock clock);

  /// What workers of this node have learned to access; and following it, before the first run. @return false when it
  /// is of another table or of other workers.
  virtual Bytes save_plan() const = 0;
  virtual bool follow_plan(std::span<const std::byte> bytes) = 0;

  /// Between runs.
  virtual Bytes save() const = 0;
  /// @return false when the bytes are of a table of another shape.
  virtual bool load(std::span<const std::byte> bytes) = 0;

 protected:
  NodeId here() const noexcept { return map_.this_node(); }
  bool is_home_of(std::uint32_t row) const noexcept { return homes_.is_home(here(), row); }
  bool is_alone() const noexcept { return map_.nodes() == 1; }
  /// The row, one of this home's, has another value.
  void row_changed(std::uint32_t row) {
    if (!is_alone()) peers_.changed(row);
  }
  Clock frontier(NodeId home) const noexcept { return frontiers_[home]; }
  /// By row, for views; null: all rows.
  const std::vector<bool>* readable() const noexcept { return is_read_.empty() ? nullptr : &is_read_; }

  /// What this node's workers added in `clock` to the rows of `home`; and its reading there. Overlap units.
  virtual void pack_updates(Clock clock, NodeId home, Bytes& out) = 0;
  virtual void unpack_updates(NodeId from, Clock clock, WireReader& in) = 0;
  virtual void updates_packed(Clock clock) = 0;
  /// Rows of this home as they stand, for `peer`; and its reading there. Overlap units of a versioned table.
  virtual void pack_rows(NodeId peer, bool whole, std::span<const std::uint32_t> rows, Bytes& out) = 0;
  virtual void unpack_rows(NodeId home, bool whole, const ClockTree& clocks, WireReader& in) = 0;
  /// Applies handed-over updates that may be seen. @return below which clock all updates to this home's rows are in.
  virtual Clock apply_visible(const ClockTree& clocks) = 0;
  /// Staleness 0: applies what all workers added in `clock` to this home's rows.
  virtual void apply_settled(Clock clock) = 0;
  /// The first run begins: readable() is settled.
  virtual void connected() = 0;
  /// The rows of `home` hold all updates below `frontier`.
  virtual void frontier_rose(NodeId home, Clock frontier) = 0;

  const TableSpec spec_;
  const Clock bound_;
  const WorkerMap map_;
  RowHomes homes_;  ///< constant from the first run on

 private:
  Message message_of(Message::Kind kind, Clock clock) const;
  void raise_frontier(NodeId home, Clock frontier);
  void tell_peers();
  void send_rows(NodeId peer, bool whole);
  void rows_arrived(const Message& message, const ClockTree& clocks);
  void ask(NodeId home, TablePeers::Pull pull);

  const RowDelivery delivery_;
  TablePeers peers_;
  std::vector<Clock> frontiers_;                        ///< by home
  std::vector<Clock> whole_;                            ///< by home: the frontier of the last whole answer
  std::vector<std::optional<TablePeers::Pull>> asked_;  ///< by home: not answered yet
  std::vector<bool> is_read_;                           ///< by row, from will_read(); empty: all are
  Outbox* outbox_ = nullptr;
  std::uint32_t number_ = 0;
};

}  // namespace orrery
