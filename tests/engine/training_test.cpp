// The loop of cuts: what is evaluated when, why it stops, and that a resumed training is the one that was not stopped.
#include "engine/training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/error.h"
#include "tests/engine/toy_programs.h"

namespace orrery {
namespace {

/// Weaving with a made-up objective: 1 / (iterations done), and `valid` from a given list.
class Trained final : public Trainee {
 public:
  Trained(WorkerId workers, BlockId blocks) : weaving(workers, blocks) {}
  void run_unit(const WorkUnit& unit, UnitContext& context) override {
    weaving.run_unit(unit, context);
    clock_ = std::max(clock_.load(), unit.clock + 1);
  }
  Evaluation evaluate(Engine&, bool exact) override {
    evaluations += exact ? 0 : 1;
    Evaluation out;
    out.objective = 1.0 / static_cast<double>(clock_.load());
    if (!valid.empty()) out.valid = valid.at(static_cast<std::size_t>(clock_.load()) - 1);
    return out;
  }
  std::vector<StateSection> save_state() const override {
    const std::vector<std::uint64_t> clock{static_cast<std::uint64_t>(clock_.load())};
    return {{"w", toy::bytes_of(weaving.worker_state)},
            {"b", toy::bytes_of(weaving.block_state)},
            {"c", toy::bytes_of(clock)}};
  }
  void load_state(const std::vector<StateSection>& sections) override {
    weaving.worker_state = toy::values_of<std::uint64_t>(sections.at(0).bytes);
    weaving.block_state = toy::values_of<std::uint64_t>(sections.at(1).bytes);
    clock_ = static_cast<Clock>(toy::values_of<std::uint64_t>(sections.at(2).bytes).at(0));
  }
  void keep_best() override { best = save_state(); }
  void restore_best() override { load_state(best); }

  toy::Weaving weaving;
  std::vector<double> valid;
  std::vector<StateSection> best;
  int evaluations = 0;

