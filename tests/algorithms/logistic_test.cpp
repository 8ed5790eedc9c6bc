// Logistic regression from a file to a model and back, against a slow oracle written from the objective alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "algorithms/algorithm.h"
#include "algorithms/labelled_rows.h"
#include "algorithms/logistic_kernels.h"
#include "algorithms/logistic_model.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/random.h"
#include "tests/algorithms/linear_fixture.h"

namespace orrery {
namespace {

/// Dense rows in double, and the objective as it stands in `orrery describe logistic`.
struct LogisticOracle {
  std::vector<std::vector<double>> x;
  std::vector<double> y;  ///< −1 or 1

  double objective(const std::vector<double>& w, double b, double l1, double l2) const {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += std::log1p(std::exp(-y[i] * margin(i, w, b)));
    double penalty = 0;
    for (const double v : w) penalty += l1 * std::abs(v) + l2 * v * v / 2;
    return sum / static_cast<double>(x.size()) + penalty;
  }
  double margin(std::size_t i, const std::vector<double>& w, double b) const {
    double m = b;
    for (std::size_t j = 0; j < w.size(); ++j) m += w[j] * x[i][j];
    return m;
  }
  /// The minimum by accelerated proximal gradient steps: nothing of Newton's method in it.
  double minimum(double l1, double l2, bool intercept) const {
    const std::size_t p = x[0].size();
    double bound = l2 + 0.25;
    for (const auto& row : x) {
      for (const double v : row) bound += 0.25 * v * v / static_cast<double>(x.size());
    }
    std::vector<double> w(p + 1, 0.0), before = w, at = w;
    for (int step = 1; step <= 5000; ++step) {
      std::vector<double> g(p + 1, 0.0);
      const std::vector<double> head(at.begin(), at.end() - 1);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double d = -y[i] / (1 + std::exp(y[i] * margin(i, head, at[p]))) / static_cast<double>(x.size());
        for (std::size_t j = 0; j < p; ++j) g[j] += d * x[i][j];
        g[p] += intercept ? d : 0.0;
      }
      before = w;
      for (std::size_t j = 0; j <= p; ++j) {
        const double to = at[j] - (g[j] + (j < p ? l2 * at[j] : 0.0)) / bound;
        w[j] = j < p ? std::copysign(std::max(std::abs(to) - l1 / bound, 0.0), to) : to;
        at[j] = w[j] + (step - 1.0) / (step + 2.0) * (w[j] - before[j]);
      }
    }
    return objective({w.begin(), w.end() - 1}, w[p], l1, l2);
  }
};

class LogisticTest : public LinearTest {
 protected:
  LogisticTest() : LinearTest("logistic") {}

