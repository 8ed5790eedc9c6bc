// Profiles: what is recorded is what was done, and every number of a report is that of a slow count over plain sets.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "engine/access_report.h"
#include "engine/block_store.h"
#include "engine/error.h"
#include "engine/phase_report.h"
#include "engine/profile_advice.h"
#include "engine/profiled_trainee.h"
#include "engine/random.h"
#include "tests/engine/toy_programs.h"

namespace orrery {
namespace {

struct Access {
  Clock clock;
  std::uint32_t row;
  bool adds;
  auto operator<=>(const Access&) const = default;
};
using Accesses = std::vector<Access>;

/// Made-up accesses of some workers: own rows, shared rows, and some that come back at once.
std::vector<Accesses> made_up(std::uint32_t workers, std::uint32_t rows, Clock clocks, std::uint64_t seed) {
  std::vector<Accesses> all(workers);
  for (std::uint32_t w = 0; w < workers; ++w) {
    RandomStream draws = Random(seed, Purpose::test).stream(0, w);
    for (Clock c = 0; c < clocks; ++c) {
      if (draws.below(5) == 0) continue;  // a worker without an access
      for (std::uint64_t left = draws.below(60); left > 0; --left) {
        const bool again = !all[w].empty() && draws.below(4) == 0;
        const auto own = static_cast<std::uint32_t>(w * rows / workers + draws.below(rows / workers));
        const auto any = static_cast<std::uint32_t>(draws.below(rows));
        const std::uint32_t row = again ? all[w].back().row : draws.below(2) == 0 ? own : any;
        all[w].push_back({c, row, draws.below(3) == 0});
      }
    }
  }
  return all;
}

struct Recorded {
  Recorded(const std::vector<Accesses>& all, std::uint32_t rows, Clock clocks) {
    table.rows = rows;
    recorders.reserve(all.size());
    for (const Accesses& of_worker : all) {
      AccessRecorder& recorder = recorders.emplace_back(0, clocks, std::size_t{1} << 20);
      for (const Access& access : of_worker) recorder.note(access.clock, access.row, access.adds);
    }
    for (const AccessRecorder& recorder : recorders) table.workers.push_back(&recorder);
  }
  std::vector<AccessRecorder> recorders;
  RecordedTable table;
};

Accesses accesses_of(const AccessRecorder& recorder) {
  Accesses out;
  for (const AccessRecorder::ClockRecord& clock : recorder.clocks()) {
    EXPECT_EQ(clock.first, out.size());
    for (std::size_t i = 0; i < clock.count; ++i) {
      out.push_back({clock.clock, recorder[clock.first + i].row, recorder[clock.first + i].adds});
    }
  }
  EXPECT_EQ(out.size(), recorder.size());
  return out;
}

TEST(AccessRecorder, keeps_the_order_of_its_clocks_and_says_what_it_dropped) {
  AccessRecorder recorder(2, 5, 3);
  for (Clock c = 0; c < 6; ++c) {
    recorder.note(c, static_cast<std::uint32_t>(10 * c), false);
    recorder.note(c, AccessRecorder::kMostRows - 1, true);
  }
  const Accesses expected{{2, 20, false}, {2, AccessRecorder::kMostRows - 1, true}, {3, 30, false}};
  EXPECT_EQ(accesses_of(recorder), expected);
  EXPECT_EQ(recorder.dropped(), 3U);
}

TEST(AccessReport, counts_who_touches_what_as_sets_do) {
  constexpr std::uint32_t kWorkers = 7, kRows = 70;
  const WorkerMap map(kWorkers, 1, 0, 3);
  const std::vector<Accesses> all = made_up(kWorkers, kRows, 6, 3);
  const TableUse use = use_of(Recorded(all, kRows, 6).table, map, 5);

  std::map<std::uint32_t, std::set<std::uint32_t>> workers, writers, domains;
  std::map<std::uint32_t, std::uint64_t> reads, adds;
  for (std::uint32_t w = 0; w < kWorkers; ++w) {
    for (const Access& access : all[w]) {
      workers[access.row].insert(w);
      domains[access.row].insert(map.domain_of(w));
      if (access.adds) writers[access.row].insert(w);
      ++(access.adds ? adds : reads)[access.row];
    }
  }
  std::vector<AccessSum> by_workers(kWorkers + 1), by_domains(4);
  std::array<AccessSum, kRowClasses> by_class;
  std::array<std::uint64_t, kRowClasses> slots{};
  std::vector<std::pair<std::int64_t, std::uint32_t>> heat;
  const auto add = [&](AccessSum& sum, std::uint32_t row) {
    ++sum.rows;
    sum.reads += reads[row];
    sum.adds += adds[row];
  };
  for (std::uint32_t row = 0; row < kRows; ++row) {
    add(by_workers[workers[row].size()], row);
    add(by_domains[domains[row].size()], row);
    if (workers[row].empty()) continue;
    const std::size_t kind = std::min<std::size_t>(2, writers[row].size());
    add(by_class[kind], row);
    slots[kind] += writers[row].size();
    heat.emplace_back(-static_cast<std::int64_t>(reads[row] + adds[row]), row);
  }
  std::sort(heat.begin(), heat.end());
  const auto same = [](const AccessSum& a, const AccessSum& b) {
    return a.rows == b.rows && a.reads == b.reads && a.adds == b.adds;
  };
  EXPECT_TRUE(std::equal(by_workers.begin(), by_workers.end(), use.by_worker_count.begin(), same));
  EXPECT_TRUE(std::equal(by_domains.begin(), by_domains.end(), use.by_domain_count.begin(), same));
  EXPECT_TRUE(std::equal(by_class.begin(), by_class.end(), use.by_class.begin(), same));
  EXPECT_EQ(slots, use.slots);
  ASSERT_EQ(use.hot.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    const HotRow& hot = use.hot[i];
    EXPECT_EQ(hot.row, heat[i].second);
    EXPECT_EQ(std::tuple(hot.reads, hot.adds), std::tuple(reads[hot.row], adds[hot.row]));
    EXPECT_EQ(std::tuple(hot.workers, hot.writers, hot.domains),
              std::tuple(workers[hot.row].size(), writers[hot.row].size(), domains[hot.row].size()));
  }
  for (std::uint32_t w = 0; w < kWorkers; ++w) {
    std::set<std::uint32_t> rows;
    for (const Access& access : all[w]) rows.insert(access.row);
    EXPECT_EQ(use.by_worker[w].rows, rows.size());
    EXPECT_EQ(use.by_worker[w].accesses(), all[w].size());
  }
}

TEST(AccessReport, says_what_an_iteration_repeats) {
  constexpr std::uint32_t kRows = 40;
  std::vector<Accesses> all = made_up(3, kRows, 6, 9);
  for (Accesses& worker : all) std::sort(worker.begin(), worker.end());  // so that some are at the same place
  const Recorded recorded(all, kRows, 6);
  for (Clock iteration = 0; iteration < 3; ++iteration) {
    Repetition slow;
    for (const Accesses& worker : all) {
      Accesses first, later;
      for (const Access& a : worker) {
        if (a.clock / 2 == 0) first.push_back({0, a.row, a.adds});
        if (a.clock / 2 == iteration) later.push_back({0, a.row, a.adds});
      }
      for (std::size_t i = 0; i < later.size(); ++i) {
        ++slow.accesses;
        slow.known += std::find(first.begin(), first.end(), later[i]) != first.end();
        slow.same_place += i < first.size() && first[i] == later[i];
      }
    }
    const Repetition found = repetition_of(recorded.table, 0, 2, iteration);
    EXPECT_EQ(std::tuple(found.accesses, found.known, found.same_place),
              std::tuple(slow.accesses, slow.known, slow.same_place));
    if (iteration == 0) {
      EXPECT_EQ(found.same_place, found.accesses);
    }
  }
}

TEST(AccessReport, gives_the_distances_of_a_list_that_is_kept_in_order_of_use) {
  constexpr std::uint32_t kRows = 50;
  const std::vector<Accesses> all = made_up(4, kRows, 8, 5);
  const Recorded recorded(all, kRows, 8);
  const std::vector<std::uint64_t> capacities{0, 1, 2, 7, 20, 50};
  for (const std::size_t most : {std::size_t{1} << 20, std::size_t{100}}) {
    Reuse slow;
    slow.served_by.assign(capacities.size(), 0);
    for (const Accesses& worker : all) {
      std::vector<std::uint32_t> stack;  // used last first
      for (std::size_t i = 0; i < std::min(worker.size(), most / all.size()); ++i) {
        ++slow.accesses;
        const auto at = std::find(stack.begin(), stack.end(), worker[i].row);
        if (at == stack.end()) {
          ++slow.first_touches;
        } else {
          const auto distance = static_cast<std::uint64_t>(at - stack.begin());
          std::size_t bucket = 0;
          while (distance >= (std::uint64_t{1} << bucket)) ++bucket;
          slow.by_log2.resize(std::max(slow.by_log2.size(), bucket + 1), 0);
          ++slow.by_log2[bucket];
          for (std::size_t c = 0; c < capacities.size(); ++c) slow.served_by[c] += distance < capacities[c];
          stack.erase(at);
        }
        stack.insert(stack.begin(), worker[i].row);
      }
    }
    const Reuse found = reuse_of(recorded.table, capacities, most);
    EXPECT_EQ(found.by_log2, slow.by_log2);
    EXPECT_EQ(found.served_by, slow.served_by);
    EXPECT_EQ(std::tuple(found.accesses, found.first_touches), std::tuple(slow.accesses, slow.first_touches));
    EXPECT_EQ(std::accumulate(found.by_log2.begin(), found.by_log2.end(), found.first_touches), found.accesses);
  }
}

/// The largest complete subtrees of the tree over `workers` that lie in [first, last): by halving from the root.
std::vector<std::set<std::uint32_t>> complete_subtrees(std::uint32_t first, std::uint32_t last, std::uint32_t workers) {
  std::vector<std::set<std::uint32_t>> found;
  std::uint32_t size = 1;
  while (size < workers) size *= 2;
  const auto visit = [&](const auto& self, std::uint32_t begin, std::uint32_t length) -> void {
    const std::uint32_t end = std::min(begin + length, workers);
    if (begin >= last || end <= first) return;
    if (begin >= first && end <= last) {
      std::set<std::uint32_t> all;
      for (std::uint32_t w = begin; w < end; ++w) all.insert(w);
      found.push_back(all);
      return;
    }
    self(self, begin, length / 2);
    self(self, begin + length / 2, length / 2);
  };
  visit(visit, 0, size);
  return found;
}

TEST(AccessReport, counts_what_crosses_domains_along_the_tree) {
  constexpr std::uint32_t kWorkers = 11, kRows = 44;
  const WorkerMap map(kWorkers, 1, 0, 3);
  const std::vector<Accesses> all = made_up(kWorkers, kRows, 4, 8);
  std::map<std::uint32_t, std::set<DomainId>> touched_by;
  std::map<Clock, std::map<std::uint32_t, std::set<std::uint32_t>>> writers;
  std::vector<std::set<std::uint32_t>> subtrees;
  for (DomainId d = 0; d < 3; ++d) {
    std::uint32_t first = 0, last = 0;
    for (std::uint32_t w = 0; w < kWorkers; ++w) {
      if (map.domain_of(w) < d) first = w + 1;
      if (map.domain_of(w) <= d) last = w + 1;
    }
    for (auto& subtree : complete_subtrees(first, last, kWorkers)) subtrees.push_back(subtree);
  }
  for (std::uint32_t w = 0; w < kWorkers; ++w) {
    for (const Access& access : all[w]) {
      touched_by[access.row].insert(map.domain_of(w));
      writers[access.clock];
      if (access.adds) writers[access.clock][access.row].insert(w);
    }
  }
  const Recorded recorded(all, kRows, 4);
  for (const bool versioned : {false, true}) {
    const std::vector<CrossDomain> found = cross_domain(recorded.table, map, versioned);
    ASSERT_EQ(found.size(), writers.size());
    std::size_t at = 0;
    for (const auto& [clock, rows] : writers) {
      std::uint64_t moved = 0, least = 0;
      for (const auto& [row, who] : rows) {
        const DomainId first = map.domain_of(*who.begin());
        for (const std::uint32_t w : who) moved += versioned ? 2 : map.domain_of(w) != first;
        moved += versioned ? 0 : 2;
        for (const auto& subtree : subtrees) {
          const bool adds = std::any_of(who.begin(), who.end(), [&](std::uint32_t w) { return subtree.contains(w); });
          least += adds && map.domain_of(*subtree.begin()) != first;
        }
        least += touched_by[row].size() - 1;
      }
      EXPECT_EQ(found[at].clock, clock);
      EXPECT_EQ(std::tuple(found[at].updates, found[at].moved, found[at].least), std::tuple(rows.size(), moved, least));
      EXPECT_LE(found[at].least, found[at].moved);
      ++at;
    }
  }
}

// --- a training that is watched --------------------------------------------------------------------------------------

/// Reads and adds what made_up() says, and adds from what it has read, so that bits depend on what reads see.
class Scripted final : public TableProgram {
 public:
  Scripted(Engine& engine, const WorkerMap& map, std::vector<Accesses> script, std::uint32_t rows)
      : TableProgram(engine, map),
        script_(std::move(script)),
        one_(tables().add<double>({.name = "one", .rows = rows, .width = 3})),
        other_(tables().add<std::int64_t>({.name = "other", .rows = rows})) {}

