// The contract of tables on simulated clusters: thousands of message orders, none of which may break a promise; and
// protocols broken on purpose, which the checker must catch. ORRERY_SEEDS sets how many seeds are tried (500).
#include "engine/simulated_cluster.h"

#include <gtest/gtest.h>
#include <hwloc.h>

#include <cstdlib>
#include <cstring>

#include "engine/contract_checker.h"
#include "engine/error.h"
#include "engine/executor.h"
#include "engine/random.h"
#include "engine/table_store.h"
#include "tests/engine/toy_programs.h"

namespace orrery {
namespace {

constexpr std::uint32_t kRows = 4;
constexpr Clock kClocks = 8;

enum class Fault { none, skipped_wait, lost_update, doubled_update, stale_push, forgotten_own_write };

/// One run: a cluster, a consistency, a fault.
struct Scenario {
  SimulationSpec spec;
  WorkerId workers = 1;
  Consistency consistency = Consistency::bsp;
  Clock staleness = 0;
  Fault fault = Fault::none;
};

/// What ContractChecker asks for: rows with a column for each worker, of which a worker adds to its own only.
class Auditing final : public Program {
 public:
  Auditing(const Engine& engine, const WorkerMap& map, const Scenario& scenario, ContractChecker& checker)
      : scenario_(scenario),
        random_(scenario.spec.seed, Purpose::test),
        checker_(checker),
        tables_(engine, map),
        rows_(tables_.add<std::int64_t>({.name = "rows", .rows = kRows, .width = map.workers(), .staleness = {}})) {}

  void run_unit(const WorkUnit& unit, UnitContext& context) override {
    checker_.clock_begins(unit.worker, unit.clock);
    RandomStream draws = random_.stream(unit.clock, unit.worker);
    add_late(context);
    for (int i = 0; i < 3; ++i) read(unit, context, static_cast<std::uint32_t>(draws.below(kRows)));
    for (int i = 0; i < 2; ++i) {
      const auto row = static_cast<std::uint32_t>(draws.below(kRows));
      add(unit, context, row, 1 + static_cast<std::int64_t>(draws.below(100)));
      read(unit, context, row);
    }
  }

  Clock clock_bound(Clock) const override { return tables_.bound() + (scenario_.fault == Fault::skipped_wait ? 2 : 0); }
  void worker_ended(WorkerId worker, Clock clock) override {
    checker_.clock_ends(worker, clock);
    tables_.worker_ended(worker, clock);
  }
  Bytes pack_partial(Clock clock) override {
    Bytes bytes = tables_.pack(clock);
    if (clock == kClocks / 2 && scenario_.fault == Fault::lost_update) scale(bytes, 0);
    if (clock == kClocks / 2 && scenario_.fault == Fault::doubled_update) scale(bytes, 2);
    return bytes;
  }
  void partial_arrived(NodeId from, Clock clock, std::span<const std::byte> bytes) override {
    if (scenario_.fault == Fault::stale_push && clock + 1 < kClocks) {
      // Kept back until three clocks later, when it is too late for everybody.
      late_.push_back({from, clock, Bytes(bytes.begin(), bytes.end())});
      return;
    }
    tables_.unpack(from, clock, bytes);
  }
  void clocks_moved(const ClockTree& clocks) override {
    for (auto at = late_.begin(); at != late_.end();) {
      if (clocks.cluster() < at->clock + scenario_.staleness + 3 && clocks.cluster() + 1 < kClocks) {
        ++at;
        continue;
      }
      tables_.unpack(at->from, at->clock, at->bytes);
      at = late_.erase(at);
    }
    tables_.clocks_moved(clocks);
  }
  void commit(Clock clock, std::span<const Bytes>) override { tables_.commit(clock); }

  const Table<std::int64_t>& rows() const { return rows_; }

 private:
  struct Late {
    NodeId from;
    Clock clock;
    Bytes bytes;
  };
  struct LateWrite {
    WorkerId worker;
    std::uint32_t row;
    std::vector<std::int64_t> delta;
  };

  void read(const WorkUnit& unit, UnitContext& context, std::uint32_t row) {
    checker_.read(unit.worker, unit.clock, row, rows_.read(context, row));
  }
  void add(const WorkUnit& unit, UnitContext& context, std::uint32_t row, std::int64_t value) {
    std::vector<std::int64_t> delta(scenario_.workers, 0);
    delta[unit.worker] = value;
    checker_.added(unit.worker, unit.clock, row, value);
    if (scenario_.fault == Fault::forgotten_own_write && unit.clock == kClocks / 2) {
      late_writes_.push_back({unit.worker, row, delta});
    } else {
      rows_.add(context, row, delta);
    }
  }
  void add_late(const UnitContext& context) {
    std::erase_if(late_writes_, [&](const LateWrite& write) {
      if (write.worker == context.worker) rows_.add(context, write.row, write.delta);
      return write.worker == context.worker;
    });
  }
  /// Multiplies all values in packed batches of the one table.
  void scale(Bytes& bytes, std::int64_t factor) const {
    for (std::size_t at = 0; at < bytes.size();) {
      std::uint64_t rows = 0;
      std::memcpy(&rows, bytes.data() + at, sizeof rows);
      at += sizeof rows + rows * sizeof(std::uint32_t);
      for (std::uint64_t i = 0; i < rows * scenario_.workers; ++i, at += sizeof(std::int64_t)) {
        std::int64_t value = 0;
        std::memcpy(&value, bytes.data() + at, sizeof value);
        value *= factor;
        std::memcpy(bytes.data() + at, &value, sizeof value);
      }
    }
  }

