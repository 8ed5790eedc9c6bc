// Learned access plans (design section 6; the properties of IterStore's order and cache): results are those without a
// plan, whatever the pattern does; planned accesses allocate nothing and hash nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory_resource>
#include <numeric>
#include <vector>

#include "engine/access_slots.h"
#include "engine/executor.h"
#include "engine/reduce.h"
#include "engine/row_order.h"
#include "engine/row_writers.h"
#include "engine/table_store.h"
#include "tests/engine/toy_programs.h"

namespace orrery {
namespace {

/// What a worker touches in a clock: a pattern that moves on every five clocks, grows, shrinks, and has rows that
/// everybody, one worker only, or one worker once touches. Worker 0 touches nothing.
struct MovingPattern {
  static constexpr std::uint32_t kRows = 2000, kWidth = 3;
  static std::vector<std::uint32_t> rows(WorkerId worker, Clock clock) {
    std::vector<std::uint32_t> rows;
    if (worker == 0) return rows;
    const auto phase = static_cast<std::uint32_t>(clock / 5);
    const std::uint32_t count = phase % 3 == 2 ? 5 : 40;
    for (std::uint32_t i = 0; i < count; ++i) rows.push_back(100 + phase * 37 + i);  // shared, moving
    for (std::uint32_t i = 0; i < 20; ++i) rows.push_back(1000 + worker * 20 + i);   // its own
    for (std::uint32_t i = 0; i < 3; ++i)
      rows.push_back(static_cast<std::uint32_t>(toy::mix(worker, static_cast<std::uint64_t>(clock) * 3 + i) % 90));
    if (worker == 1 && clock == 7) rows.push_back(kRows - 1);
    return rows;
  }
  static float delta(WorkerId worker, Clock clock, std::uint32_t row, std::uint32_t d, float seen) {
    const std::uint64_t draw = toy::mix(toy::mix(worker, row), toy::mix(static_cast<std::uint64_t>(clock), d)) >> 40;
    return 0.1F * std::sin(seen + static_cast<float>(draw));
  }
};

enum class By { row, stream, both };

template <class T>
class Moving final : public TableProgram {
 public:
  static constexpr Clock kMostClocks = 30;

  /// `by`: how rows are accessed; both: in the first of two passes along a stream.
  Moving(Engine& engine, const WorkerMap& map, By by = By::row, UpdateRule rule = {})
      : TableProgram(engine, map),
        table(tables().add<T>(
            {.name = "rows", .rows = MovingPattern::kRows, .width = MovingPattern::kWidth, .rule = rule})),
        by_(by),
        rows_(map.workers()),
        first_(map.workers()) {
    for (WorkerId w = 0; w < map.workers(); ++w) {
      for (Clock c = 0; c < kMostClocks; ++c) {
        first_[w].push_back(rows_[w].size());
        for (const std::uint32_t row : MovingPattern::rows(w, c)) rows_[w].push_back(row);
      }
      streams_.push_back(table.stream(w, rows_[w]));
    }
  }
  Evaluation evaluate(Engine&, bool) override { return {}; }
  void run_unit(const WorkUnit& unit, UnitContext& context) override {
    for (int pass = 0; pass < 2; ++pass) {  // the second pass reads its own updates
      const std::vector<std::uint32_t> rows = MovingPattern::rows(unit.worker, unit.clock);
      if (by_ == By::stream || (by_ == By::both && pass == 0)) {
        StreamCursor<T> cursor = table.along(context, streams_[unit.worker]);
        const std::size_t first = first_[unit.worker][static_cast<std::size_t>(unit.clock)];
        for (std::size_t i = 0; i < rows.size(); ++i) {
          change(unit, rows[i], cursor.read(first + i), [&](const auto&... delta) { cursor.add(first + i, delta...); });
        }
      } else {
        for (const std::uint32_t row : rows) {
          change(unit, row, table.read(context, row), [&](const auto&... delta) { table.add(context, row, delta...); });
        }
      }
    }
  }
  Table<T>& table;

