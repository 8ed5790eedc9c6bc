// The executor on one node: order, bounds, replay, failure, interruption.
#include "engine/executor.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/error.h"
#include "tests/engine/toy_programs.h"

namespace orrery {
namespace {

struct EngineShape {
  unsigned threads;
  const char* topology;
  Clock staleness;
};

class OnEveryShape : public testing::TestWithParam<EngineShape> {};

INSTANTIATE_TEST_SUITE_P(Shapes, OnEveryShape,
                         testing::Values(EngineShape{1, "", 0}, EngineShape{2, "", 0}, EngineShape{3, "", 0},
                                         EngineShape{8, "", 0}, EngineShape{1, "numa:2 core:2 pu:1", 0},
                                         EngineShape{2, "numa:2 core:2 pu:1", 0},
                                         EngineShape{4, "numa:4 core:1 pu:1", 0},
                                         EngineShape{3, "numa:4 core:2 pu:1", 0}, EngineShape{2, "", 1},
                                         EngineShape{8, "", 3}, EngineShape{4, "numa:2 core:2 pu:1", 2}));

TEST_P(OnEveryShape, rotation_equals_its_serial_order) {
  const auto [threads, topology, staleness] = GetParam();
  for (const auto& [workers, blocks] :
       std::vector<std::pair<WorkerId, BlockId>>{{1, 1}, {1, 3}, {4, 4}, {6, 12}, {16, 16}}) {
    RotationSchedule schedule(workers, blocks, 7);
    const toy::Woven expected = toy::weave_serially(schedule, workers, 9);
    Engine engine(toy::options_with(threads, staleness, topology));
    toy::Weaving program(workers, blocks);
    Executor executor(engine, schedule, program, workers, {});
    EXPECT_EQ(executor.run(4), 4);
    EXPECT_EQ(executor.run(9), 9);
    EXPECT_EQ(program.block_state, expected.block_state);
    EXPECT_EQ(program.worker_state, expected.worker_state);
    EXPECT_EQ(program.units.load(), static_cast<int>(9 * workers * blocks));
    EXPECT_LE(executor.stats().staleness_max, staleness);
  }
}

TEST_P(OnEveryShape, data_parallel_slices_see_what_the_bound_promises) {
  const auto [threads, topology, staleness] = GetParam();
  const WorkerId workers = 5;
  const Clock clocks = 12;
  Engine engine(toy::options_with(threads, staleness, topology));
  DataParallelSchedule schedule(std::vector<std::uint32_t>(workers, 3));
  const WorkerMap map(workers, 1, 0, engine.domains());
  toy::Summing program(map, clocks, 3);
  Executor executor(engine, schedule, program, workers, {});
  executor.run(clocks);
  EXPECT_LE(program.largest_lag, staleness);
  EXPECT_LE(program.furthest_ahead, 0);
  if (staleness != 0) return;
  std::uint64_t sum = 1;
  for (Clock c = 0; c < clocks; ++c) {
    std::uint64_t next = sum;
    for (WorkerId w = 0; w < workers; ++w) {
      for (std::uint32_t s = 0; s < 3; ++s) next += toy::mix(sum, toy::mix(w, s));
    }
    sum = next;
  }
  EXPECT_EQ(program.sums.back(), sum);
}

TEST_P(OnEveryShape, a_recorded_order_replays_to_the_same_bits) {
  const auto [threads, topology, staleness] = GetParam();
  RotationSchedule schedule(8, 16, 3);
  Engine engine(toy::options_with(threads, staleness, topology));
  toy::Weaving program(8, 16), again(8, 16);
  std::vector<UnitRecord> trace;
  {
    Executor executor(engine, schedule, program, 8, {.start = 0, .record_trace = true, .should_stop = {}});
    executor.run(5);
    trace = executor.trace();
  }
  EXPECT_EQ(trace.size(), 5U * 8 * 16);
  Executor executor(engine, schedule, again, 8, {});
  executor.replay(5, trace);
  EXPECT_EQ(again.block_state, program.block_state);
  EXPECT_EQ(again.worker_state, program.worker_state);
}

TEST(Executor, replay_refuses_an_order_that_is_none) {
  RotationSchedule schedule(4, 4, 3);
  Engine engine(toy::options_with(2));
  toy::Weaving program(4, 4);
  std::vector<UnitRecord> trace;
  {
    Executor executor(engine, schedule, program, 4, {.start = 0, .record_trace = true, .should_stop = {}});
    executor.run(2);
    trace = executor.trace();
  }
  auto swapped = trace;
  std::swap(swapped.front(), swapped.back());
  auto cut = trace;
  cut.pop_back();
  for (const auto& wrong : {swapped, cut}) {
    toy::Weaving again(4, 4);
    Executor executor(engine, schedule, again, 4, {});
    EXPECT_THROW(executor.replay(2, wrong), Error);
  }
}

TEST(Executor, same_seed_same_order_other_seed_other_result) {
  RotationSchedule one(4, 8, 1), two(4, 8, 2);
  EXPECT_NE(toy::weave_serially(one, 4, 3).block_state, toy::weave_serially(two, 4, 3).block_state);
}

TEST(Executor, the_first_exception_cancels_and_is_rethrown) {
  for (const unsigned threads : {1U, 2U, 8U}) {
    Engine engine(toy::options_with(threads));
    RotationSchedule schedule(16, 16, 1);
    toy::Weaving program(16, 16);
    std::atomic<int> begun{0};
    program.before_unit = [&](const WorkUnit& unit) {
      ++begun;
      if (unit.clock == 2 && unit.step == 3) throw std::runtime_error("planted");
    };
    Executor executor(engine, schedule, program, 16, {});
    EXPECT_THROW(executor.run(100), std::runtime_error);
    EXPECT_LT(begun.load(), 4 * 256);
    EXPECT_THROW(executor.run(101), std::runtime_error) << "a spent executor must say so again";
  }
}

/// Settles in rounds, of so many parts each, and notes what it sees.
class SettlingInRounds final : public Program {
 public:
  explicit SettlingInRounds(std::vector<std::size_t> parts_by_round) : parts_of(std::move(parts_by_round)) {}