  void run_unit(const WorkUnit& unit, UnitContext& context) override {
    double seen = 1.0 + unit.worker;
    for (const Access& access : script_[unit.worker]) {
      if (access.clock != unit.clock) continue;
      if (!access.adds) {
        seen = 0.5 * seen + one_.read(context, access.row)[1];
      } else {
        one_.add(context, access.row, std::array{seen, 0.1 * seen, 1.0});
        other_.add(context, access.row, 0, 1);
      }
    }
  }
  Evaluation evaluate(Engine&, bool) override {
    Evaluation now;
    now.objective = one_.row(0)[0];
    return now;
  }
  std::vector<double> values() const { return one_.snapshot(); }
  using TableProgram::tables;

 private:
  std::vector<Accesses> script_;
  Table<double>& one_;
  Table<std::int64_t>& other_;
};

struct Watched {
  static constexpr std::uint32_t kWorkers = 6, kRows = 60;
  static constexpr Clock kClocks = 8;
  explicit Watched(Clock staleness, const ProfileLimits& limits)
      : script(made_up(kWorkers, kRows, kClocks, 21)),
        engine(toy::options_with(3, staleness, "numa:2 core:2 pu:1")),
        map(kWorkers, 1, 0, engine.domains()),
        program(engine, map, script, kRows),
        profiled(program, limits) {}