  /// Rows of a logistic model; a third of the values is 0. `ones`: all others are 1.
  LogisticOracle write_rows(const std::string& name, std::size_t rows, std::size_t columns, bool ones = false,
                            bool zero_one = false, std::uint64_t seed = 3) const {
    const Random random(seed, Purpose::test);
    LogisticOracle oracle;
    std::ofstream file(path(name));
    for (std::size_t i = 0; i < rows; ++i) {
      RandomStream draw = random.stream(0, i);
      std::vector<double> x(columns, 0.0);
      double m = -0.3;
      for (std::size_t j = 0; j < columns; ++j) {
        if (draw.uniform() < 1.0 / 3) continue;
        x[j] = ones ? 1.0 : static_cast<double>(static_cast<float>(draw.normal()));
        m += x[j] * (j % 3 == 0 ? 1.0 : j % 3 == 1 ? -0.7 : 0.0);
      }
      const bool positive = draw.uniform() < 1 / (1 + std::exp(-m));
      file << (positive ? 1 : zero_one ? 0 : -1);
      for (std::size_t j = 0; j < columns; ++j) {
        if (x[j] != 0) file << ' ' << j + 1 << ':' << static_cast<float>(x[j]);
      }
      file << '\n';
      oracle.x.push_back(x);
      oracle.y.push_back(positive ? 1 : -1);
    }
    return oracle;
  }
};

TEST_F(LogisticTest, reaches_the_minimum_for_every_penalty) {
  const LogisticOracle oracle = write_rows("rows", 300, 12);
  for (const bool intercept : {true, false}) {
    for (const auto& [penalty, l1, l2] : {std::tuple{"l2", 0.0, 0.02}, {"l1", 0.02, 0.0}, {"elastic", 0.005, 0.015}}) {
      Params params{{"penalty", penalty}, {"lambda", "0.02"}, {"intercept", intercept ? "true" : "false"}};
      if (l1 > 0 && l2 > 0) params["l1-ratio"] = "0.25";
      const Outcome outcome = train_model(job(params));
      const double minimum = oracle.minimum(l1, l2, intercept);
      EXPECT_NEAR(outcome.result.final.objective, minimum, 1e-6 * minimum) << penalty << intercept;
      EXPECT_GE(outcome.value("gap"), outcome.result.final.objective / minimum - 1 - 1e-6) << penalty << intercept;
      EXPECT_LT(outcome.value("gap"), 1e-5) << penalty << intercept;
      EXPECT_EQ(outcome.result.stopped_by, StoppedBy::tolerance);
    }
  }
}

TEST_F(LogisticTest, l1_leaves_weights_at_exactly_zero) {
  write_rows("rows", 300, 12);
  train_model(job({{"penalty", "l1"}, {"lambda", "0.05"}}));
  const std::vector<float> w = weights();
  EXPECT_GT(std::count(w.begin(), w.end(), 0.0F), 3);
  EXPECT_LT(std::count(w.begin(), w.end(), 0.0F), 12);
}

TEST_F(LogisticTest, many_columns_take_the_diagonal_or_blocks_to_the_same_minimum) {
  const LogisticOracle oracle = write_rows("rows", 120, 700);
  for (const auto& [penalty, l1, l2] : {std::tuple{"l2", 0.0, 0.1}, {"l1", 0.02, 0.0}}) {
    const std::string lambda = l1 > 0 ? "0.02" : "0.1";
    const Outcome outcome = train_model(job({{"penalty", penalty}, {"lambda", lambda}}));
    EXPECT_LT(outcome.value("gap"), 1e-5) << penalty;
    std::vector<double> w;
    for (const float v : weights()) w.push_back(double{v});
    const double b = ModelReader(path("run")).read<double>("constants")[0];
    EXPECT_NEAR(outcome.result.final.objective, oracle.objective(w, b, l1, l2), 1e-6) << penalty;
  }
}

TEST_F(LogisticTest, the_same_workers_give_the_same_bits_on_any_threads_and_domains) {
  write_rows("rows", 500, 20, true);
  for (const char* penalty : {"l2", "l1"}) {
    Job one = job({{"penalty", penalty}});
    const std::string expected = train_model(one).checksum;
    for (const unsigned threads : {2U, 4U}) {
      one.engine.threads = threads;
      EXPECT_EQ(train_model(one).checksum, expected) << threads;
    }
    one.engine.topology = "numa:2 core:2 pu:1";
    EXPECT_EQ(train_model(one).checksum, expected);
  }
}

TEST_F(LogisticTest, the_same_workers_give_the_same_bits_on_any_nodes) {
  write_rows("rows", 300, 20);
  write_rows("wide", 80, 600);
  for (const auto& [data, penalty] : {std::pair{"rows", "l2"}, {"rows", "l1"}, {"wide", "l2"}, {"wide", "l1"}}) {
    Job one = job({{"penalty", penalty}, {"lambda", "0.02"}});
    one.data = data;
    one.workers = 7;
    one.stop.iterations = 6;
    const std::string expected = train_model(one).checksum;
    for (const NodeId nodes : {3U, 7U}) {
      EXPECT_EQ(checksums_on(nodes, one), std::vector<std::string>(nodes, expected)) << data << penalty;
    }
  }
}

TEST_F(LogisticTest, kernels_of_all_levels_compute_the_formulas) {
  constexpr std::size_t kRows = 37, kColumns = 9;  // two whole blocks and a part
  const Random random(9, Purpose::test);
  RandomStream draw = random.stream(0, 0);
  std::vector<std::uint64_t> starts{0};
  std::vector<std::uint32_t> columns;
  std::vector<float> values, signs, w(kColumns), d(kColumns);
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::uint32_t c = 0; c < kColumns; ++c) {
      if (draw.uniform() < 0.4) continue;
      columns.push_back(c);
      values.push_back(static_cast<float>(10 * draw.normal()));
    }
    starts.push_back(columns.size());
    signs.push_back(draw.uniform() < 0.5 ? -1.0F : 1.0F);
  }
  for (std::size_t c = 0; c < kColumns; ++c) {
    w[c] = static_cast<float>(draw.normal());
    d[c] = static_cast<float>(draw.normal());
  }
  for (int level = 0; level <= static_cast<int>(detect_simd()); ++level) {
    for (const bool ones : {false, true}) {
      const auto& kernels = logistic::kernels(static_cast<SimdLevel>(level));
      const RowsView view{starts.data(), columns.data(), ones ? nullptr : values.data(), kRows};
      std::vector<newton::Slope> slopes(kColumns), expected(kColumns);
      std::vector<float> margins(kRows), curvature(kRows);
      const auto sums =
          kernels.differentiate(view, signs.data(), {w.data(), 0.5F}, slopes.data(), margins.data(), curvature.data());
      std::vector<double> product(kColumns, 0.0), expected_product(kColumns, 0.0);
      kernels.multiply(view, {d.data(), 0.25F}, curvature.data(), product.data());
      double loss = 0;
      for (std::size_t r = 0; r < kRows; ++r) {
        double m = 0.5, t = 0.25;
        for (std::uint64_t i = starts[r]; i < starts[r + 1]; ++i) {
          m += (ones ? 1.0 : double{values[i]}) * double{w[columns[i]]};
          t += (ones ? 1.0 : double{values[i]}) * double{d[columns[i]]};
        }
        const double y = double{signs[r]}, p = 1 / (1 + std::exp(y * m));
        loss += std::log1p(std::exp(-std::abs(m))) + std::max(-y * m, 0.0);
        for (std::uint64_t i = starts[r]; i < starts[r + 1]; ++i) {
          const double x = ones ? 1.0 : double{values[i]};
          expected[columns[i]].gradient -= y * p * x;
          expected[columns[i]].curvature += p * (1 - p) * x * x;
          expected_product[columns[i]] += p * (1 - p) * t * x;
        }
      }
      EXPECT_NEAR(sums.rows.loss, loss, 1e-5 * loss);
      EXPECT_NEAR(kernels.losses(margins.data(), margins.data(), 0, kRows), loss, 1e-5 * loss);
      for (std::size_t c = 0; c < kColumns; ++c) {
        EXPECT_NEAR(slopes[c].gradient, expected[c].gradient, 1e-3);
        EXPECT_NEAR(slopes[c].curvature, expected[c].curvature, 1e-2);
        EXPECT_NEAR(product[c], expected_product[c], 1e-2);
      }
    }
  }
}

