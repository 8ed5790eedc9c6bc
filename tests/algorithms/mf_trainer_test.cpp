// Matrix factorisation as a whole: from a file to a model and back.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

#include "algorithms/algorithm.h"
#include "algorithms/mf.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/executor.h"
#include "engine/random.h"
#include "tests/engine/toy_programs.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

class MfTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("orrery-mf-" + std::to_string(getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  /// Low-rank ratings: mean + biases + w·h (+ noise), popular items first. Writes FILE and, with a share, FILE.test.
  void write_ratings(const std::string& name, std::uint32_t users, std::uint32_t items, std::size_t rank,
                     double density, double noise, double held_out = 0) const {
    const Random random(5, Purpose::test);
    std::ofstream train(path(name)), test(path(name + ".test"));
    const auto factor = [&](std::uint64_t id, std::size_t d) { return random.normal(static_cast<Clock>(d), id); };
    for (std::uint32_t u = 0; u < users; ++u) {
      for (std::uint32_t i = 0; i < items; ++i) {
        RandomStream draw = random.stream(1000, std::uint64_t{u} * items + i);
        if (draw.uniform() > density * 2.0 / (1.0 + 3.0 * i / items)) continue;
        double r = 3.5 + 0.3 * factor(u, 500) + 0.4 * factor(users + i, 501);
        for (std::size_t d = 0; d < rank; ++d) r += 0.4 * factor(u, d) * factor(users + i, d);
        r += noise * draw.normal();
        (draw.uniform() < held_out ? test : train) << "u" << u << " i" << i << ' ' << r << '\n';
      }
    }
  }

  struct Outcome {
    std::string checksum;
    TrainResult result;
    std::vector<std::string> warnings;
  };
  Outcome train_model(const std::string& data, const std::map<std::string, std::string>& params,
                      const EngineOptions& options = {}, WorkerId workers = 8, Clock iterations = 6,
                      const std::string& valid = {}, const std::string& out = "run",
                      const std::string& init = {}) const {
    Engine engine(options);
    return train_on(engine, data, params, workers, iterations, valid, out, init);
  }
  /// The same on several nodes, each a thread of one process: what the first of them comes to.
  Outcome train_on_cluster(NodeId nodes, const std::string& data, const std::map<std::string, std::string>& params,
                           WorkerId workers, Clock iterations, const std::string& valid = {},
                           const std::string& init = {}) const {
    Outcome first;
    toy::on_cluster(nodes, with(1), [&](NodeId node, Engine& engine) {
      Outcome outcome = train_on(engine, data, params, workers, iterations, valid, "run", init);
      if (node == 0) first = std::move(outcome);
    });
    return first;
  }
  Outcome train_on(Engine& engine, const std::string& data, const std::map<std::string, std::string>& params,
                   WorkerId workers, Clock iterations, const std::string& valid, const std::string& out,
                   const std::string& init) const {
    const auto algorithm = make_mf();
    for (const auto& [name, value] : params) algorithm->params().set(name, value);
    DataRequest request;
    request.path = path(data);
    if (!valid.empty()) request.valid = path(valid);
    if (!init.empty()) request.init = path(init);
    algorithm->load(request, engine);
    const Training training = algorithm->prepare(engine, workers, 1, "auto");
    TrainOptions train_options;
    train_options.workers = workers;
    train_options.stop.iterations = iterations;
    train_options.has_valid = !valid.empty();
    train_options.stop.patience = valid.empty() ? 0 : 3;
    train_options.clocks_per_iteration = training.clocks_per_iteration;
    TrainingObserver silent;
    const std::atomic<bool> interrupted{false};
    Outcome outcome;
    outcome.result = train(engine, *training.schedule, *training.trainee, train_options, silent, interrupted);
    if (engine.transport().node() != 0) return outcome;
    fs::create_directories(path(out));
    ModelWriter writer(path(out));
    algorithm->write_model(writer, engine);
    outcome.checksum = writer.finish("{\"algorithm\":\"mf\"}");
    outcome.warnings = engine.warnings();
    return outcome;
  }

  static EngineOptions with(unsigned threads, const std::string& topology = {}) {
    EngineOptions options;
    options.threads = threads;
    options.topology = topology;
    return options;
  }

  fs::path directory_;
};

TEST_F(MfTest, the_same_workers_give_the_same_bits_on_any_threads_and_domains) {
  write_ratings("r", 120, 60, 4, 0.3, 0.1);
  const std::string expected = train_model("r", {}, with(1)).checksum;
  for (const unsigned threads : {2U, 3U, 8U}) EXPECT_EQ(train_model("r", {}, with(threads)).checksum, expected);
  for (const char* topology : {"numa:2 core:2 pu:1", "numa:4 core:1 pu:1"}) {
    for (const unsigned threads : {1U, 4U}) {
      EXPECT_EQ(train_model("r", {}, with(threads, topology)).checksum, expected) << topology;
    }
  }
  EXPECT_NE(train_model("r", {}, with(1), 4).checksum, expected) << "other workers, other grid";
}

TEST_F(MfTest, nodes_change_no_bit_of_a_rotation) {
  write_ratings("r", 120, 60, 4, 0.3, 0.5, 0.2);
  std::ofstream(path("r.test"), std::ios::app) << "stranger i1 4\nu1 unheard-of 3\n";
  // Noisy data and no penalty: the best state is not the last one.
  const std::map<std::string, std::string> params{{"reg", "0"}, {"rate-decay", "0"}, {"clip", "true"}};
  const Outcome one = train_model("r", params, with(2), 7, 30, "r.test");
  ASSERT_LT(one.result.best_iteration, one.result.iterations);
  for (const NodeId nodes : {2U, 3U, 7U}) {
    const Outcome several = train_on_cluster(nodes, "r", params, 7, 30, "r.test");
    EXPECT_EQ(several.checksum, one.checksum);
    EXPECT_EQ(several.result.best_iteration, one.result.best_iteration);
    EXPECT_EQ(*several.result.final.valid, *one.result.final.valid);
    EXPECT_EQ(several.result.final.objective, one.result.final.objective);
  }
  const Outcome warm = train_model("r", params, with(1), 7, 2, {}, "warm", "run");
  EXPECT_EQ(train_on_cluster(3, "r", params, 7, 2, {}, "run").checksum, warm.checksum);
}

TEST_F(MfTest, every_level_of_kernels_learns_the_same_to_rounding) {
  write_ratings("r", 120, 60, 4, 0.3, 0.1, 0.1);
  std::vector<double> errors;
  for (int level = 0; level <= static_cast<int>(detect_simd()); ++level) {
    EngineOptions options = with(1);
    options.simd = static_cast<SimdLevel>(level);
    errors.push_back(*train_model("r", {}, options, 8, 10, "r.test").result.final.valid);
  }
  for (const double error : errors) EXPECT_NEAR(error, errors.front(), 1e-3);
}

TEST_F(MfTest, exact_low_rank_data_is_recovered) {
  write_ratings("r", 200, 100, 3, 0.9, 0.0);
  const Outcome outcome = train_model(
      "r", {{"rank", "3"}, {"reg", "0"}, {"bias-damping", "0"}, {"rate-decay", "0"}, {"gain", "0"}}, with(2), 4, 600);
  for (const auto& [name, value] : outcome.result.final.extra) {
    if (name == "train_rmse") {
      EXPECT_LT(value, 1e-3);
    }
  }
}

TEST_F(MfTest, als_recovers_exact_low_rank_data) {
  write_ratings("r", 200, 100, 3, 0.9, 0.0);
  const Outcome outcome =
      train_model("r", {{"solver", "als"}, {"rank", "3"}, {"reg", "0"}, {"bias-damping", "0"}}, with(2), 4, 200);
  for (const auto& [name, value] : outcome.result.final.extra) {
    if (name == "train_rmse") {
      EXPECT_LT(value, 1e-3);
    }
  }
}

TEST_F(MfTest, als_gives_the_same_bits_on_any_threads_and_domains) {
  write_ratings("r", 120, 60, 4, 0.3, 0.1);
  const std::string expected = train_model("r", {{"solver", "als"}}, with(1)).checksum;
  for (const unsigned threads : {2U, 3U, 8U}) {
    EXPECT_EQ(train_model("r", {{"solver", "als"}}, with(threads)).checksum, expected);
  }
  EXPECT_EQ(train_model("r", {{"solver", "als"}}, with(4, "numa:2 core:2 pu:1")).checksum, expected);
}

TEST_F(MfTest, the_objective_of_als_never_rises) {
  write_ratings("r", 150, 80, 6, 0.3, 0.3);
  for (const char* power : {"0", "0.5", "1"}) {
    double last = std::numeric_limits<double>::infinity();
    for (Clock iterations = 1; iterations <= 8; ++iterations) {
      const double objective =
          train_model("r", {{"solver", "als"}, {"rank", "7"}, {"reg-power", power}}, with(1), 4, iterations)
              .result.final.objective;
      EXPECT_LE(objective, last * (1 + 1e-6)) << "reg-power " << power << ", iteration " << iterations;
      last = objective;
    }
  }
}

TEST_F(MfTest, a_schedule_that_the_solver_does_not_run_by_is_refused) {
  write_ratings("r", 20, 10, 2, 0.5, 0.1);
  const auto algorithm = make_mf();
  algorithm->params().set("solver", "als");
  Engine engine(with(1));
  DataRequest request;
  request.path = path("r");
  algorithm->load(request, engine);
  EXPECT_THROW(algorithm->prepare(engine, 2, 1, "rotation"), Error);
}

TEST_F(MfTest, scale_and_shift_of_the_ratings_change_nothing_but_units) {
  write_ratings("r", 150, 80, 4, 0.3, 0.1, 0.1);
  for (const auto& [factor, shift] : std::vector<std::pair<double, double>>{{1000, 0}, {0.001, 0}, {20, -100}}) {
    for (const char* name : {"r", "r.test"}) {
      std::ifstream in(path(name));
      std::ofstream out(path("s" + std::string(name)));
      out.precision(12);
      std::string user, item;
      double rating = 0;
      while (in >> user >> item >> rating) out << user << ' ' << item << ' ' << rating * factor + shift << '\n';
    }
    const double plain = *train_model("r", {}, with(1), 8, 10, "r.test").result.final.valid;
    const double scaled = *train_model("sr", {}, with(1), 8, 10, "sr.test").result.final.valid;
    EXPECT_NEAR(scaled / factor, plain, 1e-3 * plain);
  }
}

TEST_F(MfTest, the_model_on_disk_predicts_as_the_training_measured) {
  write_ratings("r", 150, 80, 4, 0.3, 0.2, 0.1);
  const Outcome outcome = train_model("r", {}, with(2), 8, 10, "r.test");
  Engine engine(with(2));
  const auto model = open_mf(ModelReader(path("run")));
  const ValueList values = model->evaluate(path("r.test"), "", engine);
  EXPECT_NEAR(number_in(values, "rmse"), *outcome.result.final.valid, 1e-4);
  std::stringstream lines;
  model->predict(path("r.test"), "", engine, lines);
  std::ifstream in(path("r.test"));
  std::string user, item;
  double rating = 0, prediction = 0, squares = 0;
  std::size_t count = 0;
  for (; in >> user >> item >> rating; ++count) {
    ASSERT_TRUE(lines >> prediction);
    squares += (rating - prediction) * (rating - prediction);
  }
  EXPECT_FALSE(lines >> prediction);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(count)), number_in(values, "rmse"), 1e-4);
}

