// The contract of tables on simulated clusters: thousands of message orders, none of which may break a promise; and
// protocols broken on purpose, which the checker must catch. ORRERY_SEEDS sets how many seeds are tried (500).
#include "engine/simulated_cluster.h"

#include <gtest/gtest.h>
#include <hwloc.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <regex>

#include "engine/contract_checker.h"
#include "engine/error.h"
#include "engine/executor.h"
#include "engine/random.h"
#include "engine/row_order.h"
#include "engine/table_store.h"
#include "tests/engine/toy_programs.h"

namespace orrery {
namespace {

constexpr Clock kClocks = 8;

enum class Fault { none, skipped_wait, lost_update, doubled_update, stale_push, forgotten_own_write };

/// One run: a cluster, a consistency, a fault.
struct Scenario {
  SimulationSpec spec;
  WorkerId workers = 1;
  std::uint32_t rows = 4;
  bool subscribes = false;         ///< a node reads every other row only, and says so …
  bool reads_unannounced = false;  ///< … but then reads another
  Consistency consistency = Consistency::bsp;
  Clock staleness = 0;
  Fault fault = Fault::none;
};

/// Reads along what is sent on one link, to change the values in it.
class ReadingAlong {
 public:
  /// Reads one list of rows with `width` whole numbers each from `in`, the rest of `payload`, and calls change(row,
  /// values) for each with a place to change them.
  template <class Change>
  void read(Bytes& payload, WireReader& in, std::uint32_t width, Change&& change) {
    std::vector<std::uint32_t> rows;
    reader_.read<std::int64_t>(in, width, [&](std::uint32_t row, const std::int64_t*) { rows.push_back(row); });
    std::vector<std::int64_t> values(width);
    const std::size_t bytes = width * sizeof(std::int64_t);
    std::byte* at = payload.data() + (payload.size() - in.bytes_left() - rows.size() * bytes);
    for (const std::uint32_t row : rows) {
      std::memcpy(values.data(), at, bytes);
      change(row, values);
      std::memcpy(at, values.data(), bytes);
      at += bytes;
    }
  }

 private:
  RowOrderReader reader_;
};

/// Lets messages through, but for a fault.
class Tampering final : public Outbox {
 public:
  explicit Tampering(const Scenario& scenario) : scenario_(scenario) {}
  void send(NodeId to, Message message) override {
    if (message.kind == Message::Kind::update) {
      const bool is_hit = message.clock == kClocks / 2;
      if (scenario_.fault == Fault::lost_update) scale_updates(to, message.payload, is_hit ? 0 : 1);
      if (scenario_.fault == Fault::doubled_update) scale_updates(to, message.payload, is_hit ? 2 : 1);
    }
    if (message.kind == Message::Kind::rows && scenario_.fault == Fault::stale_push) keep_back(to, message.payload);
    if (message.kind == Message::Kind::pull) ++requests;
    outbox->send(to, std::move(message));
  }
  Outbox* outbox = nullptr;
  std::uint64_t requests = 0;

 private:
  void scale_updates(NodeId to, Bytes& payload, std::int64_t factor) {
    WireReader in(payload);
    for (std::uint32_t part = 0; !in.empty(); ++part) {
      updates_[{to, part}].read(payload, in, scenario_.workers, [&](std::uint32_t, std::vector<std::int64_t>& values) {
        for (std::int64_t& value : values) value *= factor;
      });
    }
  }
  // The frontier of today with the rows as they were sent before.
  void keep_back(NodeId to, Bytes& payload) {
    WireReader in(payload);
    const auto whole = in.take<std::uint8_t>();
    const WorkerMap map(scenario_.workers, scenario_.spec.nodes, to, 1);
    for (WorkerId w = map.first_worker(to); w < map.first_worker(to + 1); ++w) in.take<Clock>();
    rows_[{to, whole}].read(payload, in, scenario_.workers, [&](std::uint32_t row, std::vector<std::int64_t>& values) {
      std::vector<std::int64_t>& before = sent_[{to, row}];
      before.resize(values.size(), 0);
      std::swap(before, values);
    });
  }

  const Scenario& scenario_;
  std::map<std::pair<NodeId, std::uint32_t>, ReadingAlong> updates_, rows_;
  std::map<std::pair<NodeId, std::uint32_t>, std::vector<std::int64_t>> sent_;
};

/// What ContractChecker asks for: rows with a column for each worker, of which a worker adds to its own only.
class Auditing final : public Program {
 public:
  Auditing(const Engine& engine, const WorkerMap& map, const Scenario& scenario, ContractChecker& checker)
      : scenario_(scenario),
        random_(scenario.spec.seed, Purpose::test),
        checker_(checker),
        tampering_(scenario),
        tables_(engine, map),
        rows_(tables_.add<std::int64_t>({.name = "rows", .rows = scenario.rows, .width = map.workers()})) {
    for (std::uint32_t row = 0; row < scenario.rows; ++row) {
      if (!scenario.subscribes || row % 2 == map.this_node() % 2) readable_.push_back(row);
    }
    if (scenario.subscribes) rows_.will_read(readable_);
  }