TEST_F(LogisticTest, a_resumed_training_ends_with_the_same_bits) {
  write_rows("rows", 400, 10);
  for (const char* penalty : {"l2", "l1"}) {
    Job whole = job({{"penalty", penalty}, {"lambda", "0.001"}});
    const std::string expected = train_model(whole).checksum;
    for (const Clock cut : {1, 2, 3}) {
      Job part = whole;
      part.stop.iterations = cut;
      part.checkpoint_every = 1;
      Keeper keeper;
      train_model(part, &keeper);
      Job rest = whole;
      rest.resume_from = &keeper.newest;
      EXPECT_EQ(train_model(rest).checksum, expected) << penalty << cut;
    }
  }
}

TEST_F(LogisticTest, many_columns_keep_their_bits_when_resumed_and_on_other_threads) {
  write_rows("rows", 200, 700);
  const Job whole = job({{"lambda", "0.01"}});
  const std::string expected = train_model(whole).checksum;
  for (const Clock cut : {1, 2, 3}) {
    Job part = whole;
    part.stop.iterations = cut;
    part.checkpoint_every = 1;
    Keeper keeper;
    train_model(part, &keeper);
    Job rest = whole;
    rest.resume_from = &keeper.newest;
    rest.engine.threads = static_cast<unsigned>(cut) + 1;
    rest.engine.topology = cut == 3 ? "numa:2 core:2 pu:1" : "";
    EXPECT_EQ(train_model(rest).checksum, expected) << cut;
  }
}