  const Scenario& scenario_;
  const Random random_;
  ContractChecker& checker_;
  TableStore tables_;
  Table<std::int64_t>& rows_;
  std::vector<Late> late_;
  std::vector<LateWrite> late_writes_;
};

struct Outcome {
  std::optional<std::string> broken;
  std::vector<std::int64_t> values;  ///< of node 0
  VirtualTime time = 0;
  std::uint64_t reads = 0, bytes = 0;
};

Outcome play(const Scenario& scenario) {
  std::optional<Clock> bound = scenario.staleness;
  if (scenario.consistency == Consistency::async) bound.reset();
  ContractChecker checker(scenario.workers, kRows, bound, scenario.spec.seed);
  SimulatedCluster cluster(scenario.spec, &checker);
  Outcome outcome;
  std::vector<std::vector<std::int64_t>> left(scenario.spec.nodes);
  cluster.run([&](NodeId node, Transport& transport) {
    EngineOptions options = toy::options_with(1, scenario.staleness, "core:1 pu:1");
    options.consistency = scenario.consistency;
    Engine engine(options, &transport);
    const WorkerMap map(scenario.workers, scenario.spec.nodes, node, engine.domains());
    Auditing program(engine, map, scenario, checker);
    DataParallelSchedule schedule(std::vector<std::uint32_t>(scenario.workers, 1));
    Executor executor(engine, schedule, program, scenario.workers, {});
    executor.run(kClocks);
    left[node] = program.rows().snapshot();
    executor.exchange({});
  });
  for (NodeId node = 0; node < scenario.spec.nodes; ++node) {
    for (std::uint32_t row = 0; row < kRows; ++row) {
      checker.ended(node, row, std::span(left[node]).subspan(std::size_t{row} * scenario.workers, scenario.workers));
    }
  }
  outcome.broken = checker.broken();
  outcome.values = left.front();
  outcome.time = cluster.time();
  outcome.reads = checker.reads();
  outcome.bytes = cluster.bytes_sent();
  return outcome;
}

/// A cluster drawn from the seed: 2 to 64 nodes, mostly few; every mode; links and stragglers of all kinds.
Scenario scenario_of(std::uint64_t seed) {
  RandomStream draws = Random(seed, Purpose::test).stream(0, 0);
  Scenario scenario;
  SimulationSpec& spec = scenario.spec;
  spec.seed = seed;
  spec.nodes = static_cast<NodeId>(2 + draws.below(seed % 50 == 0 ? 63 : seed % 5 == 0 ? 15 : 5));
  spec.delay = 1e-3 * draws.uniform();
  spec.jitter = 50e-3 * draws.uniform();
  spec.bytes_per_second = draws.below(2) == 0 ? 125e6 : 1e5;
  spec.spread = 0.9 * draws.uniform();
  using Straggler = SimulationSpec::Straggler;
  spec.straggler = std::array{Straggler::none, Straggler::slow, Straggler::burst, Straggler::powerlaw}[draws.below(4)];
  spec.factor = 1 + 9 * draws.uniform();
  scenario.workers = spec.nodes + static_cast<WorkerId>(draws.below(2 * spec.nodes));
  scenario.consistency =
      std::array{Consistency::bsp, Consistency::ssp, Consistency::essp, Consistency::async}[draws.below(4)];
  const bool bounded = scenario.consistency == Consistency::ssp || scenario.consistency == Consistency::essp;
  scenario.staleness = bounded ? 1 + static_cast<Clock>(draws.below(5)) : 0;
  return scenario;
}

/// hwloc loads its plugins for the first topology of a process and unloads them after the last: twenty times what a
/// seed costs. While one topology stands they stay.
class HwlocPlugins {
 public:
  HwlocPlugins() { hwloc_topology_init(&topology_); }
  ~HwlocPlugins() { hwloc_topology_destroy(topology_); }
  HwlocPlugins(const HwlocPlugins&) = delete;
  HwlocPlugins& operator=(const HwlocPlugins&) = delete;

