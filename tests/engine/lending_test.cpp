// Units that run on other nodes: each once, to the bits of a serial run, and worth it when a node is slow.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <numeric>
#include <set>

#include "engine/lending_policy.h"
#include "engine/simulated_cluster.h"
#include "tests/engine/toy_programs.h"

namespace orrery {
namespace {

/// What all nodes did: which units ran, and how often.
struct AuditLog {
  std::mutex mutex;
  std::map<std::pair<Clock, std::uint32_t>, int> ran;
  std::uint64_t lent = 0;
  void note(const WorkUnit& unit) {
    const std::lock_guard lock(mutex);
    ++ran[{unit.clock, unit.index}];
  }
};

/// toy::Weaving whose units may run anywhere: what travels is the state of the worker and of the block.
class LendingWeaver final : public Program {
 public:
  LendingWeaver(WorkerId workers, BlockId blocks, AuditLog& log) : weaving(workers, blocks), log_(log) {}
  void run_unit(const WorkUnit& unit, UnitContext& context) override {
    log_.note(unit);
    weaving.run_unit(unit, context);
  }
  Bytes pack_block(BlockId block, std::uint32_t group) override { return weaving.pack_block(block, group); }
  void unpack_block(BlockId block, std::uint32_t group, std::span<const std::byte> bytes) override {
    weaving.unpack_block(block, group, bytes);
  }
  bool lends() const override { return true; }
  Bytes pack_unit(const WorkUnit& unit, NodeId) override {
    return toy::bytes_of(
        std::vector<std::uint64_t>{weaving.worker_state[unit.worker], weaving.block_state[unit.blocks[0]]});
  }
  Bytes run_guest(const WorkUnit& unit, std::span<const std::byte> packed, UnitContext& context) override {
    log_.note(unit);
    toy::Weaving elsewhere(static_cast<WorkerId>(weaving.worker_state.size()),
                           static_cast<BlockId>(weaving.block_state.size()));
    const auto values = toy::values_of<std::uint64_t>(packed);
    elsewhere.worker_state[unit.worker] = values.at(0);
    elsewhere.block_state[unit.blocks[0]] = values.at(1);
    elsewhere.run_unit(unit, context);
    return toy::bytes_of(
        std::vector<std::uint64_t>{elsewhere.worker_state[unit.worker], elsewhere.block_state[unit.blocks[0]]});
  }
  void take_unit(const WorkUnit& unit, std::span<const std::byte> wrote) override {
    const auto values = toy::values_of<std::uint64_t>(wrote);
    weaving.worker_state[unit.worker] = values.at(0);
    weaving.block_state[unit.blocks[0]] = values.at(1);
  }

  toy::Weaving weaving;