 private:
  template <class Add>
  static void change(const WorkUnit& unit, std::uint32_t row, std::span<const T> seen, Add&& add) {
    std::array<T, MovingPattern::kWidth> delta{};
    for (std::uint32_t d = 0; d < delta.size(); ++d) {
      delta[d] = static_cast<T>(
          std::is_integral_v<T> ? 1
                                : MovingPattern::delta(unit.worker, unit.clock, row, d, static_cast<float>(seen[d])));
    }
    if (row % 2 == 0) return add(std::span<const T>(delta));
    for (std::uint32_t d = 0; d < delta.size(); ++d) add(d, delta[d]);
  }

  const By by_;
  std::vector<std::vector<std::uint32_t>> rows_;  ///< by worker, of all clocks
  std::vector<std::vector<std::size_t>> first_;   ///< by worker and clock: place of its first
  std::vector<RowStream> streams_;
};

/// The same under bulk synchronous parallel, one worker after the other.
std::vector<float> move_serially(WorkerId workers, Clock clocks) {
  constexpr std::uint32_t kWidth = MovingPattern::kWidth;
  std::vector<float> x(MovingPattern::kRows * kWidth, 0.0F);
  for (Clock c = 0; c < clocks; ++c) {
    std::vector<std::vector<float>> sums(workers, std::vector<float>(x.size(), 0));
    for (WorkerId w = 0; w < workers; ++w) {
      for (int pass = 0; pass < 2; ++pass) {
        for (const std::uint32_t row : MovingPattern::rows(w, c)) {
          const std::size_t at = std::size_t{row} * kWidth;
          std::array<float, kWidth> delta{};
          for (std::uint32_t d = 0; d < kWidth; ++d) {
            delta[d] = MovingPattern::delta(w, c, row, d, x[at + d] + sums[w][at + d]);
          }
          for (std::uint32_t d = 0; d < kWidth; ++d) sums[w][at + d] += delta[d];
        }
      }
    }
    std::vector<float> of_workers(workers);
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (WorkerId w = 0; w < workers; ++w) of_workers[w] = sums[w][i];
      x[i] += tree_sum(std::span<float>(of_workers));
    }
  }
  return x;
}

struct Layout {
  NodeId nodes;
  const char* topology;
  unsigned threads;
  WorkerId workers;
};

TEST(AccessPlan, changes_no_bit_at_staleness_0_while_the_pattern_moves) {
  constexpr Clock kClocks = 22;
  for (const Layout& shape : {Layout{1, "", 1, 7}, Layout{1, "", 4, 7}, Layout{1, "numa:2 core:2 pu:1", 4, 7},
                              Layout{2, "numa:2 core:1 pu:1", 2, 7}, Layout{4, "", 1, 7}}) {
    const std::vector<float> expected = move_serially(shape.workers, kClocks);
    for (const auto& [plan, by] :
         {std::pair{true, By::row}, {true, By::stream}, {true, By::both}, {false, By::row}, {false, By::stream}}) {
      EngineOptions options = toy::options_with(shape.threads, 0, shape.topology);
      options.plan = plan;
      toy::on_cluster(shape.nodes, options, [&, plan = plan, by = by](NodeId node, Engine& engine) {
        const WorkerMap map(shape.workers, shape.nodes, node, engine.domains());
        Moving<float> program(engine, map, by);
        DataParallelSchedule schedule(std::vector<std::uint32_t>(shape.workers, 1));
        Executor executor(engine, schedule, program, shape.workers, {});
        executor.run(kClocks);
        EXPECT_EQ(program.table.snapshot(), expected) << shape.nodes << " nodes, plan " << plan;
        const AccessCounts counts = program.table.accesses();
        std::uint64_t reads = 0, adds = 0;
        for (WorkerId w = map.first_worker(node); w < map.first_worker(node + 1); ++w) {
          for (Clock c = 0; c < kClocks; ++c) {
            for (const std::uint32_t row : MovingPattern::rows(w, c)) {
              reads += 2;
              adds += row % 2 == 0 ? 2 : 2 * MovingPattern::kWidth;
            }
          }
        }
        EXPECT_EQ(counts.reads, reads);
        EXPECT_EQ(counts.adds, adds);
        EXPECT_EQ(plan && counts.adds > 0, counts.misses > 0) << "the first clock's at least";
        if (plan && shape.nodes == 1) {
          EXPECT_GT(counts.extensions, shape.workers) << "the plan has followed";
        }
      });
    }
  }
}

TEST(AccessPlan, conserves_updates_while_the_pattern_moves_in_every_mode) {
  constexpr Clock kClocks = 22;
  for (const Clock staleness : {0, 1, 3}) {
    for (const Layout& shape : {Layout{1, "", 3, 9}, Layout{1, "numa:4 core:1 pu:1", 4, 9}, Layout{3, "", 2, 9}}) {
      std::vector<std::int64_t> expected(MovingPattern::kRows, 0);
      for (WorkerId w = 0; w < shape.workers; ++w) {
        for (Clock c = 0; c < kClocks; ++c) {
          for (const std::uint32_t row : MovingPattern::rows(w, c)) expected[row] += 2;
        }
      }
      EngineOptions options = toy::options_with(shape.threads, staleness, shape.topology);
      toy::on_cluster(shape.nodes, options, [&](NodeId node, Engine& engine) {
        const WorkerMap map(shape.workers, shape.nodes, node, engine.domains());
        Moving<std::int64_t> program(engine, map, By::both);
        DataParallelSchedule schedule(std::vector<std::uint32_t>(shape.workers, 1));
        Executor executor(engine, schedule, program, shape.workers, {});
        for (const Clock until : {3, 4, 11, 22}) executor.run(until);
        for (std::uint32_t row = 0; row < expected.size(); ++row) ASSERT_EQ(program.table.row(row)[1], expected[row]);
      });
    }
  }
}

// Adaptive rules and rows that are replaced while units run take another path through a stream than plain sums do.
TEST(AccessPlan, streams_read_and_add_what_rows_do_under_adaptive_rules_and_staleness) {
  constexpr Clock kClocks = 22;
  constexpr WorkerId kWorkers = 5;
  for (const Clock staleness : {0, 2}) {
    for (const UpdateRule& rule : {UpdateRule{}, UpdateRule{UpdateRule::Kind::adaptive_revision, 0.5}}) {
      std::vector<std::vector<float>> results;
      for (const By by : {By::row, By::stream, By::both}) {
        // One thread: the order of units does not change, so that results can be compared at any staleness.
        Engine engine(toy::options_with(1, staleness));
        Moving<float> program(engine, WorkerMap(kWorkers, 1, 0, 1), by, rule);
        DataParallelSchedule schedule(std::vector<std::uint32_t>(kWorkers, 1));
        Executor executor(engine, schedule, program, kWorkers, {});
        executor.run(kClocks);
        results.push_back(program.table.snapshot());
      }
      EXPECT_EQ(results[0], results[1]);
      EXPECT_EQ(results[0], results[2]);
    }
  }
}

// How a clock is settled follows from what accesses cost here: linked or walked, in how many parts. All add along the
// same tree.
TEST(AccessPlan, settles_to_the_same_bits_whatever_accesses_cost) {
  constexpr Clock kClocks = 22;
  constexpr WorkerId kWorkers = 7;
  const std::vector<float> expected = move_serially(kWorkers, kClocks);
  // Free looks: all is walked. Looks that cost: few rows are linked. Dear sums: as many parts as there may be.
  for (const double visit : {0.0, 1.0}) {
    for (const double add : {0.0, 1e6}) {
      EngineOptions options = toy::options_with(4, 0, "numa:2 core:2 pu:1");
      options.access_costs = AccessCosts{.lookup = 0, .visit = visit, .walk = 0, .add = add};
      Engine engine(options);
      Moving<float> program(engine, WorkerMap(kWorkers, 1, 0, 2), By::both);
      DataParallelSchedule schedule(std::vector<std::uint32_t>(kWorkers, 1));
      Executor executor(engine, schedule, program, kWorkers, {});
      executor.run(kClocks);
      EXPECT_EQ(program.table.snapshot(), expected) << "a look costs " << visit << ", an addition " << add;
    }
  }
}

/// Worker w counts in column w what it adds to a row; the rows that it touches become more until it touches all but
/// ten; then come clocks of a few, and again of all but ten. So it knows what it must see of its own in every read,
/// whatever others see.
class Spreading final : public TableProgram {
 public:
  static constexpr std::uint32_t kRows = 300;
  static constexpr Clock kClocks = 55;
  static std::uint32_t touched(Clock clock) {
    return clock >= 20 && clock < 40 ? 9 : std::min(kRows - 10, 60 + 20 * static_cast<std::uint32_t>(clock));
  }
  Spreading(Engine& engine, const WorkerMap& map)
      : TableProgram(engine, map),
        table(tables().add<std::int32_t>({.name = "rows", .rows = kRows, .width = map.workers()})),
        own_(map.workers(), std::vector<std::int32_t>(kRows, 0)) {}
  Evaluation evaluate(Engine&, bool) override { return {}; }
  void run_unit(const WorkUnit& unit, UnitContext& context) override {
    std::vector<std::int32_t>& own = own_[unit.worker];
    for (std::uint32_t i = 0; i < touched(unit.clock); ++i) {
      const std::uint32_t row = (i * 7 + unit.worker) % kRows;
      if (table.read(context, row)[unit.worker] != own[row]) lost = true;
      table.add(context, row, unit.worker, 1);
      ++own[row];
      if (table.read(context, row)[unit.worker] != own[row]) lost = true;
    }
  }
  Table<std::int32_t>& table;
  std::atomic<bool> lost{false};