  void run_unit(const WorkUnit& unit, UnitContext& context) override {
    checker_.clock_begins(unit.worker, unit.clock);
    RandomStream draws = random_.stream(unit.clock, unit.worker);
    add_late(context);
    const auto readable = [&] { return readable_[draws.below(readable_.size())]; };
    if (scenario_.reads_unannounced) read(unit, context, (readable_.back() + 1) % scenario_.rows);
    for (int i = 0; i < 3; ++i) read(unit, context, readable());
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t row = readable();
      add(unit, context, row, 1 + static_cast<std::int64_t>(draws.below(100)));
      read(unit, context, row);
    }
    add(unit, context, static_cast<std::uint32_t>(draws.below(scenario_.rows)), 1);
  }

  Clock clock_bound(Clock) const override { return tables_.bound() + (scenario_.fault == Fault::skipped_wait ? 2 : 0); }
  void worker_ended(WorkerId worker, Clock clock) override {
    checker_.clock_ends(worker, clock);
    tables_.worker_ended(worker, clock);
  }
  void connect(Outbox& outbox, Clock start) override {
    tampering_.outbox = &outbox;
    tables_.connect(tampering_, start);
  }
  void node_ended(Clock clock) override { tables_.node_ended(clock); }
  void message_arrived(const Message& message, const ClockTree& clocks) override {
    tables_.message_arrived(message, clocks);
  }
  void clocks_moved(const ClockTree& clocks) override { tables_.clocks_moved(clocks); }
  void commit(Clock clock, std::span<const Bytes>) override { tables_.commit(clock); }
  bool may_begin(Clock clock) override { return tables_.may_begin(clock) || scenario_.fault == Fault::skipped_wait; }
  bool may_end(Clock clock) override { return tables_.may_end(clock); }

  const Table<std::int64_t>& rows() const { return rows_; }
  std::uint64_t requests() const { return tampering_.requests; }

 private:
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

  const Scenario& scenario_;
  const Random random_;
  ContractChecker& checker_;
  Tampering tampering_;
  TableStore tables_;
  Table<std::int64_t>& rows_;
  std::vector<std::uint32_t> readable_;
  std::vector<LateWrite> late_writes_;
};

struct Outcome {
  std::optional<std::string> broken;
  std::vector<std::int64_t> values;  ///< of node 0
  VirtualTime time = 0;
  std::uint64_t reads = 0, bytes = 0;
  ObservedStaleness staleness;  ///< of the reads of all nodes
  std::uint64_t requests = 0;   ///< rows that a node asked for
};

Outcome play(const Scenario& scenario) {
  std::optional<Clock> bound = scenario.staleness;
  if (scenario.consistency == Consistency::async) bound.reset();
  ContractChecker checker(scenario.workers, scenario.rows, bound, scenario.spec.seed);
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
    outcome.staleness.add(program.rows().observed());  // one node at a time has the turn
    outcome.requests += program.requests();
    executor.exchange({});
  });
  for (NodeId node = 0; node < scenario.spec.nodes; ++node) {
    for (std::uint32_t row = 0; row < scenario.rows; ++row) {
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
  scenario.rows = std::array{1U, 4U, 11U}[draws.below(3)];
  scenario.subscribes = scenario.rows > 1 && draws.below(2) == 0;
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
                                         std::pair{Fault::lost_update, "rule [46]"},
                                         std::pair{Fault::doubled_update, "rule [46]"},
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
    EXPECT_TRUE(std::regex_search(*outcome.broken, std::regex(rule))) << *outcome.broken;
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
  EXPECT_NEAR(play(scenario).time, kClocks * (2 * 10e-3 + 2 * 5e-3) + 3 * 5e-3, 1e-6)
      << "a clock costs a delay to the homes of rows and one back; beginning, end and exchange cost one each";
  scenario.spec = SimulationSpec::parse("nodes:4 delay:0s rate:1000GB compute:10ms straggler:slow:3x");
  EXPECT_NEAR(play(scenario).time, kClocks * (1 + 3) * 10e-3, 1e-6) << "worker 0 is slow, its neighbour is not";
}

// Without being asked, rows come sooner: over many clusters reads see fresher values (on one, a node that need not wait
// for an answer may run further ahead), and nobody asks.
TEST(Simulation, eager_reads_are_fresher_and_send_no_requests) {
  ObservedStaleness with_push, with_pull;
  const auto mean = [](const ObservedStaleness& seen) {
    double sum = 0, reads = 0;
    for (std::size_t k = 0; k < ObservedStaleness::kBuckets; ++k) {
      sum += static_cast<double>(k * seen.counts[k]);
      reads += static_cast<double>(seen.counts[k]);
    }
    return sum / reads;
  };
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Scenario scenario = scenario_of(seed);
    scenario.subscribes = false;
    scenario.staleness = 4;
    scenario.consistency = Consistency::ssp;
    const Outcome pulled = play(scenario);
    scenario.consistency = Consistency::essp;
    const Outcome pushed = play(scenario);
    with_push.add(pushed.staleness);
    with_pull.add(pulled.staleness);
    EXPECT_EQ(pushed.requests, 0U);
    EXPECT_GT(pulled.requests, 0U);
  }
  EXPECT_LT(mean(with_push), 0.9 * mean(with_pull));
}

TEST(Simulation, a_read_that_was_not_announced_is_refused) {
  Scenario scenario;
  scenario.spec = SimulationSpec::parse("nodes:2");
  scenario.workers = 2;
  scenario.subscribes = true;
  scenario.reads_unannounced = true;
  try {
    play(scenario);
    FAIL() << "the read of a row that is not delivered went through";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("not among those that its node said it will read"), std::string::npos)
        << error.what();
  }
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