 private:
  hwloc_topology_t topology_ = nullptr;
};

std::uint64_t seeds() {
  const char* text = std::getenv("ORRERY_SEEDS");
  return text == nullptr ? 500 : std::strtoull(text, nullptr, 10);
}

TEST(Simulation, no_order_of_messages_breaks_the_contract) {
  const HwlocPlugins loaded;
  std::uint64_t reads = 0;
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    const Outcome outcome = play(scenario_of(seed));
    ASSERT_FALSE(outcome.broken) << *outcome.broken;
    reads += outcome.reads;
  }
  EXPECT_GE(reads, seeds() * 2 * 5 * kClocks);
}

class Broken : public testing::TestWithParam<std::pair<Fault, const char*>> {};

INSTANTIATE_TEST_SUITE_P(Faults, Broken,
                         testing::Values(std::pair{Fault::skipped_wait, "rule 1"},
                                         std::pair{Fault::lost_update, "rule 6"},
                                         std::pair{Fault::doubled_update, "rule 6"},
                                         std::pair{Fault::stale_push, "rule 2"},
                                         std::pair{Fault::forgotten_own_write, "rule 4"}));

TEST_P(Broken, protocol_is_caught_within_100_seeds) {
  const auto [fault, rule] = GetParam();
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Scenario scenario = scenario_of(seed);
    if (scenario.consistency == Consistency::bsp || scenario.consistency == Consistency::async) continue;
    scenario.fault = fault;
    const Outcome outcome = play(scenario);
    if (!outcome.broken) continue;
    EXPECT_NE(outcome.broken->find(rule), std::string::npos) << *outcome.broken;
    EXPECT_NE(outcome.broken->find("seed " + std::to_string(seed)), std::string::npos);
    EXPECT_NE(outcome.broken->find("begins clock"), std::string::npos) << "a trace belongs to it";
    return;
  }
  FAIL() << "100 seeds, and nothing was noticed";
}

TEST(Simulation, the_same_seed_gives_the_same_run) {
  for (const std::uint64_t seed : {3U, 8U, 13U}) {
    const Outcome once = play(scenario_of(seed)), again = play(scenario_of(seed));
    EXPECT_EQ(once.values, again.values);
    EXPECT_EQ(once.time, again.time);
    EXPECT_EQ(once.bytes, again.bytes);
  }
}

// Without stragglers, on a network without delay, a clock takes as long as the units of one node.
TEST(Simulation, virtual_time_is_the_sum_of_what_the_slowest_does) {
  Scenario scenario;
  scenario.spec = SimulationSpec::parse("nodes:4 delay:0s rate:1000GB compute:10ms");
  scenario.workers = 8;
  EXPECT_NEAR(play(scenario).time, kClocks * 2 * 10e-3, 1e-6);
  scenario.spec = SimulationSpec::parse("nodes:4 delay:5ms rate:1000GB compute:10ms");
  EXPECT_NEAR(play(scenario).time, kClocks * (2 * 10e-3 + 5e-3) + 5e-3, 6e-3) << "a barrier costs a delay";
  scenario.spec = SimulationSpec::parse("nodes:4 delay:0s rate:1000GB compute:10ms straggler:slow:3x");
  EXPECT_NEAR(play(scenario).time, kClocks * (1 + 3) * 10e-3, 1e-6) << "worker 0 is slow, its neighbour is not";
}

// One transient straggler at a time: slack hides it, a barrier does not.
TEST(Simulation, staleness_hides_bursts) {
  Scenario scenario;
  scenario.spec = SimulationSpec::parse("nodes:8 delay:0s compute:10ms straggler:burst:4x burst:20ms");
  scenario.workers = 8;
  const VirtualTime barrier = play(scenario).time;
  scenario.consistency = Consistency::ssp;
  scenario.staleness = 3;
  EXPECT_LT(play(scenario).time, 0.8 * barrier);
}

TEST(Simulation, a_lost_node_ends_the_run_with_its_name) {
  for (const bool while_waiting : {false, true}) {
    Scenario scenario;
    scenario.spec = SimulationSpec::parse("nodes:3 delay:1ms compute:10ms lost:1@25ms");
    if (while_waiting) scenario.spec = SimulationSpec::parse("nodes:3 delay:40ms compute:10ms lost:1@30ms");
    scenario.workers = 3;
    try {
      play(scenario);
      FAIL() << "the run went on without node 1";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::lost);
      EXPECT_NE(std::string(error.what()).find("node 1"), std::string::npos) << error.what();
    }
  }
}

TEST(SimulationSpec, words_are_read_or_refused_by_name) {
  const SimulationSpec spec =
      SimulationSpec::parse("nodes:8 delay:1ms jitter:200us rate:1Gb compute:2s straggler:slow:2x lost:3@2s seed:7");
  EXPECT_EQ(spec.nodes, 8U);
  EXPECT_DOUBLE_EQ(spec.delay, 1e-3);
  EXPECT_DOUBLE_EQ(spec.jitter, 2e-4);
  EXPECT_DOUBLE_EQ(spec.bytes_per_second, 125e6);
  EXPECT_EQ(spec.straggler, SimulationSpec::Straggler::slow);
  EXPECT_EQ(spec.lost, 3U);
  for (const char* text : {"", "delay:1ms", "nodes:0", "nodes:2 delay:1", "nodes:2 delay:-1ms", "nodes:2 rate:1",
                           "nodes:2 straggler:often", "nodes:2 straggler:slow:0.5x", "nodes:2 straggler:powerlaw:1",
                           "nodes:2 lost:2@1s", "nodes:2 lost:1", "nodes:2 dealy:1ms", "nodes:2 spread:1", "nodes:x"}) {
    EXPECT_THROW(SimulationSpec::parse(text), Error) << text;
  }
}

}  // namespace
}  // namespace orrery