TEST_F(LogisticTest, early_stopping_keeps_the_best_on_held_out_data) {
  write_rows("rows", 40, 30);
  write_rows("other", 400, 30, false, false, 4);
  Job early = job({{"lambda", "1e-6"}});
  early.valid = "other";
  early.stop.patience = 2;
  const Outcome outcome = train_model(early);
  EXPECT_LT(outcome.result.best_iteration, outcome.result.iterations);
  Engine engine(early.engine);
  EXPECT_NEAR(number_in(open()->evaluate(path("other"), "", engine), "log_loss"), *outcome.result.final.valid, 1e-6);
}

TEST_F(LogisticTest, a_resumed_training_goes_back_to_the_best_state_before_the_cut) {
  write_rows("rows", 40, 30);
  write_rows("other", 400, 30, false, false, 4);
  for (const char* solver : {"newton", "sgd"}) {
    Job whole = job({{"lambda", "1e-6"}, {"solver", solver}});
    whole.valid = "other";
    whole.stop.patience = 3;
    const Outcome expected = train_model(whole);
    Job part = whole;
    part.stop.iterations = expected.result.iterations - 1;
    ASSERT_GT(part.stop.iterations, expected.result.best_iteration) << solver;
    part.checkpoint_every = 1;
    Keeper keeper;
    train_model(part, &keeper);
    Job rest = whole;
    rest.resume_from = &keeper.newest;
    const Outcome resumed = train_model(rest);
    EXPECT_EQ(resumed.checksum, expected.checksum) << solver;
    EXPECT_EQ(resumed.result.best_iteration, expected.result.best_iteration) << solver;
  }
}

TEST_F(LogisticTest, a_warm_start_begins_where_the_model_ended) {
  write_rows("rows", 400, 10);
  const Outcome first = train_model(job());
  Job again = job();
  again.init = "run";
  again.out = "again";
  again.stop.iterations = 1;
  EXPECT_NEAR(train_model(again).result.final.objective, first.result.final.objective, 1e-9);
}

TEST_F(LogisticTest, separable_rows_without_a_penalty_end_with_a_warning) {
  write("rows", "1 1:1\n1 1:2 2:1\n-1 1:-1\n-1 1:-3 2:1\n");
  const Outcome outcome = train_model(job({{"lambda", "0"}}));
  ASSERT_EQ(outcome.warnings.size(), 1U);
  EXPECT_NE(outcome.warnings[0].find("no minimum"), std::string::npos);
  EXPECT_LT(outcome.result.iterations, 20);
  EXPECT_EQ(outcome.value("accuracy"), 1.0);
}

TEST_F(LogisticTest, odd_data_are_trained_on) {
  for (const char* text : {"1 1:1\n", "0 1:1\n", "1 1:1\n1 2:1\n", "1 1:0\n-1 1:0\n",
                           "1 1:2 2:0 3:1\n-1 1:2 2:0 3:-1\n1 1:2\n", "1 1:1e18\n-1 1:-1e18 2:1e-18\n-1 1:1e18\n"}) {
    write("rows", text);
    for (const char* penalty : {"l2", "l1"}) {
      const Outcome outcome = train_model(job({{"penalty", penalty}}));
      EXPECT_TRUE(std::isfinite(outcome.result.final.objective)) << text;
      EXPECT_LE(outcome.result.final.objective, std::log(2.0) + 1e-6) << text;
      for (const float w : weights()) EXPECT_TRUE(std::isfinite(w)) << text;
    }
  }
}