TEST_F(MfTest, biases_alone_beat_the_mean_and_factors_beat_biases) {
  write_ratings("r", 400, 200, 2, 0.4, 0.2, 0.1);
  const double full = *train_model("r", {{"rank", "8"}}, with(2), 8, 20, "r.test").result.final.valid;
  EXPECT_LT(full, 0.45) << "noise is 0.2, the factors' part of the spread 0.57";
}

TEST_F(MfTest, unknown_users_and_items_are_predicted_from_what_is_known) {
  write_ratings("r", 80, 40, 2, 0.5, 0.1);
  train_model("r", {}, with(1));
  Engine engine(with(1));
  const auto model = open_mf(ModelReader(path("run")));
  std::ofstream(path("pairs")) << "u1 i1\nnobody i1\nu1 nothing\nnobody nothing\n";
  std::stringstream lines;
  model->predict(path("pairs"), "", engine, lines);
  double known = 0, no_user = 0, no_item = 0, nothing = 0;
  ASSERT_TRUE(lines >> known >> no_user >> no_item >> nothing);
  for (const double value : {known, no_user, no_item, nothing}) EXPECT_TRUE(value > 0 && value < 7) << value;
  EXPECT_NE(no_user, nothing);
  EXPECT_NE(no_item, nothing);
  EXPECT_FALSE(engine.warnings().empty());
}