 private:
  std::vector<std::vector<std::int32_t>> own_;
};

// What accesses cost decides whether a worker gets a record of every row, and then slots change under its updates that
// are on their way.
TEST(AccessPlan, costs_decide_how_rows_are_found_and_never_what_is_seen) {
  constexpr WorkerId kWorkers = 5;
  for (const Clock staleness : {0, 1, 3}) {
    std::vector<std::vector<std::int32_t>> results;
    for (const double lookup : {0.0, 1e6}) {
      EngineOptions options = toy::options_with(4, staleness, "numa:2 core:2 pu:1");
      options.access_costs = AccessCosts{.lookup = lookup, .visit = 1, .walk = 1, .add = lookup};
      Engine engine(options);
      Spreading program(engine, WorkerMap(kWorkers, 1, 0, 2));
      DataParallelSchedule schedule(std::vector<std::uint32_t>(kWorkers, 1));
      Executor executor(engine, schedule, program, kWorkers, {});
      executor.run(Spreading::kClocks);
      EXPECT_FALSE(program.lost) << "staleness " << staleness << ", a look-up costs " << lookup;
      EXPECT_EQ(program.table.accesses().replicated, lookup > 0 ? kWorkers : 0);
      results.push_back(program.table.snapshot());
    }
    EXPECT_EQ(results[0], results[1]);
  }
}

/// What one worker sees of a settled table of its own.
struct LoneView {
  LoneView(std::uint32_t rows, std::uint32_t width, std::pmr::memory_resource* memory)
      : engine(toy::options_with(1, 0)),
        spec{.name = "rows", .rows = rows, .width = width},
        rule(spec.rule, width, false),
        cache(rows, width, 1, false, 0, engine.topology()),
        homes(rows, 1),
        view(cache, rule, spec, homes, false, {}, 0, memory) {}
  void end(Clock clock) {
    view.end_settled(clock);
    view.begin_settled();
  }
  const Engine engine;
  const TableSpec spec;
  const RowRule<float> rule;
  const DomainCache<float> cache;
  const RowHomes homes;
  WorkerView<float> view;
};

/// Clocks that add to some rows of one view, in ascending order.
class AddingClocks {
 public:
  AddingClocks(std::uint32_t rows, std::uint32_t width)
      : rows_(rows), delta_(width), lone_(rows, width, std::pmr::get_default_resource()) {
    std::iota(delta_.begin(), delta_.end(), 1.0F);
    run(1, rows, 1);
    lone_.view.follow(lone_.view.learner().extended());
  }
  /// So many clocks, each with `count` rows, added to `times` times; the first of them moves on.
  void run(int clocks, std::uint32_t count, int times) {
    for (int i = 0; i < clocks; ++i) one(static_cast<std::uint32_t>(i) * count % (rows_ - count + 1), count, times);
  }
  bool is_side_by_side() const { return lone_.view.records().is_side_by_side(); }