  void train(Trainee& trainee) {
    DataParallelSchedule schedule(std::vector<std::uint32_t>(kWorkers, 1));
    TrainOptions options;
    options.workers = kWorkers;
    options.stop.iterations = kClocks;
    options.evaluate_every = 2;
    TrainingObserver nobody;
    const std::atomic<bool> interrupted{false};
    orrery::train(engine, schedule, trainee, options, nobody, interrupted);
  }

  std::vector<Accesses> script;
  Engine engine;
  WorkerMap map;
  Scripted program;
  ProfiledTrainee profiled;
};

TEST(ProfiledTrainee, records_what_the_program_accesses_and_changes_no_bit) {
  for (const Clock staleness : {0, 2}) {
    Watched watched(staleness, {.recorded_clocks = 5, .recorded_bytes = std::size_t{1} << 20});
    watched.train(watched.profiled);
    const auto tables = watched.program.tables().all();
    for (std::uint32_t w = 0; w < Watched::kWorkers; ++w) {
      Accesses one, other;
      for (const Access& access : watched.script[w]) {
        if (access.clock >= 5) continue;
        one.push_back(access);
        if (access.adds) other.push_back(access);
      }
      EXPECT_EQ(accesses_of(*tables[0]->recorded()[w]), one);
      EXPECT_EQ(accesses_of(*tables[1]->recorded()[w]), other);
    }
    if (staleness > 0) continue;
    Watched unwatched(staleness, {});
    unwatched.train(unwatched.program);
    EXPECT_EQ(watched.program.values(), unwatched.program.values());
    EXPECT_TRUE(unwatched.program.tables().all()[0]->recorded().empty());
  }
}

TEST(ProfiledTrainee, divides_the_memory_and_says_what_was_cut) {
  Watched watched(0, {.recorded_clocks = 8, .recorded_bytes = 4 * 2 * Watched::kWorkers * 10});
  watched.train(watched.profiled);
  for (const auto& table : watched.program.tables().all()) {
    for (const AccessRecorder* worker : table->recorded()) {
      EXPECT_LE(worker->size(), 10U);
      EXPECT_EQ(worker->dropped() > 0, worker->size() == 10U);
    }
  }
  EXPECT_GT(watched.program.tables().all()[0]->recorded()[0]->dropped(), 0U);
}

TEST(ProfiledTrainee, keeps_at_most_so_many_phases) {
  Watched watched(0, {.phases = 7});
  watched.train(watched.profiled);
  EXPECT_EQ(watched.profiled.trace().records.size(), 7U);
  EXPECT_GT(watched.profiled.trace().dropped, 40U);
}

TEST(ProfiledTrainee, counts_the_tables_at_every_evaluation) {
  Watched watched(0, {});
  watched.train(watched.profiled);
  const std::vector<TableCounts>& counts = watched.profiled.trace().counts;
  ASSERT_EQ(counts.size(), 5U);  // at the start and after clocks 2, 4, 6, 8
  for (std::size_t i = 0; i < counts.size(); ++i) {
    std::uint64_t reads = 0, adds = 0;
    for (const Accesses& worker : watched.script) {
      for (const Access& access : worker) {
        if (access.clock < static_cast<Clock>(2 * i)) ++(access.adds ? adds : reads);
      }
    }
    EXPECT_EQ(counts[i].clock, static_cast<Clock>(2 * i));
    EXPECT_EQ(counts[i].accesses[0].reads, reads);
    EXPECT_EQ(counts[i].accesses[0].adds, adds);
  }
}

/// Stretches of a worker follow each other from the start to the end without a gap.
void expect_whole(const PhaseReport& report, std::size_t workers) {
  ASSERT_EQ(report.workers.size(), workers);
  std::vector<double> at(workers, 0), sums(workers, 0);
  for (const Stretch& stretch : report.stretches) {
    EXPECT_NEAR(stretch.start, at[stretch.worker], 1e-9);
    EXPECT_GT(stretch.end, stretch.start);
    at[stretch.worker] = stretch.end;
  }
  for (std::size_t w = 0; w < workers; ++w) {
    const auto& seconds = report.workers[w].seconds;
    EXPECT_NEAR(at[w], report.seconds, 1e-9);
    EXPECT_NEAR(std::accumulate(seconds.begin(), seconds.end(), 0.0), report.seconds, 1e-9);
  }
}

TEST(PhaseReport, accounts_for_all_time_of_all_workers) {
  for (const Clock staleness : {0, 2}) {
    Watched watched(staleness, {});
    watched.train(watched.profiled);
    const PhaseReport report = phases_of(watched.profiled.trace(), watched.map, staleness);
    expect_whole(report, Watched::kWorkers);
    ASSERT_EQ(report.clocks.size(), static_cast<std::size_t>(Watched::kClocks));
    double compute = 0, of_workers = 0;
    for (const ClockTime& clock : report.clocks) compute += clock.compute;
    for (const WorkerTime& worker : report.workers) {
      EXPECT_EQ(worker.units, static_cast<std::uint64_t>(Watched::kClocks));
      of_workers += worker.seconds[static_cast<std::size_t>(Activity::compute)];
    }
    EXPECT_NEAR(compute, of_workers, 1e-9);
    EXPECT_GT(report.evaluate_seconds, 0);
    EXPECT_LE(report.busy_seconds, report.seconds * 3 + 1e-9);
  }
}

PhaseRecord phase(Phase what, WorkerId worker, Clock clock, double start, double end, std::size_t first_block = 0,
                  std::size_t blocks = 0) {
  return {what, worker, worker, clock, start, end, first_block, blocks};
}

TEST(PhaseReport, names_what_a_worker_waited_for) {
  // Worker 1 waits for block 7 of worker 0, for a thread, and for the clock of worker 0; an evaluation takes no time.
  PhaseTrace trace;
  trace.blocks = {7, 7};
  trace.records = {phase(Phase::compute, 1, 0, 10, 11),       phase(Phase::compute, 0, 0, 10, 13, 0, 1),
                   phase(Phase::compute, 1, 0, 14, 15, 1, 1), phase(Phase::flush, 1, 0, 15, 16),
                   phase(Phase::compute, 0, 0, 13, 19),       phase(Phase::flush, 0, 0, 19, 20),
                   phase(Phase::commit, 0, 0, 20, 22),        phase(Phase::evaluate, 0, 1, 30, 40),
                   phase(Phase::compute, 0, 1, 50, 51),       phase(Phase::compute, 1, 1, 50, 52)};
  const PhaseReport report = phases_of(trace, WorkerMap(2, 1, 0, 2), 0);
  expect_whole(report, 2);
  EXPECT_NEAR(report.seconds, 14, 1e-9);
  EXPECT_NEAR(report.evaluate_seconds, 10, 1e-9);
  const auto seconds = [&](WorkerId worker, Activity what) {
    return report.workers[worker].seconds[static_cast<std::size_t>(what)];
  };
  EXPECT_NEAR(seconds(1, Activity::compute), 4, 1e-9);
  EXPECT_NEAR(seconds(1, Activity::block_wait), 2, 1e-9);  // from 11 to 13
  EXPECT_NEAR(seconds(1, Activity::queued), 1, 1e-9);      // from 13 to 14
  EXPECT_NEAR(seconds(1, Activity::clock_wait), 4, 1e-9);  // from 16 to 20
  EXPECT_NEAR(seconds(1, Activity::commit), 2, 1e-9);
  EXPECT_NEAR(seconds(1, Activity::flush), 1, 1e-9);
  EXPECT_NEAR(seconds(0, Activity::compute), 10, 1e-9);
}

/// Rotation over blocks that lie in a BlockStore.
class Rotating final : public Trainee, public ShowsBlocks {
 public:
  Rotating(const Topology& topology, const std::vector<std::size_t>& bytes) : store(topology, bytes) {}
  void run_unit(const WorkUnit& unit, UnitContext& context) override {
    for (const BlockId block : unit.blocks) {
      if (first_in.try_emplace(block, context.domain).second && context.domain != 0) {
        moved_at_first += store.view(block).size();
      }
      store.acquire(block, context.domain);
    }
  }
  Evaluation evaluate(Engine&, bool) override { return {}; }
  std::vector<StateSection> save_state() const override { return {}; }
  void load_state(const std::vector<StateSection>&) override {}
  void keep_best() override {}
  void restore_best() override {}
  std::size_t block_bytes(BlockId block) const override { return store.view(block).size(); }

