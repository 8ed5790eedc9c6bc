// All four kinds of schedule on clusters of engines in one process: the same answer for any number of nodes.
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "engine/error.h"
#include "tests/engine/toy_programs.h"

namespace orrery {
namespace {

struct ClusterShape {
  NodeId nodes;
  unsigned threads;
  Clock staleness;
};

/// How often a block passes from one node to another in these clocks, by the plan.
std::uint64_t passes_between_nodes(Schedule& schedule, WorkerId workers, NodeId nodes, Clock clocks) {
  const WorkerMap map(workers, nodes, 0, 1);
  std::map<BlockId, NodeId> holder;
  std::uint64_t passes = 0;
  for (Clock clock = 0; clock < clocks; ++clock) {
    ClockPlan plan;
    schedule.plan(clock, plan);
    for (std::size_t i = 0; i < plan.size(); ++i) {
      const NodeId node = map.node_of(plan.unit(i).worker);
      const auto [at, is_first] = holder.emplace(plan.unit(i).blocks[0], node);
      if (!is_first && std::exchange(at->second, node) != node) ++passes;
    }
  }
  return passes;
}

class OnClusters : public testing::TestWithParam<ClusterShape> {};

INSTANTIATE_TEST_SUITE_P(Shapes, OnClusters,
                         testing::Values(ClusterShape{1, 2, 0}, ClusterShape{2, 1, 0}, ClusterShape{3, 2, 0},
                                         ClusterShape{4, 1, 0}, ClusterShape{2, 2, 1}, ClusterShape{4, 2, 3}));

TEST_P(OnClusters, rotation_equals_its_serial_order) {
  const auto [nodes, threads, staleness] = GetParam();
  const WorkerId workers = 12;
  const BlockId blocks = 24;
  const Clock clocks = 10;
  RotationSchedule serial(workers, blocks, 11);
  const toy::Woven expected = toy::weave_serially(serial, workers, clocks);
  std::mutex mutex;
  std::vector<int> holders(blocks, 0);
  std::uint64_t bytes = 0;
  toy::on_cluster(nodes, toy::options_with(threads, staleness), [&](NodeId, Engine& engine) {
    RotationSchedule schedule(workers, blocks, 11);
    toy::Weaving program(workers, blocks);
    Executor executor(engine, schedule, program, workers, {});
    executor.run(3);
    executor.run(clocks);
    const std::lock_guard lock(mutex);
    bytes += executor.stats().bytes_sent;
    const WorkerMap& map = executor.map();
    for (WorkerId w = map.first_worker(map.this_node()); w < map.first_worker(map.this_node() + 1); ++w) {
      EXPECT_EQ(program.worker_state[w], expected.worker_state[w]);
    }
    for (BlockId b = 0; b < blocks; ++b) {
      if (!executor.holds_block(0, b)) continue;
      ++holders[b];
      EXPECT_EQ(program.block_state[b], expected.block_state[b]);
    }
  });
  EXPECT_EQ(holders, std::vector<int>(blocks, 1)) << "every block lies on exactly one node";
  EXPECT_EQ(bytes, sizeof(std::uint64_t) * passes_between_nodes(serial, workers, nodes, clocks))
      << "what the plan says is sent, and nothing else";
}

TEST_P(OnClusters, data_parallel_is_the_same_for_any_number_of_nodes_at_staleness_0) {
  const auto [nodes, threads, staleness] = GetParam();
  const WorkerId workers = 8;
  const Clock clocks = 15;
  std::mutex mutex;
  std::vector<std::uint64_t> ends;
  toy::on_cluster(nodes, toy::options_with(threads, staleness), [&](NodeId node, Engine& engine) {
    DataParallelSchedule schedule(std::vector<std::uint32_t>(workers, 2));
    toy::Summing program(WorkerMap(workers, engine.transport().nodes(), node, engine.domains()), clocks, 2);
    Executor executor(engine, schedule, program, workers, {});
    executor.run(clocks);
    const std::lock_guard lock(mutex);
    EXPECT_LE(program.largest_lag, staleness);
    EXPECT_LE(program.furthest_ahead, 0);
    ends.push_back(program.sums.back());
  });
  EXPECT_EQ(ends, std::vector<std::uint64_t>(nodes, ends.front())) << "replicas agree";
  if (staleness != 0) return;
  std::uint64_t sum = 1;
  for (Clock c = 0; c < clocks; ++c) {
    std::uint64_t next = sum;
    for (WorkerId w = 0; w < workers; ++w) next += toy::mix(sum, toy::mix(w, 0)) + toy::mix(sum, toy::mix(w, 1));
    sum = next;
  }
  EXPECT_EQ(ends.front(), sum);
}

TEST_P(OnClusters, scheduled_rounds_pull_in_unit_order) {
  const auto [nodes, threads, staleness] = GetParam();
  if (staleness != 0) return;  // the toy reads without double buffering: rounds must not overlap
  const WorkerId workers = 6;
  const Clock rounds = 20;
  std::mutex mutex;
  std::vector<std::vector<std::uint64_t>> ends;
  const auto run = [&](NodeId node, Engine& engine) {
    toy::Picking program(WorkerMap(workers, engine.transport().nodes(), node, engine.domains()), 60);
    ScheduledSchedule schedule(workers, [&](Clock round, auto bins) { program.pick(round, bins); });
    Executor executor(engine, schedule, program, workers, {});
    executor.run(rounds);
    const std::lock_guard lock(mutex);
    ends.push_back(program.x);
  };
  toy::on_cluster(1, toy::options_with(1), run);
  toy::on_cluster(nodes, toy::options_with(threads), run);
  for (const auto& end : ends) EXPECT_EQ(end, ends.front());
  EXPECT_NE(ends.front(), std::vector<std::uint64_t>(60, 1));
}

TEST_P(OnClusters, hybrid_groups_see_and_keep_every_update) {
  const auto [nodes, threads, staleness] = GetParam();
  const WorkerId workers = 12;
  // Several groups on a node, several nodes in a group, and nodes that hold workers of two groups.
  for (const std::uint32_t groups : {1U, 2U, 3U, 4U, 12U}) {
    const BlockId blocks = 2 * workers / groups;
    toy::on_cluster(nodes, toy::options_with(threads, staleness), [&](NodeId node, Engine& engine) {
      HybridSchedule schedule(workers, groups, blocks, 4);
      toy::Adding program(WorkerMap(workers, engine.transport().nodes(), node, engine.domains()), groups, blocks,
                          staleness);
      Executor executor(engine, schedule, program, workers, {});
      for (const Clock cut : {3, 4, 8}) {
        executor.run(cut);
        for (BlockId b = 0; b < blocks; ++b) EXPECT_EQ(program.model(b), program.added(cut));
      }
      EXPECT_EQ(program.wrong_views(), 0) << groups << " groups";
    });
  }
}

TEST(Cluster, exchange_gives_everybody_everything_in_node_order) {
  toy::on_cluster(3, toy::options_with(1), [&](NodeId node, Engine& engine) {
    DataParallelSchedule schedule(std::vector<std::uint32_t>(3, 1));
    toy::Summing program(WorkerMap(3, 3, node, engine.domains()), 1, 1);
    Executor executor(engine, schedule, program, 3, {});
    for (std::uint32_t round = 0; round < 20; ++round) {
      const auto all = executor.exchange(toy::bytes_of(std::vector<std::uint32_t>{node, round}));
      ASSERT_EQ(all.size(), 3U);
      for (std::uint32_t n = 0; n < 3; ++n) {
        EXPECT_EQ(toy::values_of<std::uint32_t>(all[n]), (std::vector<std::uint32_t>{n, round}));
      }
    }
  });
}

TEST(Cluster, a_failure_on_one_node_ends_the_run_on_all_and_names_it) {
  std::mutex mutex;
  int told = 0;
  EXPECT_THROW(toy::on_cluster(3, toy::options_with(2),
                               [&](NodeId node, Engine& engine) {
                                 RotationSchedule schedule(6, 6, 1);
                                 toy::Weaving program(6, 6);
                                 program.before_unit = [&](const WorkUnit& unit) {
                                   if (node == 1 && unit.clock == 3) throw std::runtime_error("planted");
                                 };
                                 Executor executor(engine, schedule, program, 6, {});
                                 try {
                                   executor.run(1000);
                                 } catch (const Error& error) {
                                   EXPECT_EQ(error.kind(), ErrorKind::lost);
                                   EXPECT_NE(std::string(error.what()).find("node 1 failed: planted"),
                                             std::string::npos);
                                   const std::lock_guard lock(mutex);
                                   ++told;
                                 }
                               }),
               std::runtime_error);
  EXPECT_EQ(told, 2);
}

}  // namespace
}  // namespace orrery
