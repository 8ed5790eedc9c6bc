// The tables of one program, and the program that owns them: joins tables with clocks, nodes and checkpoints (design
// section 5).
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/profile_source.h"
#include "engine/program.h"
#include "engine/table.h"
#include "engine/training.h"

namespace orrery {

/// Made with the workers of the run; lives as long as the program. Every node declares the same tables in the same
/// order.
class TableStore {
 public:
  TableStore(const Engine& engine, const WorkerMap& map) : engine_(engine), map_(map) {}

  /// Declares a table of zeros; T is float, double, std::int32_t or std::int64_t. The reference stays valid. Before the
  /// first run. @throws Error (usage) for a table without rows or values, and for a staleness below 0 or above the
  /// engine's.
  template <class T>
  Table<T>& add(TableSpec spec) {
    check(spec);
    const Clock staleness = spec.staleness.value_or(engine_.clock_bound());
    bound_ = std::min(bound(), staleness);
    if constexpr (!std::is_floating_point_v<T>) check_whole_numbers(spec);
    auto table = std::make_unique<Table<T>>(std::move(spec), staleness, delivery(), map_, engine_.topology(),
                                            engine_.options().plan, engine_.access_costs());
    Table<T>& made = *table;
    tables_.push_back(std::move(table));
    return made;
  }

  /// How far apart clocks may be: the engine's bound, or that of the table with the smallest.
  Clock bound() const { return bound_ ? *bound_ : engine_.clock_bound(); }
  /// For a profile: records every access of this node's workers in these clocks; each table and worker gets an equal
  /// part of the memory. Before the first run. @throws Error (usage) for a table with more rows than can be recorded.
  void record(const RecordedClocks& clocks);
  /// In the order in which they were declared.
  std::span<const std::unique_ptr<TableBase>> all() const noexcept { return tables_; }
  /// Over all tables: what reads of this node saw.
  ObservedStaleness observed() const;
  /// What this node's workers accessed, by the name of the table. Between runs.
  std::vector<std::pair<std::string, AccessCounts>> accesses() const;
  /// observed() for other nodes to count in, and its reading there. Between runs.
  Bytes share_observed() const;
  void take_observed(NodeId from, WireReader& in);
  /// What reads of all nodes saw, as numbers of an evaluation: "reads_staleness_K", the reads so far that were K clocks
  /// behind, for every K up to the bound (without one: up to the highest seen). Between runs.
  void report(Evaluation& evaluation) const;

  // What a program passes on to its tables (Program).
  void connect(Outbox& outbox, Clock start);
  void worker_ended(WorkerId worker, Clock clock);
  void node_ended(Clock clock);
  void message_arrived(const Message& message, const ClockTree& clocks);
  void clocks_moved(const ClockTree& clocks);
  std::size_t settle_parts(Clock clock);
  void settle(Clock clock, std::size_t part);
  void commit(Clock clock);
  bool may_begin(Clock clock);
  bool may_end(Clock clock);

  /// See Trainee::save_plans() and follow_plans().
  std::vector<StateSection> save_plans() const;
  void follow_plans(const std::vector<StateSection>& plans);
  /// One section for each table. Between runs.
  std::vector<StateSection> save() const;
  /// @throws Error (data) when a section is missing or of another shape.
  void load(const std::vector<StateSection>& sections);

 private:
  void check(const TableSpec& spec) const;
  static void check_whole_numbers(const TableSpec& spec);
  RowDelivery delivery() const;

  const Engine& engine_;
  const WorkerMap map_;
  std::optional<Clock> bound_;
  std::vector<std::unique_ptr<TableBase>> tables_;
  std::vector<std::size_t> parts_;  ///< of the settlement under way, by table
  std::map<NodeId, ObservedStaleness> observed_of_others_;
};

/// A trainee with tables: passes to them what the engine tells a program. Base is a Trainee.
template <class Base>
class OnTables : public Base, public ShowsTables {
 public:
  Clock clock_bound(Clock) const final { return tables_.bound(); }
  void connect(Outbox& outbox, Clock start) override { tables_.connect(outbox, start); }
  void worker_ended(WorkerId worker, Clock clock) override { tables_.worker_ended(worker, clock); }
  void node_ended(Clock clock) override { tables_.node_ended(clock); }
  void message_arrived(const Message& message, const ClockTree& clocks) override {
    tables_.message_arrived(message, clocks);
  }
  void clocks_moved(const ClockTree& clocks) override { tables_.clocks_moved(clocks); }
  std::size_t settle_parts(Clock clock) override { return tables_.settle_parts(clock); }
  void settle(Clock clock, std::size_t part) override { tables_.settle(clock, part); }
  void commit(Clock clock, std::span<const Bytes>) override { tables_.commit(clock); }
  bool may_begin(Clock clock) override { return tables_.may_begin(clock); }
  bool may_end(Clock clock) override { return tables_.may_end(clock); }
  TableStore& shown_tables() noexcept override { return tables_; }
  /// What reads saw on every node; a Base with a share of its own appends it.
  bool shares_state() const override { return true; }
  std::vector<std::pair<std::string, AccessCounts>> accesses() const override { return tables_.accesses(); }
  std::vector<StateSection> save_plans() const override { return tables_.save_plans(); }
  void follow_plans(const std::vector<StateSection>& plans) override { tables_.follow_plans(plans); }
  Bytes share_state() const override { return tables_.share_observed(); }
  void take_share(NodeId from, std::span<const std::byte> share) override {
    WireReader in(share);
    tables_.take_observed(from, in);
  }

 protected:
  /// `of_base` goes to Base.
  template <class... OfBase>
  OnTables(const Engine& engine, const WorkerMap& map, OfBase&&... of_base)
      : Base(std::forward<OfBase>(of_base)...), tables_(engine, map) {}
  TableStore& tables() noexcept { return tables_; }
  const TableStore& tables() const noexcept { return tables_; }

 private:
  TableStore tables_;
};

/// A program whose state is in tables. What an author writes is run_unit(), and evaluate() of a Trainee.
class TableProgram : public OnTables<Trainee> {
 public:
  TableProgram(const Engine& engine, const WorkerMap& map) : OnTables(engine, map) {}

  /// With the best state so far, if one is kept.
  std::vector<StateSection> save_state() const override;
  void load_state(const std::vector<StateSection>& sections) override;
  void keep_best() override { best_ = tables().save(); }
  void restore_best() override { tables().load(best_); }

 private:
  std::vector<StateSection> best_;
};

}  // namespace orrery
