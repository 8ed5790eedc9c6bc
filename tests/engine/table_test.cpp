// The contract of tables (design section 5; the properties 1 to 8 of stale synchronous parallel) with workers held up
// at random, on threads, domains and nodes.
#include "engine/table.h"

#include <gtest/gtest.h>

#include <barrier>
#include <cmath>

#include "engine/error.h"
#include "engine/executor.h"
#include "engine/reduce.h"
#include "engine/table_store.h"
#include "tests/engine/toy_programs.h"

namespace orrery {
namespace {

struct Shape {
  NodeId nodes;
  const char* topology;
  unsigned threads;
  WorkerId workers;
  Consistency consistency;
  Clock staleness;
};

void PrintTo(const Shape& shape, std::ostream* out) {
  *out << shape.nodes << " nodes, " << shape.topology << ", " << shape.threads << " threads, " << shape.workers
       << " workers, " << to_string(shape.consistency) << " " << shape.staleness;
}

EngineOptions options_of(const Shape& shape) {
  EngineOptions options = toy::options_with(shape.threads, shape.staleness, shape.topology);
  options.consistency = shape.consistency;
  return options;
}

/// Holds a worker up by a random number of steps, so that others overtake it.
void dawdle(const WorkUnit& unit) {
  const std::uint64_t steps = toy::mix(toy::mix(unit.worker, 77), static_cast<std::uint64_t>(unit.clock)) % 40;
  for (std::uint64_t i = 0; i < steps; ++i) std::this_thread::yield();
}

class ToyTables : public TableProgram {
 public:
  using TableProgram::TableProgram;
  Evaluation evaluate(Engine&, bool) override { return {}; }
  const TableStore& store() const { return tables(); }
};

/// Worker w adds 1 to cell w in every clock, so a cell says how many of its owner's clocks a reader sees.
class Counting final : public ToyTables {
 public:
  Counting(Engine& engine, const WorkerMap& map, std::optional<Clock> staleness = {})
      : ToyTables(engine, map),
        workers_(map.workers()),
        cells_(tables().add<std::int64_t>({.name = "cells", .rows = workers_, .width = 2, .staleness = staleness})) {}

  void run_unit(const WorkUnit& unit, UnitContext& context) override {
    dawdle(unit);
    for (WorkerId q = 0; q < workers_; ++q) {
      const std::span<const std::int64_t> cell = cells_.read(context, q);
      const std::int64_t ahead = cell[0] - unit.clock;
      if (q == unit.worker && ahead != 0) own_is_wrong = true;
      note(lowest, highest, ahead);
      if (cell[1] != -cell[0]) torn = true;
    }
    dawdle(unit);
    const std::array<std::int64_t, 2> delta{1, -1};
    cells_.add(context, unit.worker, delta);
    if (cells_.read(context, unit.worker)[0] != unit.clock + 1) own_is_wrong = true;
  }

  std::vector<std::int64_t> cells() const { return cells_.snapshot(); }
  Table<std::int64_t>& table() { return cells_; }

  std::atomic<std::int64_t> lowest{0}, highest{0};
  std::atomic<bool> own_is_wrong{false}, torn{false};

