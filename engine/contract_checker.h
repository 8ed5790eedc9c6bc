// Holds a run against the contract of section 5 of the design, from events alone: what was added, what a read returned,
// which clocks ended, which messages went where. It knows nothing of tables, caches or executors, so that no mistake of
// theirs can be a mistake of its own.
//
// The program under test uses rows with a column for each worker, and a worker adds positive numbers to its own column
// only. Then what a read returns says, for every worker, how many of its clocks it holds: the sums of the first k
// clocks are all different, so a lost, doubled or reordered update gives a number that is none of them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/simulated_cluster.h"
#include "engine/types.h"

namespace orrery {

/// What a program under test does and sees, in an order that agrees with cause and effect.
class ContractEvents {
 public:
  virtual ~ContractEvents() = default;
  /// The worker begins its clock.
  virtual void clock_begins(WorkerId worker, Clock clock) = 0;
  /// The worker adds `delta` > 0 to its column of `row`.
  virtual void added(WorkerId worker, Clock clock, std::uint32_t row, std::int64_t delta) = 0;
  /// A read in `clock` returned `values`, one for each worker.
  virtual void read(WorkerId worker, Clock clock, std::uint32_t row, std::span<const std::int64_t> values) = 0;
  virtual void clock_ends(WorkerId worker, Clock clock) = 0;
  /// All clocks have ended and `values` is what is left of `row` on `node`.
  virtual void ended(NodeId node, std::uint32_t row, std::span<const std::int64_t> values) = 0;
};

/// Not thread-safe: for simulated clusters, where one node runs at a time, and for logs of real ones.
class ContractChecker final : public SimulationObserver, public ContractEvents {
 public:
  /// `staleness` empty: no bound (async); then only lost, doubled and forgotten updates are looked for.
  ContractChecker(WorkerId workers, std::uint32_t rows, std::optional<Clock> staleness, std::uint64_t seed);

  void clock_begins(WorkerId worker, Clock clock) override;
  void added(WorkerId worker, Clock clock, std::uint32_t row, std::int64_t delta) override;
  void read(WorkerId worker, Clock clock, std::uint32_t row, std::span<const std::int64_t> values) override;
  void clock_ends(WorkerId worker, Clock clock) override;
  void ended(NodeId node, std::uint32_t row, std::span<const std::int64_t> values) override;

  void sent(VirtualTime time, NodeId to, const Message& message) override;
  void delivered(VirtualTime time, NodeId to, const Message& message) override;
  void unit_ran(VirtualTime begin, VirtualTime end, NodeId node, const WorkUnit& unit) override;

  /// The first broken promise: the rule, who saw what, the seed, and the events that matter to it. Empty while all
  /// promises hold.
  const std::optional<std::string>& broken() const noexcept { return broken_; }
  std::uint64_t reads() const noexcept { return reads_; }

 private:
  /// What a worker has added to a row, as sums: after[k] holds its clocks below k.
  struct Column {
    std::vector<std::int64_t> after{0};
    std::int64_t now = 0;
  };
  struct Event {
    VirtualTime time;
    WorkerId worker;  ///< kNoWorker for messages
    NodeId from, to;
    std::string text;
  };
  static constexpr WorkerId kNoWorker = ~WorkerId{0};

  Column& column(WorkerId worker, std::uint32_t row) { return columns_[std::size_t{worker} * rows_ + row]; }
  void check_own(WorkerId reader, Clock clock, std::uint32_t row, std::int64_t value);
  void check_other(WorkerId reader, Clock clock, std::uint32_t row, WorkerId writer, std::int64_t value);
  void remember(Event event);
  void note(WorkerId worker, std::string text);
  void fail(const std::string& rule, WorkerId reader, WorkerId writer);

  const WorkerId workers_;
  const std::uint32_t rows_;
  const std::optional<Clock> staleness_;
  const std::uint64_t seed_;
  std::vector<Column> columns_;
  std::vector<Clock> finished_;                                   ///< by worker
  std::map<std::pair<WorkerId, std::size_t>, std::size_t> seen_;  ///< (reader, column) → clocks of the last read
  std::deque<Event> events_;                                      ///< the last ones
  VirtualTime now_ = 0;
  std::uint64_t reads_ = 0;
  std::optional<std::string> broken_;
};

}  // namespace orrery
