// The contract of tables over MPI. Ranks record what workers did and saw, with the machine's one monotonic clock, which
// agrees with cause and effect; afterwards rank 0 reads the logs of all to the checker that judges simulated clusters.
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <tuple>

#include "engine/audited_trainee.h"
#include "engine/contract_checker.h"
#include "engine/wire.h"
#include "tests/dist/mpi_test.h"

namespace orrery {
namespace {

using test::process;

struct Event {
  enum Kind : std::uint64_t { begins, added, read, ends, left } kind = begins;
  std::int64_t nanoseconds = 0;
  std::uint64_t who = 0;  ///< worker or node
  Clock clock = 0;
  std::uint64_t row = 0;
  std::vector<std::int64_t> values;
};

/// A log that can be sent.
class Recorder final : public ContractEvents {
 public:
  void clock_begins(WorkerId worker, Clock clock) override { keep({Event::begins, 0, worker, clock, 0, {}}); }
  void added(WorkerId worker, Clock clock, std::uint32_t row, std::int64_t delta) override {
    keep({Event::added, 0, worker, clock, row, {delta}});
  }
  void read(WorkerId worker, Clock clock, std::uint32_t row, std::span<const std::int64_t> values) override {
    keep({Event::read, 0, worker, clock, row, {values.begin(), values.end()}});
  }
  void clock_ends(WorkerId worker, Clock clock) override { keep({Event::ends, 0, worker, clock, 0, {}}); }
  void ended(NodeId node, std::uint32_t row, std::span<const std::int64_t> values) override {
    keep({Event::left, 0, node, 0, row, {values.begin(), values.end()}});
  }

  Bytes bytes() const {
    Bytes all;
    for (const Event& event : events_) {
      put(all, event.kind);
      put(all, event.nanoseconds);
      put(all, event.who);
      put(all, event.clock);
      put(all, event.row);
      put(all, std::uint64_t{event.values.size()});
      put_all(all, std::span<const std::int64_t>(event.values));
    }
    return all;
  }

 private:
  void keep(Event event) {
    const std::lock_guard lock(mutex_);
    event.nanoseconds = std::chrono::steady_clock::now().time_since_epoch().count();
    events_.push_back(std::move(event));
  }
  std::mutex mutex_;
  std::vector<Event> events_;
};

std::vector<Event> events_of(std::span<const std::byte> bytes) {
  std::vector<Event> events;
  for (WireReader reader(bytes); !reader.empty();) {
    Event event;
    event.kind = reader.take<Event::Kind>();
    event.nanoseconds = reader.take<std::int64_t>();
    event.who = reader.take<std::uint64_t>();
    event.clock = reader.take<Clock>();
    event.row = reader.take<std::uint64_t>();
    event.values.resize(reader.take<std::uint64_t>());
    reader.take_all(std::span(event.values));
    events.push_back(std::move(event));
  }
  return events;
}

void tell(const Event& event, ContractEvents& checker) {
  const auto who = static_cast<std::uint32_t>(event.who);
  const auto row = static_cast<std::uint32_t>(event.row);
  switch (event.kind) {
    case Event::begins:
      return checker.clock_begins(who, event.clock);
    case Event::added:
      return checker.added(who, event.clock, row, event.values.at(0));
    case Event::read:
      return checker.read(who, event.clock, row, event.values);
    case Event::ends:
      return checker.clock_ends(who, event.clock);
    case Event::left:
      return checker.ended(who, row, event.values);
  }
}

/// The logs of all ranks as one, in the order of time.
std::vector<Event> merged_log(const Recorder& mine) {
  std::vector<Event> all;
  for (const Bytes& log : process().exchange(mine.bytes())) {
    for (Event& event : events_of(log)) all.push_back(std::move(event));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Event& a, const Event& b) { return a.nanoseconds < b.nanoseconds; });
  return all;
}

/// Nothing but a table of whole numbers: worker w adds 1 + w to row r in clock c when they fit.
class Counting final : public TableProgram {
 public:
  static constexpr std::uint32_t kRows = 40;
  Counting(const Engine& engine, const WorkerMap& map)
      : TableProgram(engine, map), rows_(tables().add<std::int64_t>({.name = "counts", .rows = kRows, .width = 3})) {}
  static bool fits(WorkerId worker, Clock clock, std::uint32_t row) {
    return (row + worker * 7 + static_cast<std::uint32_t>(clock)) % 5 == 0;
  }
  static std::int64_t total(WorkerId workers, Clock clocks, std::uint32_t row) {
    std::int64_t sum = 0;
    for (WorkerId w = 0; w < workers; ++w) {
      for (Clock c = 0; c < clocks; ++c) sum += fits(w, c, row) ? 1 + w : 0;
    }
    return sum;
  }
  void run_unit(const WorkUnit& unit, UnitContext& context) override {
    for (std::uint32_t row = 0; row < kRows; ++row) {
      if (fits(unit.worker, unit.clock, row)) rows_.add(context, row, row % 3, 1 + std::int64_t{unit.worker});
    }
  }
  Evaluation evaluate(Engine&, bool) override { return {}; }
  const Table<std::int64_t>& rows() const { return rows_; }

 private:
  Table<std::int64_t>& rows_;
};

struct Mode {
  Consistency consistency;
  Clock staleness;
};

class ContractOverMpi : public testing::TestWithParam<std::tuple<Mode, unsigned>> {};

INSTANTIATE_TEST_SUITE_P(Modes, ContractOverMpi,
                         testing::Combine(testing::Values(Mode{Consistency::bsp, 0}, Mode{Consistency::ssp, 1},
                                                          Mode{Consistency::ssp, 3}, Mode{Consistency::essp, 2},
                                                          Mode{Consistency::async, 0}),
                                          testing::Values(1U, 2U)));

TEST_P(ContractOverMpi, holds_and_no_update_is_lost) {
  const auto [mode, threads] = GetParam();
  const WorkerId workers = 8;
  const Clock clocks = 30;
  EngineOptions options;
  options.threads = threads;
  options.consistency = mode.consistency;
  options.staleness = mode.staleness;
  Recorder log;
  test::on_mpi(options, [&](NodeId node, Engine& engine) {
    const WorkerMap map(workers, engine.transport().nodes(), node, engine.domains());
    DataParallelSchedule schedule(std::vector<std::uint32_t>(workers, 1));
    Counting counting(engine, map);
    AuditedTrainee audited(counting, engine, map, log, 5);
    Executor executor(engine, schedule, audited, workers, {});
    executor.run(clocks / 2);
    executor.run(clocks);
    audited.ended();
    for (std::uint32_t row = 0; row < Counting::kRows; ++row) {
      EXPECT_EQ(counting.rows().row(row)[row % 3], Counting::total(workers, clocks, row)) << "row " << row;
    }
  });
  const std::vector<Event> events = merged_log(log);
  const bool bounded = mode.consistency != Consistency::async;
  ContractChecker checker(workers, AuditedTrainee::kRows,
                          bounded ? std::optional<Clock>(mode.staleness) : std::optional<Clock>(), 5);
  for (const Event& event : events) tell(event, checker);
  EXPECT_FALSE(checker.broken()) << *checker.broken();
  EXPECT_EQ(checker.reads(), std::uint64_t{workers} * clocks * (AuditedTrainee::kRows + 1));
}

}  // namespace
}  // namespace orrery