 private:
  void one(std::uint32_t first, std::uint32_t count, int times) {
    for (std::uint32_t row = first; row < first + count; ++row) {
      for (int t = 0; t < times; ++t) lone_.view.add(clock_, row, delta_);
    }
    const UpdateRecords<float>& records = lone_.view.records();
    const float* before = nullptr;
    for (std::size_t i = 0; i < records.touched().size(); ++i) {
      const float* sum = records.sum(records.touched()[i]);
      EXPECT_EQ(records.plan()->row(records.touched()[i]), first + i);
      EXPECT_EQ(sum, records.sum_at(i));
      for (std::size_t d = 0; d < delta_.size(); ++d) EXPECT_EQ(sum[d], static_cast<float>(times) * delta_[d]);
      if (before != nullptr && is_side_by_side()) {
        EXPECT_EQ(sum, before + delta_.size());
      }
      before = sum;
    }
    lone_.end(clock_++);
  }

  const std::uint32_t rows_;
  std::vector<float> delta_;
  LoneView lone_;
  Clock clock_ = 0;
};

// A clock of few rows had better not touch as many cache lines as the plan has rows. With many workers a record at each
// slot once made iterations of short clocks twice as long as without a plan.
TEST(AccessPlan, values_stand_side_by_side_while_clocks_touch_few_rows) {
  constexpr std::uint32_t kRows = 400;
  AddingClocks clocks(kRows, 3);
  clocks.run(20, kRows, 1);
  EXPECT_FALSE(clocks.is_side_by_side()) << "all rows in every clock";
  clocks.run(20, 20, 1);
  EXPECT_TRUE(clocks.is_side_by_side()) << "a twentieth";
  clocks.run(20, kRows * 3 / 5, 1);
  EXPECT_TRUE(clocks.is_side_by_side()) << "not for a little more than half";
  clocks.run(20, kRows, 1);
  EXPECT_FALSE(clocks.is_side_by_side());
}

TEST(AccessPlan, wide_values_stand_side_by_side_while_a_clock_adds_to_a_row_about_once) {
  constexpr std::uint32_t kRows = 100;
  AddingClocks clocks(kRows, 32);
  clocks.run(20, kRows, 1);
  EXPECT_TRUE(clocks.is_side_by_side()) << "cache lines count";
  clocks.run(20, kRows, 10);
  EXPECT_FALSE(clocks.is_side_by_side()) << "the further load of every access counts";
}

TEST(AccessCosts, are_measured) {
  const AccessCosts& costs = access_costs();
  for (const double cost : {costs.lookup, costs.visit, costs.walk, costs.add}) {
    EXPECT_GT(cost, 0);
    EXPECT_LT(cost, 1e5);
  }
  EXPECT_EQ(&costs, &access_costs()) << "once";
}

/// Counts what is asked of it.
class CountingMemory final : public std::pmr::memory_resource {
 public:
  std::uint64_t allocations = 0;

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    ++allocations;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
};

// Hashing and the growth of lists are in the dynamic path only, which counts what comes to it.
TEST(AccessPlan, planned_accesses_allocate_nothing_and_miss_nothing) {
  constexpr std::uint32_t kRows = 5000, kWidth = 4;
  CountingMemory memory;
  LoneView lone(kRows, kWidth, &memory);
  WorkerView<float>& view = lone.view;
  std::vector<std::uint32_t> rows(3000);
  for (std::uint32_t i = 0; i < rows.size(); ++i) rows[i] = i * 7919 % kRows;
  RowStream stream(rows, &memory);
  const std::array<float, kWidth> delta{1, 2, 3, 4};
  const auto one_clock = [&](Clock clock) {
    for (const std::uint32_t row : rows) {
      view.read(clock, row);
      view.add(clock, row, delta);
      EXPECT_EQ(view.read(clock, row)[3], 4);
      view.add(clock, row, 3, 1.0F);
    }
    StreamCursor<float> cursor(view, clock, stream);
    for (std::uint32_t i = 0; i < rows.size(); ++i) {
      cursor.add(i, delta);
      EXPECT_EQ(cursor.read(i)[3], 9);
    }
  };
  one_clock(0);
  lone.end(0);
  EXPECT_TRUE(view.learner().is_due());
  view.follow(view.learner().extended());
  one_clock(1);  // the stream looks its slots up
  const std::uint64_t before = memory.allocations, misses = view.learner().counts().misses;
  for (Clock clock = 2; clock < 5; ++clock) one_clock(clock);
  EXPECT_EQ(memory.allocations, before);
  EXPECT_EQ(view.learner().counts().misses, misses);
  EXPECT_EQ(view.learner().planned(), 3000U);
}

/// Every clock touches rows that never come back.
class Passing final : public TableProgram {
 public:
  Passing(Engine& engine, const WorkerMap& map)
      : TableProgram(engine, map), table(tables().add<float>({.name = "rows", .rows = 100000, .width = 1})) {}
  Evaluation evaluate(Engine&, bool) override { return {}; }
  void run_unit(const WorkUnit& unit, UnitContext& context) override {
    for (std::uint32_t i = 0; i < 200; ++i)
      table.add(context, static_cast<std::uint32_t>(unit.clock) * 200 + i, 0, 1.0F);
  }
  Table<float>& table;
};

TEST(AccessPlan, a_program_that_never_repeats_is_left_unplanned) {
  for (const Clock staleness : {0, 2}) {
    Engine engine(toy::options_with(1, staleness));
    const WorkerMap map(1, 1, 0, engine.domains());
    Passing program(engine, map);
    DataParallelSchedule schedule({1});
    Executor executor(engine, schedule, program, 1, {});
    executor.run(450);
    const AccessCounts counts = program.table.accesses();
    EXPECT_EQ(counts.given_up, 1U);
    EXPECT_EQ(counts.rows, 0U);
    for (std::uint32_t row = 0; row < 90000; row += 1000) EXPECT_EQ(program.table.row(row)[0], 1);
  }
}

// Rows that are new are worth a plan when they come again: an iteration of many clocks costs few plans, not one for
// every few clocks.
TEST(AccessLearner, plans_an_iteration_of_many_clocks_when_it_comes_again) {
  constexpr std::uint32_t kClocks = 30, kRowsOfClock = 100;
  AccessLearner learner(kClocks * kRowsOfClock, AccessCosts{}, false, std::pmr::get_default_resource());
  std::vector<std::uint64_t> misses, extensions, given_up;
  for (int iteration = 0; iteration < 3; ++iteration) {
    for (std::uint32_t clock = 0; clock < kClocks; ++clock) {
      std::vector<std::uint32_t> missed;
      for (std::uint32_t i = 0; i < kRowsOfClock; ++i) {
        const std::uint32_t row = (clock * kRowsOfClock + i) * 7 % (kClocks * kRowsOfClock);
        const std::uint32_t slot = learner.plan() == nullptr ? AccessSlots::kNone : learner.plan()->find(row);
        learner.count_add(slot);
        if (slot == AccessSlots::kNone) missed.push_back(row);
        ASSERT_TRUE(slot == AccessSlots::kNone || slot == clock * kRowsOfClock + i) << "in the order of first touch";
      }
      learner.note_clock(kRowsOfClock - missed.size(), missed);
      if (learner.is_due()) learner.follow(learner.extended());
    }
    misses.push_back(learner.counts().misses);
    extensions.push_back(learner.counts().extensions);
    given_up.push_back(learner.counts().given_up);
  }
  EXPECT_EQ(misses[0], kClocks * kRowsOfClock) << "nothing came twice";
  EXPECT_EQ(given_up, (std::vector<std::uint64_t>{1, 0, 0})) << "put aside, and taken up again";
  EXPECT_LE(misses[1], misses[0] + kClocks * kRowsOfClock / 3) << "a quarter of it, and a clock";
  EXPECT_EQ(misses[2], misses[1]);
  EXPECT_EQ(extensions, (std::vector<std::uint64_t>{1, 2, 2}));
  EXPECT_EQ(learner.planned(), kClocks * kRowsOfClock);
}

// Clocks of which most rows are new and the others of the clock before: every plan serves for a while, and none may be
// put aside for what was new to those before it.
TEST(AccessLearner, keeps_plans_of_a_pattern_that_moves_on) {
  constexpr std::uint32_t kRowsOfClock = 100, kNewRows = 60, kClocks = 20;
  AccessLearner learner(kNewRows * kClocks + kRowsOfClock, AccessCosts{}, false, std::pmr::get_default_resource());
  for (std::uint32_t clock = 0; clock < kClocks; ++clock) {
    std::vector<std::uint32_t> missed;
    for (std::uint32_t row = clock * kNewRows; row < clock * kNewRows + kRowsOfClock; ++row) {
      const std::uint32_t slot = learner.plan() == nullptr ? AccessSlots::kNone : learner.plan()->find(row);
      learner.count_add(slot);
      if (slot == AccessSlots::kNone) missed.push_back(row);
    }
    learner.note_clock(kRowsOfClock - missed.size(), missed);
    if (learner.is_due()) learner.follow(learner.extended());
    ASSERT_NE(learner.plan(), nullptr) << clock;
    ASSERT_EQ(learner.counts().given_up, 0U) << clock;
  }
}

TEST(AccessSlots, are_whole_when_every_row_came_in_its_order) {
  AccessSlots whole(1000), disordered(3), lacking(1000);
  for (std::uint32_t row = 0; row < 1000; ++row) whole.enter(row);
  for (const std::uint32_t row : {0, 2, 1}) disordered.enter(row);
  for (std::uint32_t row = 0; row < 999; ++row) lacking.enter(row);
  EXPECT_TRUE(whole.is_whole());
  EXPECT_FALSE(disordered.is_whole() || lacking.is_whole());
  EXPECT_EQ(disordered.find(1), 2U);
  EXPECT_EQ(lacking.find(999), AccessSlots::kNone);
  for (const std::uint32_t row : {0, 500, 999}) EXPECT_EQ(whole.find(row), row);
}

TEST(AccessSlots, are_in_the_order_of_first_touch_and_stay) {
  AccessSlots slots(70000);
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < 500; ++i) order.push_back(i * 7919 % 70000);
  for (const std::uint32_t row : order) EXPECT_EQ(slots.find(row), AccessSlots::kNone);
  for (int again = 0; again < 2; ++again) {
    for (const std::uint32_t row : order) slots.enter(row);
  }
  AccessSlots longer(slots, std::pmr::get_default_resource());
  longer.enter(69999);
  ASSERT_EQ(longer.size(), 501U);
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(longer.find(order[i]), i);
    EXPECT_EQ(longer.row(i), order[i]);
  }
  EXPECT_EQ(longer.find(69999), 500U);
}