 private:
  static void note(std::atomic<std::int64_t>& low, std::atomic<std::int64_t>& high, std::int64_t value) {
    for (std::int64_t seen = low.load(); value < seen && !low.compare_exchange_weak(seen, value);) {
    }
    for (std::int64_t seen = high.load(); value > seen && !high.compare_exchange_weak(seen, value);) {
    }
  }
  const WorkerId workers_;
  Table<std::int64_t>& cells_;
};

class OnTables : public testing::TestWithParam<Shape> {};

// Every pair of values of two columns occurs.
const std::vector<Shape>& all_shapes() {
  static const std::vector<Shape> shapes{Shape{1, "", 1, 1, Consistency::bsp, 0},
                                         Shape{1, "", 2, 5, Consistency::bsp, 0},
                                         Shape{1, "numa:2 core:2 pu:1", 4, 32, Consistency::bsp, 0},
                                         Shape{1, "numa:4 core:1 pu:1", 3, 6, Consistency::bsp, 0},
                                         Shape{2, "", 2, 5, Consistency::bsp, 0},
                                         Shape{4, "numa:2 core:1 pu:1", 2, 13, Consistency::bsp, 0},
                                         Shape{16, "", 1, 32, Consistency::bsp, 0},
                                         Shape{1, "", 2, 4, Consistency::ssp, 1},
                                         Shape{1, "numa:2 core:2 pu:1", 4, 9, Consistency::ssp, 3},
                                         Shape{1, "numa:4 core:1 pu:1", 8, 32, Consistency::essp, 2},
                                         Shape{3, "", 2, 8, Consistency::essp, 1},
                                         Shape{4, "numa:2 core:1 pu:1", 2, 16, Consistency::ssp, 4},
                                         Shape{16, "", 1, 16, Consistency::essp, 3},
                                         Shape{2, "numa:4 core:1 pu:1", 1, 7, Consistency::ssp, 8},
                                         Shape{1, "", 8, 1, Consistency::ssp, 2}};
  return shapes;
}

std::vector<Shape> shapes_at_staleness_0() {
  std::vector<Shape> shapes;
  for (const Shape& shape : all_shapes()) {
    if (shape.staleness == 0) shapes.push_back(shape);
  }
  return shapes;
}

INSTANTIATE_TEST_SUITE_P(Shapes, OnTables, testing::ValuesIn(all_shapes()));

class AtStaleness0 : public testing::TestWithParam<Shape> {};
INSTANTIATE_TEST_SUITE_P(Shapes, AtStaleness0, testing::ValuesIn(shapes_at_staleness_0()));

void expect_reads_within_the_bound(const Shape& shape) {
  constexpr Clock kClocks = 24;
  toy::on_cluster(shape.nodes, options_of(shape), [&](NodeId node, Engine& engine) {
    const WorkerMap map(shape.workers, shape.nodes, node, engine.domains());
    Counting program(engine, map);
    DataParallelSchedule schedule(std::vector<std::uint32_t>(shape.workers, 1));
    Executor executor(engine, schedule, program, shape.workers, {});
    executor.run(kClocks / 2);
    executor.run(kClocks);
    EXPECT_FALSE(program.own_is_wrong) << "a worker sees all of its own updates, once";
    EXPECT_FALSE(program.torn) << "a row is seen whole";
    EXPECT_GE(program.lowest.load(), -shape.staleness) << "rule 2";
    EXPECT_LE(program.highest.load(), shape.staleness) << "rule 3";
    for (std::size_t i = 0; i < program.cells().size(); ++i) {
      EXPECT_EQ(program.cells()[i], i % 2 == 0 ? kClocks : -kClocks);
    }
    const ObservedStaleness seen = program.store().observed();
    for (std::size_t k = 0; k < ObservedStaleness::kBuckets; ++k) {
      if (seen.counts[k] > 0) {
        EXPECT_LE(static_cast<Clock>(k), shape.staleness);
      }
    }
  });
}

TEST_P(OnTables, reads_see_what_the_bound_promises_and_nothing_is_lost) { expect_reads_within_the_bound(GetParam()); }

/// Everybody adds a function of what it reads to the same few rows: any change of order, loss or doubling shows.
class Mixing final : public ToyTables {
 public:
  static constexpr std::uint32_t kRows = 7, kWidth = 3;
  Mixing(Engine& engine, const WorkerMap& map)
      : ToyTables(engine, map),
        rows(tables().add<float>({.name = "rows", .rows = kRows, .width = kWidth, .staleness = {}})) {
    for (std::uint32_t r = 0; r < kRows; ++r) {
      rows.set(r, std::array<float, kWidth>{0.5F, static_cast<float>(r), -1.25F});
    }
  }
  /// What worker w adds to `row` in `clock` when it reads `seen`; not every worker touches every row.
  static std::array<float, kWidth> delta(WorkerId worker, Clock clock, std::uint32_t row, std::span<const float> seen) {
    std::array<float, kWidth> out{};
    for (std::uint32_t d = 0; d < kWidth; ++d) {
      const std::uint64_t draw = toy::mix(toy::mix(worker, row), toy::mix(static_cast<std::uint64_t>(clock), d)) >> 40;
      out[d] = 0.1F * std::sin(seen[d] + static_cast<float>(draw));
    }
    return out;
  }
  static bool touches(WorkerId worker, Clock clock, std::uint32_t row) {
    return toy::mix(toy::mix(worker, row), static_cast<std::uint64_t>(clock)) % 3 != 0;
  }
  void run_unit(const WorkUnit& unit, UnitContext& context) override {
    dawdle(unit);
    for (int pass = 0; pass < 2; ++pass) {  // the second pass reads its own updates
      for (std::uint32_t r = 0; r < kRows; ++r) {
        if (!touches(unit.worker, unit.clock, r)) continue;
        rows.add(context, r, delta(unit.worker, unit.clock, r, rows.read(context, r)));
      }
    }
  }
  Table<float>& rows;
};

/// The same as a serial program under bulk synchronous parallel.
std::vector<float> mix_serially(WorkerId workers, Clock clocks) {
  constexpr std::uint32_t kRows = Mixing::kRows, kWidth = Mixing::kWidth;
  std::vector<float> x;
  for (std::uint32_t r = 0; r < kRows; ++r) x.insert(x.end(), {0.5F, static_cast<float>(r), -1.25F});
  for (Clock c = 0; c < clocks; ++c) {
    std::vector<std::vector<float>> sums(workers, std::vector<float>(x.size(), 0));
    for (WorkerId w = 0; w < workers; ++w) {
      for (int pass = 0; pass < 2; ++pass) {
        for (std::uint32_t r = 0; r < kRows; ++r) {
          if (!Mixing::touches(w, c, r)) continue;
          std::array<float, kWidth> seen;
          for (std::uint32_t d = 0; d < kWidth; ++d) seen[d] = x[r * kWidth + d] + sums[w][r * kWidth + d];
          const auto delta = Mixing::delta(w, c, r, seen);
          for (std::uint32_t d = 0; d < kWidth; ++d) sums[w][r * kWidth + d] += delta[d];
        }
      }
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      std::vector<float> of_workers;
      for (WorkerId w = 0; w < workers; ++w) of_workers.push_back(sums[w][i]);
      x[i] += tree_sum(std::span<float>(of_workers));
    }
  }
  return x;
}

void expect_the_bits_of_the_serial_program(const Shape& shape) {
  const std::vector<float> expected = mix_serially(shape.workers, 15);
  std::barrier all_stopped(static_cast<std::ptrdiff_t>(shape.nodes));  // as processes that end before they resume
  toy::on_cluster(shape.nodes, options_of(shape), [&](NodeId node, Engine& engine) {
    const WorkerMap map(shape.workers, shape.nodes, node, engine.domains());
    DataParallelSchedule schedule(std::vector<std::uint32_t>(shape.workers, 1));
    Mixing program(engine, map);
    {
      Executor executor(engine, schedule, program, shape.workers, {});
      executor.run(7);
    }
    all_stopped.arrive_and_wait();
    Mixing resumed(engine, map);
    resumed.load_state(program.save_state());
    Executor executor(engine, schedule, resumed, shape.workers, {.start = 7, .record_trace = false, .should_stop = {}});
    executor.run(15);
    EXPECT_EQ(resumed.rows.snapshot(), expected);
  });
}

TEST_P(AtStaleness0, a_run_is_bitwise_the_serial_program) { expect_the_bits_of_the_serial_program(GetParam()); }

// One worker has nobody to be behind of.
TEST(Tables, one_worker_is_the_serial_program_at_any_staleness) {
  for (const Clock staleness : {1, 2, 5}) {
    Engine engine(toy::options_with(4, staleness));
    const WorkerMap map(1, 1, 0, engine.domains());
    Mixing program(engine, map);
    DataParallelSchedule schedule({1});
    Executor executor(engine, schedule, program, 1, {});
    executor.run(15);
    const std::vector<float> expected = mix_serially(1, 15), found = program.rows.snapshot();
    // Batches are added one by one where the serial program adds their sum: equal but for rounding.
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4);
  }
}

/// One row that everybody adds to, in clocks that only some take part in.
class Crowding final : public ToyTables {
 public:
  Crowding(Engine& engine, const WorkerMap& map)
      : ToyTables(engine, map),
        one(tables().add<std::int64_t>({.name = "one", .rows = 1, .width = 1, .staleness = {}})) {}
  static std::int64_t delta(WorkerId worker, Clock clock) {
    return worker == 0 ? 0 : static_cast<std::int64_t>(toy::mix(worker, static_cast<std::uint64_t>(clock)) % 1000);
  }
  void run_unit(const WorkUnit& unit, UnitContext& context) override {
    if (unit.worker == 0) return;  // a worker that never touches the table
    dawdle(unit);
    one.add(context, 0, 0, delta(unit.worker, unit.clock));
  }
  Table<std::int64_t>& one;
};

void expect_conservation(const Shape& shape) {
  constexpr Clock kClocks = 40;
  std::int64_t expected = 0;
  for (Clock c = 0; c < kClocks; ++c) {
    for (WorkerId w = 0; w < shape.workers; ++w) expected += Crowding::delta(w, c);
  }
  toy::on_cluster(shape.nodes, options_of(shape), [&](NodeId node, Engine& engine) {
    const WorkerMap map(shape.workers, shape.nodes, node, engine.domains());
    Crowding program(engine, map);
    DataParallelSchedule schedule(std::vector<std::uint32_t>(shape.workers, 1));
    Executor executor(engine, schedule, program, shape.workers, {});
    executor.run(kClocks);
    EXPECT_EQ(program.one.row(0)[0], expected);
  });
}

TEST_P(OnTables, integer_updates_are_conserved_in_every_mode) {
  Shape shape = GetParam();
  expect_conservation(shape);
  shape.consistency = Consistency::async;
  expect_conservation(shape);
}

// Every combination; `ctest -L slow`.
TEST(FullProduct, of_modes_workers_domains_and_nodes) {
  const std::vector<std::pair<Consistency, Clock>> modes{{Consistency::bsp, 0},  {Consistency::ssp, 1},
                                                         {Consistency::ssp, 4},  {Consistency::essp, 1},
                                                         {Consistency::essp, 3}, {Consistency::async, 0}};
  for (const auto& [consistency, staleness] : modes) {
    for (const WorkerId workers : {1U, 2U, 5U, 16U, 32U}) {
      for (const char* topology : {"", "numa:2 core:1 pu:1", "numa:4 core:1 pu:1"}) {
        for (const NodeId nodes : {1U, 2U, 4U, 16U}) {
          if (nodes > workers) continue;
          const Shape shape{nodes, topology, 2, workers, consistency, staleness};
          SCOPED_TRACE(testing::PrintToString(shape));
          expect_conservation(shape);
          if (consistency != Consistency::async) expect_reads_within_the_bound(shape);
          if (consistency == Consistency::bsp) expect_the_bits_of_the_serial_program(shape);
        }
      }
    }
  }
}

TEST(Tables, a_table_may_be_fresher_than_the_engine) {
  const Shape shape{1, "", 4, 6, Consistency::ssp, 3};
  Engine engine(options_of(shape));
  const WorkerMap map(shape.workers, 1, 0, engine.domains());
  Counting program(engine, map, 0);
  DataParallelSchedule schedule(std::vector<std::uint32_t>(shape.workers, 1));
  Executor executor(engine, schedule, program, shape.workers, {});
  executor.run(30);
  EXPECT_EQ(program.lowest.load(), 0);
  EXPECT_EQ(program.highest.load(), 0);
  EXPECT_EQ(executor.stats().staleness_max, 0);
}

TEST(Tables, replaced_rows_are_used_again) {
  const Shape shape{1, "numa:2 core:2 pu:1", 4, 8, Consistency::ssp, 2};
  Engine engine(options_of(shape));
  const WorkerMap map(shape.workers, 1, 0, engine.domains());
  Counting program(engine, map);
  DataParallelSchedule schedule(std::vector<std::uint32_t>(shape.workers, 1));
  Executor executor(engine, schedule, program, shape.workers, {});
  executor.run(300);
  // Each of 8 workers replaces a row on two domains in every clock; what waits can be of the last few clocks only.
  EXPECT_LE(program.table().retired_versions(), 2U * 8 * (2 * 2 + 2));
}

TEST(Tables, impossible_tables_are_refused_with_the_reason) {
  Engine engine(toy::options_with(1, 2));
  const WorkerMap map(2, 1, 0, engine.domains());
  TableStore store(engine, map);
  for (const TableSpec& spec :
       {TableSpec{"a", 0, 1, {}}, TableSpec{"b", 3, 0, {}}, TableSpec{"c", 3, 1, 3}, TableSpec{"d", 3, 1, -1}}) {
    EXPECT_THROW(store.add<float>(spec), Error) << spec.name;
  }
  store.add<double>({.name = "e", .rows = 3, .width = 2, .staleness = {}});
  std::vector<StateSection> sections = store.save();
  sections.front().bytes.pop_back();
  EXPECT_THROW(store.load(sections), Error);
  EXPECT_THROW(store.load({}), Error);
}

// The tree is the one of tree_combine, however workers are dealt over nodes and in whatever order they arrive.
TEST(CombiningTree, gives_the_fixed_tree_for_any_nodes_and_order) {
  for (WorkerId workers = 1; workers <= 33; ++workers) {
    for (const NodeId nodes : {1U, 2U, 3U, 5U}) {
      if (nodes > workers) continue;
      std::vector<float> values(workers), leaves(workers);
      for (WorkerId w = 0; w < workers; ++w) values[w] = leaves[w] = 1.0F / static_cast<float>(3 * w + 1);
      std::map<Subtree, float*> parts;
      for (NodeId n = 0; n < nodes; ++n) {
        const WorkerMap map(workers, nodes, n, 1);
        CombiningTree tree(map);
        for (WorkerId i = map.first_worker(n + 1); i-- > map.first_worker(n);) {
          tree.arrive(i, [&](WorkerId left, WorkerId right) { leaves[left] += leaves[right]; });
        }
        for (const Subtree at : tree.largest()) parts.emplace(at, &leaves[tree.first_worker(at)]);
      }
      const CombiningTree tree(WorkerMap(workers, nodes, 0, 1));
      const float whole = *tree.finish(parts, [](float& left, const float& right) { left += right; });
      EXPECT_EQ(whole, tree_sum(std::span<float>(values))) << workers << " workers on " << nodes << " nodes";
    }
  }
}

TEST(RowIndex, finds_what_was_entered_and_nothing_else) {
  RowIndex index;
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < 5000; ++i) {
      const std::uint32_t row = i * 48271U;
      EXPECT_EQ(index.find(row), RowIndex::kNone);
      index.insert(row, i);
    }
    for (std::uint32_t i = 0; i < 5000; ++i) EXPECT_EQ(index.find(i * 48271U), i);
    EXPECT_EQ(index.find(7), RowIndex::kNone);
    index.clear();
  }
}

}  // namespace
}  // namespace orrery