 private:
  AuditLog& log_;
};

constexpr WorkerId kLendingWorkers = 16;
constexpr BlockId kLendingBlocks = 32;
constexpr Clock kLendingClocks = 4;

/// One node's part of a run, held against a serial one.
void weave(Engine& engine, AuditLog& log) {
  RotationSchedule schedule(kLendingWorkers, kLendingBlocks, 3);
  LendingWeaver program(kLendingWorkers, kLendingBlocks, log);
  Executor executor(engine, schedule, program, kLendingWorkers, {});
  executor.run(kLendingClocks / 2);
  executor.run(kLendingClocks);
  RotationSchedule again(kLendingWorkers, kLendingBlocks, 3);
  const toy::Woven expected = toy::weave_serially(again, kLendingWorkers, kLendingClocks);
  const WorkerMap& map = executor.map();
  for (WorkerId w = map.first_worker(map.this_node()); w < map.first_worker(map.this_node() + 1); ++w) {
    EXPECT_EQ(program.weaving.worker_state[w], expected.worker_state[w]);
  }
  const std::lock_guard lock(log.mutex);
  log.lent += executor.stats().units_lent;
}

void expect_each_once(const AuditLog& log) {
  EXPECT_EQ(log.ran.size(), std::size_t{kLendingWorkers} * kLendingBlocks * kLendingClocks);
  for (const auto& [unit, times] : log.ran) EXPECT_EQ(times, 1) << "clock " << unit.first << ", unit " << unit.second;
}

EngineOptions lending_options(unsigned threads, Reassign reassign, Clock staleness = 0) {
  EngineOptions options = toy::options_with(threads, staleness);
  options.reassign = reassign;
  return options;
}

TEST(Lending, runs_every_unit_once_on_real_threads) {
  for (const auto& [nodes, threads] : {std::pair{2U, 2U}, {5U, 1U}}) {
    AuditLog log;
    toy::on_cluster(nodes, lending_options(threads, Reassign::always, 1),
                    [&](NodeId, Engine& engine) { weave(engine, log); });
    expect_each_once(log);
    EXPECT_GT(log.lent, 0U);
  }
}

struct Woven4 {
  VirtualTime seconds = 0;
  std::uint64_t lent = 0, given_back = 0;
};

/// Counts units that went back as they had come.
class GivingBack final : public SimulationObserver {
 public:
  void sent(VirtualTime, NodeId, const Message& message) override {
    count += message.kind == Message::Kind::give_back ? 1 : 0;
  }
  std::uint64_t count = 0;
};

/// On four nodes in virtual time.
Woven4 weave_simulated(const std::string& words, Reassign reassign) {
  GivingBack observer;
  SimulatedCluster cluster(SimulationSpec::parse("nodes:4 " + words), &observer);
  AuditLog log;
  cluster.run([&](NodeId, Transport& transport) {
    Engine engine(lending_options(1, reassign), &transport);
    weave(engine, log);
  });
  expect_each_once(log);
  return {cluster.time(), log.lent, observer.count};
}

TEST(Lending, runs_every_unit_once_whatever_links_and_nodes_do) {
  std::uint64_t lent = 0, given_back = 0;
  for (int seed = 0; seed < 4; ++seed) {
    const std::string words =
        "delay:3ms jitter:30ms spread:0.8 straggler:burst:5x burst:50ms seed:" + std::to_string(seed);
    const Woven4 woven = weave_simulated(words, Reassign::always);
    lent += woven.lent;
    given_back += woven.given_back;
    weave_simulated(words, Reassign::when_it_pays);
  }
  EXPECT_GT(lent, 100U);
  EXPECT_GT(given_back, 0U) << "some were asked back before they were begun";
}

// Four nodes of which one has half the speed do the work of 3.5: ideal is 4 / 3.5 of what four take.
TEST(Lending, makes_up_for_a_slow_node_and_leaves_a_fast_cluster_alone) {
  const std::string links = "delay:200us rate:10Gb compute:10ms";
  const double even = weave_simulated(links, Reassign::off).seconds;
  const Woven4 alone = weave_simulated(links, Reassign::when_it_pays);
  EXPECT_LE(alone.seconds, 1.01 * even);
  EXPECT_EQ(alone.lent, 0U);
  const double ideal = even * 4 / 3.5;
  EXPECT_GT(weave_simulated(links + " straggler:node:2x", Reassign::off).seconds, 1.6 * ideal);
  const Woven4 helped = weave_simulated(links + " straggler:node:2x", Reassign::when_it_pays);
  EXPECT_LE(helped.seconds, 1.15 * ideal);
  EXPECT_GT(helped.lent, 0U);
}

TEST(LendingPolicy, hands_over_only_what_comes_back_sooner) {
  LendingPolicy policy(1, 6, 1, Reassign::when_it_pays);
  EXPECT_EQ(policy.last_of_group(), 4U);
  EXPECT_FALSE(policy.lend(0, 9)) << "nobody offered";
  policy.offered(2, 0, 0.01);
  EXPECT_FALSE(policy.lend(0, 9)) << "not known what a unit takes here";
  policy.unit_ran(0.01);
  EXPECT_FALSE(policy.lend(0, 9)) << "as quick as this node and no further";
  policy.offered(2, 1, 0.01);
  EXPECT_FALSE(policy.lend(0, 0)) << "nothing waits";
  EXPECT_EQ(policy.lend(0, 1), 2U) << "behind the one that runs";
  EXPECT_FALSE(policy.lend(0, 9)) << "the first is a trial";
  policy.came_back(2, 0.5);
  EXPECT_FALSE(policy.lend(0, 9)) << "the link turned out to be slow";
  EXPECT_EQ(policy.lend(0, 60), 2U);
  LendingPolicy slow(0, 2, 4, Reassign::when_it_pays);
  slow.unit_ran(0.02);
  slow.offered(1, 0, 0.01);
  EXPECT_EQ(slow.lend(0, 1), 1U) << "a quicker one in the same clock";
  slow.came_back(1, 0.025);
  EXPECT_FALSE(slow.lend(0, 1)) << "four threads get to it sooner";
  EXPECT_EQ(slow.lend(0, 4), 1U);
  EXPECT_FALSE(LendingPolicy(0, 2, 1, Reassign::off).is_on());
  EXPECT_FALSE(LendingPolicy(4, 5, 1, Reassign::always).is_on()) << "alone in its group";
}

}  // namespace
}  // namespace orrery