// Bytes of a message: its values, at most a bit for each row of the list, and a few words; keys once only.
TEST(RowOrder, both_ends_keep_one_list_and_keys_travel_once) {
  constexpr std::uint32_t kFirst = 100, kCount = 4000, kWidth = 3;
  RowOrderWriter writer(kFirst + kCount);
  RowOrderReader reader;
  std::size_t listed = 0;
  std::vector<bool> is_listed(kFirst + kCount, false);
  for (std::uint64_t message = 0; message < 60; ++message) {
    std::vector<std::uint32_t> rows;
    const std::uint64_t share = 1 + message * message % 97;
    for (std::uint32_t row = kFirst; row < kFirst + kCount; ++row) {
      if (message % 7 == 0 ? is_listed[row] : toy::mix(message, row) % share == 0) rows.push_back(row);
    }
    std::reverse(rows.begin(), rows.end());
    std::size_t fresh = 0;
    for (const std::uint32_t row : rows) {
      if (!is_listed[row]) ++fresh;
      is_listed[row] = true;
    }
    listed += fresh;
    std::vector<std::array<float, kWidth>> values;
    for (const std::uint32_t row : rows) values.push_back({static_cast<float>(row), static_cast<float>(message), -1});
    Bytes bytes;
    writer.write<float>(
        rows, kWidth, [&](std::size_t i) { return values[i].data(); }, bytes);
    const std::size_t which = std::min<std::size_t>((listed + 7) / 8, 4 * (rows.size() + 1));
    EXPECT_LE(bytes.size(), 5 + 4 * fresh + which + rows.size() * kWidth * sizeof(float));
    if (rows.size() == listed) {
      EXPECT_EQ(bytes.size(), 5 + 4 * fresh + rows.size() * kWidth * sizeof(float));
    }
    std::vector<std::uint32_t> found;
    WireReader in(bytes);
    reader.read<float>(in, kWidth, [&](std::uint32_t row, const float* sent) {
      found.push_back(row);
      EXPECT_EQ(sent[0], static_cast<float>(row));
      EXPECT_EQ(sent[1], static_cast<float>(message));
    });
    EXPECT_TRUE(in.empty());
    std::sort(found.begin(), found.end());
    std::sort(rows.begin(), rows.end());
    EXPECT_EQ(found, rows);
  }
}