 private:
  std::atomic<Clock> clock_{0};
};

struct Recorder final : TrainingObserver {
  void evaluated(const ProgressPoint& point) override { points.push_back(point); }
  void checkpoint(Clock iteration, std::vector<StateSection>&& state) override {
    checkpoints[iteration] = std::move(state);
  }
  std::vector<ProgressPoint> points;
  std::map<Clock, std::vector<StateSection>> checkpoints;
};

struct Bench {
  explicit Bench(Clock staleness = 0) : engine(toy::options_with(2, staleness)) { options.workers = 4; }
  TrainResult run(const std::vector<StateSection>* from = nullptr) {
    trainee = std::make_unique<Trained>(4, 8);
    trainee->valid = valid;
    return train(engine, schedule, *trainee, options, recorder, interrupted, from);
  }
  Engine engine;
  RotationSchedule schedule{4, 8, 1};
  TrainOptions options;
  Recorder recorder;
  std::atomic<bool> interrupted{false};
  std::vector<double> valid;
  std::unique_ptr<Trained> trainee;
};

TEST(Training, runs_the_iterations_and_evaluates_as_often_as_asked) {
  Bench bench;
  bench.options.stop.iterations = 10;
  bench.options.evaluate_every = 4;
  const TrainResult result = bench.run();
  EXPECT_EQ(result.iterations, 10);
  EXPECT_EQ(result.stopped_by, StoppedBy::iterations);
  std::vector<Clock> at;
  for (const auto& point : bench.recorder.points) at.push_back(point.iteration);
  EXPECT_EQ(at, (std::vector<Clock>{4, 8, 10}));
  EXPECT_EQ(bench.trainee->weaving.block_state, toy::weave_serially(bench.schedule, 4, 10).block_state);
  for (std::size_t i = 1; i < bench.recorder.points.size(); ++i) {
    EXPECT_GE(bench.recorder.points[i].seconds, bench.recorder.points[i - 1].seconds);
  }
}

TEST(Training, several_clocks_make_an_iteration) {
  Bench bench;
  bench.options.stop.iterations = 3;
  bench.options.clocks_per_iteration = 2;
  EXPECT_EQ(bench.run().iterations, 3);
  EXPECT_EQ(bench.trainee->weaving.block_state, toy::weave_serially(bench.schedule, 4, 6).block_state);
}

TEST(Training, stops_at_the_target) {
  Bench bench;
  bench.options.stop.iterations = 100;
  bench.options.stop.target = 0.125;
  const TrainResult result = bench.run();
  EXPECT_EQ(result.stopped_by, StoppedBy::target);
  EXPECT_EQ(result.iterations, 8);
}

TEST(Training, stops_when_the_objective_settles) {
  Bench bench;
  bench.options.stop.iterations = 1000;
  bench.options.stop.tolerance = 0.01;
  const TrainResult result = bench.run();
  EXPECT_EQ(result.stopped_by, StoppedBy::tolerance);
  EXPECT_NEAR(static_cast<double>(result.iterations), 100, 1);
}

TEST(Training, early_stopping_keeps_the_best_on_held_out_data) {
  Bench bench;
  bench.valid = {5, 4, 3, 3.5, 3.4, 3.3, 3.2, 3.1, 3.05, 1};
  bench.options.has_valid = true;
  bench.options.stop.iterations = 10;
  bench.options.stop.patience = 3;
  const TrainResult result = bench.run();
  EXPECT_EQ(result.stopped_by, StoppedBy::validation);
  EXPECT_EQ(result.iterations, 6);
  EXPECT_EQ(result.best_iteration, 3);
  EXPECT_EQ(*result.final.valid, 3);
  EXPECT_EQ(bench.trainee->weaving.block_state, toy::weave_serially(bench.schedule, 4, 3).block_state);
}

TEST(Training, no_iterations_is_a_valid_request) {
  Bench bench;
  bench.options.stop.iterations = 0;
  EXPECT_EQ(bench.run().iterations, 0);
}

TEST(Training, time_ends_it_between_iterations) {
  Bench bench;
  bench.options.stop.iterations = 1'000'000;
  bench.options.stop.max_seconds = 0.05;
  bench.options.evaluate_every = 1'000'000;
  const TrainResult result = bench.run();
  EXPECT_EQ(result.stopped_by, StoppedBy::seconds);
  EXPECT_GT(result.iterations, 0);
  EXPECT_EQ(bench.trainee->weaving.block_state, toy::weave_serially(bench.schedule, 4, result.iterations).block_state);
}

TEST(Training, an_interrupt_finishes_the_clock_and_writes_a_checkpoint) {
  for (const Clock staleness : {0, 2}) {
    Bench bench(staleness);
    bench.options.stop.iterations = 1'000'000;
    bench.options.evaluate_every = 1'000'000;
    bench.options.checkpoint_every = 1'000'000;
    bench.trainee = nullptr;
    std::atomic<bool>& flag = bench.interrupted;
    struct Interrupting final : TrainingObserver {
      void checkpoint(Clock at, std::vector<StateSection>&& state) override {
        iteration = at;
        sections = std::move(state);
      }
      Clock iteration = -1;
      std::vector<StateSection> sections;
    } observer;
    Trained trainee(4, 8);
    trainee.weaving.before_unit = [&](const WorkUnit& unit) { flag = flag || unit.clock == 7; };
    const TrainResult result = train(bench.engine, bench.schedule, trainee, bench.options, observer, flag);
    EXPECT_EQ(result.stopped_by, StoppedBy::interrupt);
    EXPECT_GE(result.iterations, 8);
    EXPECT_LE(result.iterations, 8 + staleness);
    EXPECT_EQ(observer.iteration, result.iterations);
    EXPECT_EQ(toy::values_of<std::uint64_t>(observer.sections.at(1).bytes),
              toy::weave_serially(bench.schedule, 4, result.iterations).block_state);
  }
}

TEST(Training, an_interrupt_within_an_iteration_of_several_clocks_finishes_it) {
  for (const Clock at : {1, 5, 6, 7}) {
    Bench bench;
    bench.options.stop.iterations = 1000;
    bench.options.stop.tolerance = 1e-3;  // an iteration judged twice would seem to have come to rest
    bench.options.clocks_per_iteration = 4;
    bench.options.checkpoint_every = 1;
    Trained trainee(4, 8);
    trainee.weaving.before_unit = [&](const WorkUnit& unit) {
      if (unit.clock == at) bench.interrupted = true;
    };
    const TrainResult result =
        train(bench.engine, bench.schedule, trainee, bench.options, bench.recorder, bench.interrupted);
    EXPECT_EQ(result.stopped_by, StoppedBy::interrupt);
    EXPECT_EQ(result.iterations, at / 4 + 1);
    EXPECT_EQ(bench.recorder.points.size(), static_cast<std::size_t>(result.iterations)) << "each evaluated once";
    const auto& sections = bench.recorder.checkpoints.at(result.iterations);
    EXPECT_EQ(toy::values_of<std::uint64_t>(sections.at(1).bytes),
              toy::weave_serially(bench.schedule, 4, 4 * result.iterations).block_state);
  }
}

TEST(Training, a_resumed_training_ends_like_one_that_was_not_stopped) {
  Bench whole;
  whole.options.stop.iterations = 12;
  whole.options.checkpoint_every = 5;
  whole.run();
  const auto expected = whole.trainee->weaving.block_state;
  ASSERT_TRUE(whole.recorder.checkpoints.contains(5));
  ASSERT_TRUE(whole.recorder.checkpoints.contains(10));
  for (const Clock from : {5, 10}) {
    Bench rest;
    rest.options = whole.options;
    const TrainResult result = rest.run(&whole.recorder.checkpoints.at(from));
    EXPECT_EQ(result.iterations, 12);
    EXPECT_EQ(rest.trainee->weaving.block_state, expected);
    EXPECT_GE(result.seconds, rest.recorder.points.front().seconds);
  }
}

TEST(Training, sections_that_are_no_checkpoint_are_refused) {
  Bench bench;
  const std::vector<StateSection> none;
  EXPECT_THROW(bench.run(&none), Error);
  const std::vector<StateSection> cut{{"training", Bytes(3)}};
  EXPECT_THROW(bench.run(&cut), Error);
}

TEST(Training, on_a_cluster_all_nodes_stop_together) {
  std::mutex mutex;
  std::vector<Clock> ends;
  toy::on_cluster(3, toy::options_with(1), [&](NodeId node, Engine& engine) {
    RotationSchedule schedule(6, 6, 1);
    Trained trainee(6, 6);
    TrainOptions options;
    options.workers = 6;
    options.stop.iterations = 1000;
    std::atomic<bool> interrupted{false};
    trainee.weaving.before_unit = [&](const WorkUnit& unit) {
      interrupted = interrupted || (node == 1 && unit.clock == 4);
    };
    // Blocks travel, so the toy's own packing is needed: the trainee passes it on.
    struct Travelling final : Trainee {
      explicit Travelling(Trained& t) : inner(t) {}
      void run_unit(const WorkUnit& unit, UnitContext& context) override { inner.run_unit(unit, context); }
      Bytes pack_block(BlockId block, std::uint32_t group) override { return inner.weaving.pack_block(block, group); }
      void unpack_block(BlockId block, std::uint32_t group, std::span<const std::byte> bytes) override {
        inner.weaving.unpack_block(block, group, bytes);
      }
      Evaluation evaluate(Engine& e, bool exact) override { return inner.evaluate(e, exact); }
      std::vector<StateSection> save_state() const override { return inner.save_state(); }
      void load_state(const std::vector<StateSection>& s) override { inner.load_state(s); }
      void keep_best() override { inner.keep_best(); }
      void restore_best() override { inner.restore_best(); }
      Trained& inner;
    } travelling(trainee);
    Recorder recorder;
    const TrainResult result = train(engine, schedule, travelling, options, recorder, interrupted);
    const std::lock_guard lock(mutex);
    EXPECT_EQ(result.stopped_by, StoppedBy::interrupt);
    ends.push_back(result.iterations);
  });
  EXPECT_EQ(ends, std::vector<Clock>(3, ends.front()));
}

}  // namespace
}  // namespace orrery