  void run_unit(const WorkUnit&, UnitContext&) override { ++units; }
  std::size_t settle_parts(Clock) override {
    if (done.load() != (round == 0 ? 0 : parts_of[round - 1])) ++errors;  // all of the round before, and nothing else
    done = 0;
    return round == parts_of.size() ? 0 : parts_of[round++];
  }
  void settle(Clock, std::size_t part) override {
    if (part >= parts_of[round - 1]) ++errors;
    ++done;
  }
  void commit(Clock, std::span<const Bytes>) override {
    if (round != parts_of.size()) ++errors;
    round = 0;
    ++commits;
  }

  std::vector<std::size_t> parts_of;
  std::size_t round = 0;
  std::atomic<std::size_t> done{0};
  std::atomic<int> errors{0}, units{0}, commits{0};
};

TEST(Executor, a_clock_settles_in_as_many_rounds_of_parts_as_the_program_asks_for) {
  for (const unsigned threads : {1U, 2U, 8U}) {
    for (const std::vector<std::size_t>& parts_of :
         {std::vector<std::size_t>{}, {1}, {7}, {3, 1, 5}, {1, 1, 20, 2, 1}}) {
      Engine engine(toy::options_with(threads));
      DataParallelSchedule schedule(std::vector<std::uint32_t>(3, 1));
      SettlingInRounds program(parts_of);
      Executor executor(engine, schedule, program, 3, {.start = 0, .record_trace = true, .should_stop = {}});
      executor.run(20);
      EXPECT_EQ(program.errors.load(), 0);
      EXPECT_EQ(program.commits.load(), 20);
      SettlingInRounds again(parts_of);
      Executor second(engine, schedule, again, 3, {});
      second.replay(20, executor.trace());
      EXPECT_EQ(again.errors.load(), 0);
      EXPECT_EQ(again.commits.load(), 20);
    }
  }
}

TEST(Executor, a_stop_ends_between_clocks) {
  for (const Clock staleness : {0, 2}) {
    Engine engine(toy::options_with(2, staleness));
    RotationSchedule schedule(4, 8, 1);
    toy::Weaving program(4, 8);
    std::atomic<bool> stop{false};
    program.before_unit = [&](const WorkUnit& unit) { stop = stop || unit.clock == 5; };
    Executor executor(engine, schedule, program, 4,
                      {.start = 0, .record_trace = false, .should_stop = [&] { return stop.load(); }});
    const Clock reached = executor.run(1000);
    EXPECT_GE(reached, 6);
    EXPECT_LE(reached, 6 + staleness);
    EXPECT_EQ(program.units.load(), static_cast<int>(reached) * 32);
    stop = false;
    program.before_unit = nullptr;
    EXPECT_EQ(executor.run(20), 20);
    EXPECT_EQ(program.block_state, toy::weave_serially(schedule, 4, 20).block_state);
  }
}

TEST(Executor, two_engines_work_side_by_side) {
  RotationSchedule schedule(8, 8, 5);
  const toy::Woven expected = toy::weave_serially(schedule, 8, 50);
  std::vector<std::jthread> runs;
  std::atomic<int> right{0};
  for (const unsigned threads : {1U, 2U, 4U}) {
    runs.emplace_back([&, threads] {
      RotationSchedule own(8, 8, 5);
      Engine engine(toy::options_with(threads));
      toy::Weaving program(8, 8);
      Executor executor(engine, own, program, 8, {});
      executor.run(50);
      right += program.block_state == expected.block_state ? 1 : 0;
    });
  }
  runs.clear();
  EXPECT_EQ(right.load(), 3);
}

// Units of an empty machine end at once, and with the last of a clock its frame goes: whoever still looks at a unit
// that it has published reads freed memory, which the sanitizers see. Few workers, so that lanes without work follow
// those with some.
TEST(Executor, nobody_touches_the_frame_of_a_finished_clock) {
  for (const Clock staleness : {0, 2}) {
    for (const WorkerId workers : {1U, 2U, 3U, 5U}) {
      Engine engine(toy::options_with(8, staleness, "numa:4 core:2 pu:1"));
      RotationSchedule schedule(workers, workers, 5);
      toy::Weaving program(workers, workers);
      Executor executor(engine, schedule, program, workers, {});
      EXPECT_EQ(executor.run(400), 400);
      EXPECT_EQ(program.units.load(), static_cast<int>(400 * workers * workers));
    }
  }
}

TEST(Executor, async_has_no_bound_and_loses_nothing) {
  EngineOptions options = toy::options_with(4);
  options.consistency = Consistency::async;
  Engine engine(options);
  const WorkerId workers = 4;
  DataParallelSchedule schedule(std::vector<std::uint32_t>(workers, 1));
  const WorkerMap map(workers, 1, 0, engine.domains());
  toy::Summing program(map, 40, 1);
  Executor executor(engine, schedule, program, workers, {});
  EXPECT_EQ(executor.run(40), 40);
  EXPECT_EQ(program.sums.size(), 41U);
}

TEST(Executor, counts_busy_and_waiting_time) {
  Engine engine(toy::options_with(2));
  RotationSchedule schedule(4, 4, 1);
  toy::Weaving program(4, 4);
  Executor executor(engine, schedule, program, 4, {});
  executor.run(20);
  const ExecutorStats stats = executor.stats();
  EXPECT_EQ(stats.units, 320U);
  EXPECT_GT(stats.busy_seconds, 0);
  EXPECT_GE(stats.thread_seconds, stats.busy_seconds);
  EXPECT_EQ(stats.staleness_max, 0);
}

}  // namespace
}  // namespace orrery
