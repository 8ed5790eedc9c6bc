// What every plan must keep, whatever its schedule.
#include "engine/schedule.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace orrery {
namespace {

std::vector<WorkUnit> units_of(const ClockPlan& plan) {
  std::vector<WorkUnit> units;
  for (std::size_t i = 0; i < plan.size(); ++i) units.push_back(plan.unit(i));
  return units;
}

TEST(RotationSchedule, each_worker_meets_each_block_once_a_clock_and_never_two_workers_one_block_in_a_step) {
  for (const auto& [workers, blocks] :
       std::vector<std::pair<WorkerId, BlockId>>{{1, 1}, {1, 5}, {3, 3}, {4, 12}, {16, 32}}) {
    RotationSchedule schedule(workers, blocks, 9);
    for (Clock clock = 0; clock < 5; ++clock) {
      ClockPlan plan;
      schedule.plan(clock, plan);
      ASSERT_EQ(plan.size(), std::size_t{workers} * blocks);
      std::set<std::pair<WorkerId, BlockId>> met;
      std::set<std::pair<std::uint32_t, BlockId>> in_step;
      std::set<std::pair<std::uint32_t, WorkerId>> busy;
      for (const WorkUnit& unit : units_of(plan)) {
        ASSERT_EQ(unit.blocks.size(), 1U);
        EXPECT_TRUE(met.emplace(unit.worker, unit.blocks[0]).second);
        EXPECT_TRUE(in_step.emplace(unit.step, unit.blocks[0]).second);
        EXPECT_TRUE(busy.emplace(unit.step, unit.worker).second);
        EXPECT_EQ(unit.clock, clock);
      }
    }
  }
}

TEST(RotationSchedule, a_block_rests_m_steps_between_two_owners) {
  const WorkerId workers = 4;
  const BlockId blocks = 12, m = blocks / workers;
  RotationSchedule schedule(workers, blocks, 2);
  ClockPlan plan;
  schedule.plan(3, plan);
  std::map<BlockId, std::uint32_t> last_step;
  for (const WorkUnit& unit : units_of(plan)) {
    const auto found = last_step.find(unit.blocks[0]);
    if (found != last_step.end()) {
      EXPECT_EQ(unit.step - found->second, m);
    }
    last_step[unit.blocks[0]] = unit.step;
  }
}

TEST(RotationSchedule, of_a_blocks_passes_in_a_clock_as_many_change_the_node_as_there_are_nodes) {
  const WorkerId workers = 16;
  for (const WorkerId nodes : {2U, 4U, 8U}) {
    RotationSchedule schedule(workers, 2 * workers, 5);
    std::set<std::vector<WorkerId>> rings;
    for (Clock clock = 0; clock < 8; ++clock) {
      ClockPlan plan;
      schedule.plan(clock, plan);
      std::vector<WorkerId> ring;
      std::map<BlockId, std::vector<WorkerId>> nodes_of;
      for (const WorkUnit& unit : units_of(plan)) {
        if (unit.step == 0) ring.push_back(unit.worker);
        nodes_of[unit.blocks[0]].push_back(unit.worker / (workers / nodes));
      }
      rings.insert(ring);
      for (const auto& [block, visited] : nodes_of) {
        WorkerId changes = visited.front() != visited.back() ? 1 : 0;
        for (std::size_t i = 1; i < visited.size(); ++i) changes += visited[i] != visited[i - 1] ? 1 : 0;
        EXPECT_EQ(changes, nodes) << "block " << block << ", clock " << clock;
      }
    }
    EXPECT_GE(rings.size(), 7U) << "the ring is drawn anew";
  }
}

TEST(RotationSchedule, within_a_step_a_node_first_runs_the_worker_whose_block_leaves_it) {
  const WorkerId workers = 8, per_node = 4;
  RotationSchedule schedule(workers, workers, 5);
  ClockPlan plan;
  schedule.plan(1, plan);
  const std::vector<WorkUnit> units = units_of(plan);
  std::map<BlockId, WorkerId> next;  // who has the block in step 1
  for (const WorkUnit& unit : units) {
    if (unit.step == 1) next[unit.blocks[0]] = unit.worker / per_node;
  }
  std::set<WorkerId> begun;
  for (const WorkUnit& unit : units) {
    if (unit.step != 0) break;
    const WorkerId node = unit.worker / per_node;
    EXPECT_EQ(next.at(unit.blocks[0]) != node, begun.insert(node).second);
  }
}

TEST(RotationSchedule, order_is_a_function_of_seed_and_clock) {
  RotationSchedule one(4, 8, 1), again(4, 8, 1), other(4, 8, 2);
  const auto order_of = [](RotationSchedule& schedule, Clock clock) {
    ClockPlan plan;
    schedule.plan(clock, plan);
    std::vector<std::pair<WorkerId, BlockId>> order;
    for (const WorkUnit& unit : units_of(plan)) order.emplace_back(unit.worker, unit.blocks[0]);
    return order;
  };
  again.plan(0, *std::make_unique<ClockPlan>());
  EXPECT_EQ(order_of(one, 5), order_of(again, 5));
  EXPECT_NE(order_of(one, 5), order_of(one, 6));
  EXPECT_NE(order_of(one, 5), order_of(other, 5));
}

TEST(HybridSchedule, groups_rotate_their_own_blocks_among_their_own_workers) {
  HybridSchedule schedule(8, 2, 4, 1);
  ClockPlan plan;
  schedule.plan(0, plan);
  std::set<std::tuple<std::uint32_t, WorkerId, BlockId>> met;
  for (const WorkUnit& unit : units_of(plan)) {
    EXPECT_EQ(unit.group, unit.worker / 4);
    met.emplace(unit.group, unit.worker, unit.blocks[0]);
  }
  EXPECT_EQ(met.size(), 8U * 4U);
}

TEST(ScheduledSchedule, one_bin_for_each_worker_even_when_it_is_empty) {
  ScheduledSchedule schedule(3, [](Clock round, std::span<std::vector<std::uint32_t>> bins) {
    bins[static_cast<std::size_t>(round)].push_back(7);
  });
  ClockPlan plan;
  schedule.plan(1, plan);
  ASSERT_EQ(plan.size(), 3U);
  EXPECT_TRUE(plan.unit(0).items.empty());
  ASSERT_EQ(plan.unit(1).items.size(), 1U);
  EXPECT_EQ(plan.unit(1).items[0], 7U);
}

TEST(DataParallelSchedule, slices_are_units_of_their_worker) {
  DataParallelSchedule schedule({2, 1, 3});
  ClockPlan plan;
  schedule.plan(4, plan);
  std::map<WorkerId, std::uint32_t> count;
  for (const WorkUnit& unit : units_of(plan)) EXPECT_EQ(unit.step, count[unit.worker]++);
  EXPECT_EQ(count, (std::map<WorkerId, std::uint32_t>{{0, 2}, {1, 1}, {2, 3}}));
}

}  // namespace
}  // namespace orrery