TEST_F(MfTest, recommends_unseen_items_best_first) {
  write_ratings("r", 80, 40, 2, 0.4, 0.1);
  train_model("r", {}, with(1));
  const auto model = open_mf(ModelReader(path("run")));
  std::map<std::string, bool> seen;
  std::ifstream in(path("r"));
  std::string user, item;
  double rating = 0;
  while (in >> user >> item >> rating) {
    if (user == "u3") seen[item] = true;
  }
  const auto best = model->recommend("u3", 10);
  ASSERT_EQ(best.size(), 10U);
  for (std::size_t k = 0; k < best.size(); ++k) {
    EXPECT_FALSE(seen.contains(best[k].first)) << best[k].first;
    if (k > 0) {
      EXPECT_LE(best[k].second, best[k - 1].second);
    }
  }
  EXPECT_EQ(model->recommend("nobody", 5).size(), 5U);
  EXPECT_LE(model->recommend("u3", 1000).size(), 40U);
}

TEST_F(MfTest, a_new_users_factors_minimise_the_ridge_objective) {
  write_ratings("r", 200, 60, 3, 0.5, 0.1);
  train_model("r", {{"rank", "3"}}, with(1), 8, 20);
  Engine engine(with(1));
  const auto model = open_mf(ModelReader(path("run")));
  std::ofstream(path("new")) << "fresh i1 5\nfresh i2 2\nfresh i3 4.5\nfresh i4 1\nother i1 3\n";
  std::stringstream lines;
  model->infer(path("new"), "", engine, lines);
  std::string name;
  std::vector<double> x(4);
  ASSERT_TRUE(lines >> name >> x[0] >> x[1] >> x[2] >> x[3]);
  EXPECT_EQ(name, "fresh");
  const ModelReader reader(path("run"));
  const auto factors = reader.read<float>("item_factors");
  const auto bias = reader.read<float>("item_bias");
  const auto constants = reader.read<double>("constants");
  const auto items = reader.read_text("items");
  // Error variance over the variance of trained users' factors: the ridge of a Gaussian prior.
  double variance = 0;
  const auto trained = reader.read<float>("user_factors");
  for (const float f : trained) variance += double{f} * double{f} / static_cast<double>(trained.size());
  const double penalty = constants.at(1) * constants.at(1) / variance;
  const auto objective = [&](const std::vector<double>& y) {
    double sum = constants.at(7) * y[0] * y[0];
    for (std::size_t d = 0; d < 3; ++d) sum += penalty * y[d + 1] * y[d + 1];
    for (const auto& [item, rating] : std::map<std::string, double>{{"i1", 5}, {"i2", 2}, {"i3", 4.5}, {"i4", 1}}) {
      const auto i = static_cast<std::size_t>(std::find(items.begin(), items.end(), item) - items.begin());
      double error = rating - constants[0] - double{bias[i]} - y[0];
      for (std::size_t d = 0; d < 3; ++d) error -= y[d + 1] * double{factors[i * 3 + d]};
      sum += error * error;
    }
    return sum;
  };
  for (std::size_t d = 0; d < 4; ++d) {
    for (const double step : {1e-3, -1e-3}) {
      auto moved = x;
      moved[d] += step;
      EXPECT_GE(objective(moved), objective(x));
    }
  }
}