TEST(RowWriters, know_every_writer_and_parts_cover_every_row_once) {
  std::vector<std::shared_ptr<const AccessSlots>> plans(3);
  for (const std::uint32_t view : {0U, 2U}) {
    const auto plan = std::make_shared<AccessSlots>(50);
    for (std::uint32_t row = view; row < 50; row += 3 - view) plan->enter(49 - row);
    plans[view] = plan;
  }
  RowWriters writers;
  writers.build(50, plans);
  for (std::uint32_t row = 0; row < 50; ++row) {
    std::size_t found = 0;
    for (const RowWriters::Writer& writer : writers.of(row)) {
      EXPECT_EQ(plans[writer.view]->find(row), writer.slot);
      ++found;
    }
    EXPECT_EQ(found, (plans[0]->find(row) != AccessSlots::kNone) + (plans[2]->find(row) != AccessSlots::kNone));
  }
  for (const std::size_t parts : {1, 2, 7, 64}) {
    EXPECT_EQ(writers.first_row(0, parts), 0U);
    EXPECT_EQ(writers.first_row(parts, parts), 50U);
    for (std::size_t p = 0; p < parts; ++p) EXPECT_LE(writers.first_row(p, parts), writers.first_row(p + 1, parts));
  }
}

}  // namespace
}  // namespace orrery
