// Adaptive steps under delay: the rule against the paper's algorithm written out, and what a table makes of it.
#include "engine/update_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <vector>

#include "engine/error.h"
#include "engine/executor.h"
#include "engine/random.h"
#include "engine/table_store.h"
#include "tests/engine/toy_programs.h"

namespace orrery {
namespace {

constexpr double kRate = 0.5;
constexpr UpdateRule kAdaptive{.kind = UpdateRule::Kind::adaptive_revision, .rate = kRate};

/// Algorithm 3 of McMahan and Streeter (NIPS 2014), with sums kept as lists: the gradients themselves, and for each the
/// gradients that had been applied when its author read.
class Paper {
 public:
  void apply(double gradient, double seen) {
    double sum = 0;
    for (const double g : gradients_) sum += g;
    const double backward = sum - seen;
    const double length_before = kRate / std::sqrt(1 + highest_);
    squares_ += gradient * gradient + 2 * gradient * backward;
    highest_ = std::max(highest_, squares_);
    const double length = kRate / std::sqrt(1 + highest_);
    value_ += -length * gradient + (length_before - length) * backward;
    gradients_.push_back(gradient);
  }
  double value() const { return value_; }

 private:
  std::vector<double> gradients_;
  double value_ = 0, squares_ = 0, highest_ = 0;
};

TEST(AdaptiveRevision, is_the_algorithm_of_the_paper_for_any_delays) {
  const RowRule<double> rule(kAdaptive, 1, true);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    RandomStream draws = Random(seed, Purpose::test).stream(0, 0);
    Paper paper;
    std::vector<double> state(rule.state_width(), 0.0);
    std::deque<std::array<double, 2>> delayed;
    for (int i = 0; i < 200; ++i) {
      delayed.push_back({2 * draws.uniform() - 1, *rule.gradients(state.data())});
      while (!delayed.empty() && draws.uniform() < 0.5) {
        paper.apply(delayed.front()[0], delayed.front()[1]);
        rule.apply(state.data(), delayed.front().data());
        delayed.pop_front();
      }
      ASSERT_NEAR(state[0], paper.value(), 1e-12);
    }
  }
}

TEST(AdaptiveRevision, without_delay_it_is_adagrad) {
  const RowRule<double> rule(kAdaptive, 1, false);
  RandomStream draws = Random(5, Purpose::test).stream(0, 0);
  std::vector<double> state(rule.state_width(), 0.0);
  double value = 0, squares = 0;
  for (int i = 0; i < 200; ++i) {
    const double gradient = 2 * draws.uniform() - 1;
    rule.apply(state.data(), &gradient);
    squares += gradient * gradient;
    value -= kRate / std::sqrt(1 + squares) * gradient;
    ASSERT_NEAR(state[0], value, 1e-12);
  }
}

/// Every worker pulls all values towards its own target; beside it the same gradients are summed in a plain table, from
/// which the test learns what a worker had seen.
class Pulling final : public TableProgram {
 public:
  struct Applied {
    Clock clock;
    double gradient, seen;
  };
  Pulling(const Engine& engine, const WorkerMap& map)
      : TableProgram(engine, map),
        values_(tables().add<double>({.name = "values", .rows = 1, .rule = kAdaptive})),
        sums_(tables().add<double>({.name = "sums", .rows = 1})) {}

  void run_unit(const WorkUnit& unit, UnitContext& context) override {
    const double seen = sums_.read(context, 0)[0];
    const double gradient = values_.read(context, 0)[0] - (1 + unit.worker);
    values_.add(context, 0, 0, gradient);
    sums_.add(context, 0, 0, gradient);
    current_.push_back({unit.clock, gradient, seen});
  }
  /// Batches are handed over in the order in which workers end, and applied clock by clock.
  void worker_ended(WorkerId worker, Clock clock) override {
    TableProgram::worker_ended(worker, clock);
    applied.push_back(current_.back());
  }
  Evaluation evaluate(Engine&, bool) override { return {}; }
  double value() const { return values_.row(0)[0]; }

  std::vector<Applied> applied;

 private:
  Table<double>& values_;
  Table<double>& sums_;
  std::vector<Applied> current_;
};

TEST(AdaptiveRevision, table_steps_as_the_paper_does_when_gradients_are_late) {
  for (const Clock staleness : {0, 1, 3}) {
    EngineOptions options = toy::options_with(1, staleness, "");
    options.consistency = staleness == 0 ? Consistency::bsp : Consistency::ssp;
    Engine engine(options);
    const WorkerMap map(3, 1, 0, 1);
    Pulling program(engine, map);
    DataParallelSchedule schedule(std::vector<std::uint32_t>(3, 1));
    Executor executor(engine, schedule, program, 3, {});
    executor.run(30);
    std::stable_sort(program.applied.begin(), program.applied.end(),
                     [](const auto& a, const auto& b) { return a.clock < b.clock; });
    Paper paper;
    if (staleness == 0) {  // one step a clock, with the sum of gradients
      for (std::size_t i = 0; i < program.applied.size(); i += 3) {
        double sum = 0;
        for (std::size_t k = 0; k < 3; ++k) sum += program.applied[i + k].gradient;
        paper.apply(sum, program.applied[i].seen);
      }
    } else {
      for (const auto& [clock, gradient, seen] : program.applied) paper.apply(gradient, seen);
    }
    EXPECT_NEAR(program.value(), paper.value(), 1e-9) << "staleness " << staleness;
    EXPECT_NEAR(program.value(), 2, 0.5) << "the mean of the targets";
  }
}

TEST(AdaptiveRevision, needs_a_rate_and_floating_point) {
  Engine engine(toy::options_with(1, 0, ""));
  TableStore store(engine, WorkerMap(1, 1, 0, 1));
  const UpdateRule no_rate{.kind = UpdateRule::Kind::adaptive_revision, .rate = 0};
  EXPECT_THROW(store.add<float>({.name = "t", .rows = 1, .rule = no_rate}), Error);
  EXPECT_THROW(store.add<std::int32_t>({.name = "t", .rows = 1, .rule = kAdaptive}), Error);
}

}  // namespace
}  // namespace orrery