TEST_F(MfTest, edge_shapes_are_accepted) {
  std::ofstream(path("one_user")) << "a x 1\na y 2\na z 3\n";
  std::ofstream(path("one_item")) << "a x 1\nb x 2\nc x 3\n";
  std::ofstream(path("one")) << "a x 4\n";
  std::ofstream(path("equal")) << "a x 2\nb y 2\na y 2\n";
  std::ofstream(path("doubled")) << "a x 2\na x 4\nb x 3\n";
  for (const char* name : {"one_user", "one_item", "one", "equal", "doubled"}) {
    const Outcome outcome = train_model(name, {}, with(2), 4);
    EXPECT_TRUE(std::isfinite(outcome.result.final.objective)) << name;
    EXPECT_TRUE(std::any_of(outcome.warnings.begin(), outcome.warnings.end(), [](const std::string& w) {
      return w.starts_with("rank 16 is above");
    })) << name;
    Engine engine(with(1));
    EXPECT_LT(number_in(open_mf(ModelReader(path("run")))->evaluate(path(name), "", engine), "rmse"), 1.5) << name;
  }
}

TEST_F(MfTest, a_warm_start_goes_on_where_the_model_was) {
  write_ratings("r", 150, 80, 4, 0.3, 0.1, 0.1);
  const double first = *train_model("r", {}, with(1), 8, 15, "r.test", "one").result.final.valid;
  const double anew = *train_model("r", {}, with(1), 8, 1, "r.test", "two").result.final.valid;
  const double warm = *train_model("r", {}, with(1), 8, 1, "r.test", "three", "one").result.final.valid;
  EXPECT_LT(warm, anew);
  EXPECT_LT(warm, 1.1 * first);
  EXPECT_THROW(train_model("r", {{"rank", "7"}}, with(1), 8, 1, "", "four", "one"), Error);
}