  BlockStore store;
  std::map<BlockId, DomainId> first_in;  // one thread
  std::uint64_t moved_at_first = 0;      // stores begin in domain 0
};

TEST(PhaseReport, counts_the_bytes_of_blocks_as_their_store_does) {
  Engine engine(toy::options_with(1, 0, "numa:2 core:1 pu:1"));
  std::vector<std::size_t> bytes;
  for (std::size_t b = 0; b < 8; ++b) bytes.push_back(100 * (b + 1));
  Rotating program(engine.topology(), bytes);
  ProfiledTrainee profiled(program, {});
  RotationSchedule schedule(4, 8, 5);
  TrainOptions options;
  options.workers = 4;
  options.stop.iterations = 6;
  TrainingObserver nobody;
  const std::atomic<bool> interrupted{false};
  train(engine, schedule, profiled, options, nobody, interrupted);
  EXPECT_EQ(profiled.tables(), nullptr);
  const BlockTravel travel = travel_of(profiled.trace(), WorkerMap(4, 1, 0, 2), bytes);
  std::uint64_t moved = 0;
  ASSERT_EQ(travel.clocks.size(), 6U);
  for (const BlockClock& clock : travel.clocks) {
    EXPECT_EQ(clock.visits, 32U);
    EXPECT_GE(clock.moves, travel.least_moves_of_clock);
    moved += clock.bytes;
  }
  EXPECT_EQ(travel.least_moves_of_clock, 8U);
  EXPECT_EQ(moved + program.moved_at_first, program.store.bytes_moved());
  for (const auto& block : travel.visits) EXPECT_EQ(block, std::vector<std::uint32_t>(4, 6));
  EXPECT_EQ(profiled.block_bytes(3), 400U);
}

TEST(ProfileAdvice, follows_from_the_numbers) {
  const auto about = [](const ProfileFacts& facts, const std::string& subject) {
    for (const Advice& advice : advise(facts)) {
      if (advice.about == subject) return advice;
    }
    return Advice{};
  };
  ProfileFacts facts{.iterations = 5,
                     .threads = 4,
                     .workers = 16,
                     .domains = 2,
                     .schedule = "data",
                     .schedules = {"rotation", "data"}};
  facts.has_tables = true;
  facts.moved = 1000;
  facts.least = 900;
  for (const Advice& advice : advise(facts)) {
    EXPECT_FALSE(advice.evidence.empty());
    EXPECT_FALSE(advice.change) << advice.what;
  }
  facts.idle = 0.4;
  facts.clock_wait = 0.3;
  facts.longest_over_share = 1.6;
  facts.adds_to_shared = 0.9;
  facts.moved = 10000;
  EXPECT_NE(about(facts, "workers").what.find("--workers 32"), std::string::npos);
  EXPECT_NE(about(facts, "workers").evidence.find("40.0 %"), std::string::npos);
  EXPECT_NE(about(facts, "staleness").what.find("--staleness 1"), std::string::npos);
  EXPECT_NE(about(facts, "schedule").what.find("--schedule rotation"), std::string::npos);
  EXPECT_NE(about(facts, "schedule").evidence.find("90.0 %"), std::string::npos);
  EXPECT_NE(about(facts, "placement").what.find("order the data"), std::string::npos);
  facts.is_cut = true;
  for (const char* of_rows : {"schedule", "placement"}) {
    EXPECT_NE(about(facts, of_rows).what.find("--record-memory"), std::string::npos) << "numbers that are too low";
  }
  EXPECT_NE(about(facts, "workers").what.find("--workers 32"), std::string::npos) << "does not rest on the record";
  facts.is_cut = false;
  facts.schedules = {"data"};
  EXPECT_EQ(about(facts, "schedule").what.find("rotation"), std::string::npos);
  facts.iterations = 0;
  for (const Advice& advice : advise(facts)) EXPECT_NE(advice.what.find("no advice"), std::string::npos);
}

TEST(ProfileAdvice, stands_only_if_iterations_got_faster) {
  const Advice advice{"staleness", "use --staleness 1", "threads were idle", Change{"staleness", "1"}, "keep 0"};
  Trial trial{.iterations = 3, .fastest = 0.04, .slowest = 0.05, .fastest_before = 0.1, .slowest_before = 0.2};
  trial.objective = 7;
  trial.objective_before = 8;
  EXPECT_EQ(judged(advice, trial).what, advice.what);
  trial.slowest = 0.11;
  EXPECT_EQ(judged(advice, trial).what.find("keep 0"), 0U);
  for (const char* number : {"110.00 ms", "100.00 to 200.00 ms", "7.0", "8.0", "threads were idle"}) {
    EXPECT_NE(judged(advice, trial).evidence.find(number), std::string::npos) << number;
  }
  EXPECT_NE(untried(advice, "no memory").what.find("no memory"), std::string::npos);
}

}  // namespace
}  // namespace orrery