TEST_F(LogisticTest, auc_counts_pairs_with_ties_as_half) {
  const std::vector<float> margins{0, 1, 1, -0.0F, 2, -3, 1}, signs{1, 1, -1, -1, -1, -1, 1};
  double pairs = 0;
  for (std::size_t i = 0; i < margins.size(); ++i) {
    for (std::size_t j = 0; j < margins.size(); ++j) {
      if (signs[i] < 0 || signs[j] > 0) continue;
      pairs += margins[i] > margins[j] ? 1 : margins[i] == margins[j] ? 0.5 : 0;
    }
  }
  EXPECT_DOUBLE_EQ(score(margins, signs).auc, pairs / 12);
  EXPECT_TRUE(std::isnan(score(margins, std::vector<float>(7, 1.0F)).auc));
}

TEST_F(LogisticTest, a_model_predicts_probabilities_and_ignores_columns_it_has_not_seen) {
  write_rows("rows", 200, 5, false, true);
  train_model(job());
  write("new", "0 1:1\n7 1:1 9:5\n");
  Engine engine(job().engine);
  std::ostringstream out;
  open()->predict(path("new"), "", engine, out);
  double first = 0, second = 0;
  std::istringstream(out.str()) >> first >> second;
  EXPECT_GT(first, 0);
  EXPECT_LT(first, 1);
  EXPECT_EQ(first, second);
  EXPECT_EQ(engine.warnings().size(), 1U);
  EXPECT_THROW(open()->evaluate(path("new"), "", engine), Error);
}

TEST_F(LogisticTest, verify_accepts_the_run_and_finds_a_changed_file) {
  write_rows("rows", 200, 5);
  const Outcome outcome = train_model(job({{"penalty", "l1"}}));
  Engine engine(job().engine);
  const SparseData data = read_labelled_rows(path("rows"), "", "", engine);
  Model::Run run{.data = path("rows"),
                 .format = "",
                 .valid = {},
                 .data_checksum = data.checksum,
                 .value = outcome.result.final.objective};
  for (const Check& check : open()->verify(run, engine)) EXPECT_TRUE(check.passed) << check.what << check.detail;
  run.value = *run.value * 1.01;
  const auto checks = open()->verify(run, engine);
  EXPECT_TRUE(std::any_of(checks.begin(), checks.end(), [](const Check& check) { return !check.passed; }));
}

TEST_F(LogisticTest, tables_need_a_label_column_and_give_the_same_model) {
  write("rows", "1 1:0.5 2:1\n0 1:-1 2:2\n1 2:3\n0 1:1 2:-1\n");
  write("table", "a,b,class\n0.5,1,1\n-1,2,0\n0,3,1\n1,-1,0\n");
  const std::string expected = train_model(job()).checksum;
  Job table = job({{"label", "class"}});
  table.data = "table";
  EXPECT_EQ(train_model(table).checksum, expected);
  table.params.clear();
  EXPECT_THROW(train_model(table), Error);
}

TEST_F(LogisticTest, other_labels_and_options_without_effect_are_refused) {
  write("rows", "1 1:1\n2 1:2\n3 1:1\n");
  EXPECT_THROW(train_model(job()), Error);
  write("rows", "0.5 1:1\n2 1:2\n");
  EXPECT_THROW(train_model(job()), Error);
  write("rows", "1 1:1\n-1 1:2\n");
  EXPECT_THROW(train_model(job({{"l1-ratio", "0.3"}})), Error);
  Job stale = job();
  stale.engine.consistency = Consistency::ssp;
  stale.engine.staleness = 2;
  EXPECT_THROW(train_model(stale), Error);
}

}  // namespace
}  // namespace orrery