TEST_F(MfTest, loading_and_laying_out_end_wherever_the_caller_says_so) {
  write_ratings("r", 120, 60, 4, 0.3, 0.1, 0.1);
  std::atomic<int> asked{0};
  int stop_at = 0;
  EngineOptions options = with(2);
  options.before_body = [&] {
    if (++asked == stop_at) throw Error(ErrorKind::interrupted, "enough");
  };
  const auto load_and_lay_out = [&] {
    const auto algorithm = make_mf();
    Engine engine(options);
    DataRequest request;
    request.path = path("r");
    request.valid = path("r.test");
    algorithm->load(request, engine);
    static_cast<void>(algorithm->prepare(engine, 8, 1, "auto"));
  };
  load_and_lay_out();
  const int all = asked;
  EXPECT_GT(all, 20);
  for (stop_at = 1; stop_at <= all; ++stop_at) {
    asked = 0;
    EXPECT_THROW(load_and_lay_out(), Error) << "at " << stop_at << " of " << all;
  }
}

TEST_F(MfTest, divergence_is_an_error_with_advice) {
  write_ratings("r", 100, 50, 2, 0.5, 0.1);
  try {
    train_model("r", {{"rate", "1000"}, {"gain", "0"}, {"reg", "0"}}, with(1), 4, 50);
    FAIL() << "a step of 1000 must diverge";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("--rate"), std::string::npos);
  }
}

TEST_F(MfTest, a_recorded_order_replays_to_the_same_parameters) {
  write_ratings("r", 120, 60, 4, 0.3, 0.1);
  std::vector<Bytes> states;
  std::vector<UnitRecord> trace;
  for (const bool replayed : {false, true}) {
    const auto algorithm = make_mf();
    Engine engine(with(replayed ? 1 : 4));
    DataRequest request;
    request.path = path("r");
    algorithm->load(request, engine);
    const Training training = algorithm->prepare(engine, 8, 1, "auto");
    Executor executor(engine, *training.schedule, *training.trainee, 8,
                      {.start = 0, .record_trace = true, .should_stop = {}});
    if (replayed) {
      executor.replay(4, trace);
    } else {
      executor.run(4);
      trace = executor.trace();
    }
    states.push_back(training.trainee->save_state().at(0).bytes);
  }
  EXPECT_EQ(states[0], states[1]);
}

}  // namespace
}  // namespace orrery
