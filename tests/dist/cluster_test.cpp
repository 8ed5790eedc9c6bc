// All four kinds of schedule over MPI: the answer of one node, for any number of ranks and threads.
#include <gtest/gtest.h>

#include <stdexcept>

#include "engine/error.h"
#include "tests/dist/mpi_test.h"

namespace orrery {
namespace {

using test::on_mpi;
using test::process;

struct Shape {
  unsigned threads;
  Clock staleness;
};

class OverMpi : public testing::TestWithParam<Shape> {};

INSTANTIATE_TEST_SUITE_P(Shapes, OverMpi, testing::Values(Shape{1, 0}, Shape{2, 0}, Shape{2, 2}));

WorkerMap map_of(WorkerId workers, Engine& engine) {
  return {workers, engine.transport().nodes(), engine.transport().node(), engine.domains()};
}

TEST_P(OverMpi, rotation_equals_its_serial_order) {
  const auto [threads, staleness] = GetParam();
  const WorkerId workers = 12;
  const BlockId blocks = 24;
  const Clock clocks = 10;
  RotationSchedule serial(workers, blocks, 11);
  const toy::Woven expected = toy::weave_serially(serial, workers, clocks);
  std::vector<std::uint32_t> held;
  on_mpi(toy::options_with(threads, staleness), [&](NodeId, Engine& engine) {
    RotationSchedule schedule(workers, blocks, 11);
    toy::Weaving program(workers, blocks);
    Executor executor(engine, schedule, program, workers, {});
    executor.run(3);
    executor.run(clocks);
    const WorkerMap& map = executor.map();
    for (WorkerId w = map.first_worker(map.this_node()); w < map.first_worker(map.this_node() + 1); ++w) {
      EXPECT_EQ(program.worker_state[w], expected.worker_state[w]);
    }
    for (BlockId b = 0; b < blocks; ++b) {
      if (!executor.holds_block(0, b)) continue;
      held.push_back(b);
      EXPECT_EQ(program.block_state[b], expected.block_state[b]);
    }
  });
  std::vector<int> holders(blocks, 0);
  for (const auto& of_rank : test::all_of(held)) {
    for (const BlockId b : of_rank) ++holders[b];
  }
  EXPECT_EQ(holders, std::vector<int>(blocks, 1)) << "every block lies on exactly one node";
}

TEST_P(OverMpi, data_parallel_has_the_sums_of_one_node_at_staleness_0) {
  const auto [threads, staleness] = GetParam();
  const WorkerId workers = 8;
  const Clock clocks = 15;
  std::vector<std::uint64_t> end, alone;
  Clock largest_lag = 0;
  on_mpi(toy::options_with(threads, staleness), [&](NodeId, Engine& engine) {
    DataParallelSchedule schedule(std::vector<std::uint32_t>(workers, 2));
    toy::Summing program(map_of(workers, engine), clocks, 2);
    Executor executor(engine, schedule, program, workers, {});
    executor.run(clocks);
    end = program.sums;
    largest_lag = program.largest_lag;
  });
  EXPECT_LE(largest_lag, staleness);
  for (const auto& of_rank : test::all_of(end)) EXPECT_EQ(of_rank, end);
  if (staleness != 0) return;
  toy::on_cluster(1, toy::options_with(1), [&](NodeId, Engine& engine) {
    DataParallelSchedule schedule(std::vector<std::uint32_t>(workers, 2));
    toy::Summing program(map_of(workers, engine), clocks, 2);
    Executor executor(engine, schedule, program, workers, {});
    executor.run(clocks);
    alone = program.sums;
  });
  EXPECT_EQ(end, alone);
}

TEST_P(OverMpi, scheduled_rounds_pull_in_unit_order) {
  const auto [threads, staleness] = GetParam();
  if (staleness != 0) return;  // the toy reads without double buffering: rounds must not overlap
  const WorkerId workers = 6;
  const Clock rounds = 20;
  std::vector<std::vector<std::uint64_t>> ends;
  const auto run = [&](NodeId, Engine& engine) {
    toy::Picking program(map_of(workers, engine), 60);
    ScheduledSchedule schedule(workers, [&](Clock round, auto bins) { program.pick(round, bins); });
    Executor executor(engine, schedule, program, workers, {});
    executor.run(rounds);
    ends.push_back(program.x);
  };
  on_mpi(toy::options_with(threads), run);
  toy::on_cluster(1, toy::options_with(1), run);
  EXPECT_EQ(ends.front(), ends.back());
  EXPECT_NE(ends.front(), std::vector<std::uint64_t>(60, 1));
}

TEST_P(OverMpi, hybrid_groups_see_and_keep_every_update) {
  const auto [threads, staleness] = GetParam();
  const WorkerId workers = 12;
  for (const std::uint32_t groups : {2U, 3U, 12U}) {
    const BlockId blocks = 2 * workers / groups;
    on_mpi(toy::options_with(threads, staleness), [&](NodeId, Engine& engine) {
      HybridSchedule schedule(workers, groups, blocks, 4);
      toy::Adding program(map_of(workers, engine), groups, blocks, staleness);
      Executor executor(engine, schedule, program, workers, {});
      executor.run(8);
      for (BlockId b = 0; b < blocks; ++b) EXPECT_EQ(program.model(b), program.added(8));
      EXPECT_EQ(program.wrong_views(), 0) << groups << " groups";
    });
  }
}

TEST(OverMpi, a_failure_on_one_rank_ends_the_run_on_all_and_names_it) {
  if (process().ranks() == 1) return;
  bool told = false, failed = false;
  on_mpi(toy::options_with(2), [&](NodeId node, Engine& engine) {
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
      EXPECT_NE(std::string(error.what()).find("node 1 failed: planted"), std::string::npos);
      told = true;
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "planted");
      failed = true;
    }
  });
  EXPECT_EQ(failed, process().rank() == 1);
  EXPECT_EQ(told, process().rank() != 1);
  process().check();  // the job itself goes on
}

}  // namespace
}  // namespace orrery
