// Softmax regression from a file to a model and back, against a slow oracle written from the objective alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "algorithms/labelled_rows.h"
#include "algorithms/softmax_kernels.h"
#include "engine/error.h"
#include "engine/executor.h"
#include "engine/random.h"
#include "tests/algorithms/linear_fixture.h"

namespace orrery {
namespace {

using Matrix = std::vector<std::vector<double>>;  ///< by class

/// Dense rows in double, and the objective as it stands in `orrery describe softmax`.
struct SoftmaxOracle {
  std::vector<std::vector<double>> x;
  std::vector<std::size_t> y;
  std::size_t classes = 0;

  /// By class; the last weight is the intercept.
  std::vector<double> probabilities(std::size_t i, const Matrix& w) const {
    std::vector<double> p(classes);
    double total = 0;
    for (std::size_t k = 0; k < classes; ++k) {
      double score = w[k].back();
      for (std::size_t j = 0; j < x[i].size(); ++j) score += w[k][j] * x[i][j];
      total += p[k] = std::exp(score);
    }
    for (double& value : p) value /= total;
    return p;
  }
  double objective(const Matrix& w, double l1, double l2) const {
    double sum = 0, penalty = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum -= std::log(probabilities(i, w)[y[i]]);
    for (const auto& of_class : w) {
      for (std::size_t j = 0; j + 1 < of_class.size(); ++j) {
        penalty += l1 * std::abs(of_class[j]) + l2 * of_class[j] * of_class[j] / 2;
      }
    }
    return sum / static_cast<double>(x.size()) + penalty;
  }
  /// The minimum by accelerated proximal gradient steps: nothing of Newton's method in it.
  double minimum(double l1, double l2, bool intercept) const {
    const std::size_t p = x[0].size();
    double bound = l2 + 0.5;
    for (const auto& row : x) {
      for (const double v : row) bound += 0.5 * v * v / static_cast<double>(x.size());
    }
    Matrix w(classes, std::vector<double>(p + 1, 0.0)), before = w, at = w;
    for (int step = 1; step <= 3000; ++step) {
      Matrix g(classes, std::vector<double>(p + 1, 0.0));
      for (std::size_t i = 0; i < x.size(); ++i) {
        std::vector<double> d = probabilities(i, at);
        d[y[i]] -= 1;
        for (std::size_t k = 0; k < classes; ++k) {
          for (std::size_t j = 0; j < p; ++j) g[k][j] += d[k] * x[i][j] / static_cast<double>(x.size());
          g[k][p] += intercept ? d[k] / static_cast<double>(x.size()) : 0.0;
        }
      }
      before = w;
      for (std::size_t k = 0; k < classes; ++k) {
        for (std::size_t j = 0; j <= p; ++j) {
          const double to = at[k][j] - (g[k][j] + (j < p ? l2 * at[k][j] : 0.0)) / bound;
          w[k][j] = j < p ? std::copysign(std::max(std::abs(to) - l1 / bound, 0.0), to) : to;
          at[k][j] = w[k][j] + (step - 1.0) / (step + 2.0) * (w[k][j] - before[k][j]);
        }
      }
    }
    return objective(w, l1, l2);
  }
};

class SoftmaxTest : public LinearTest {
 protected:
  SoftmaxTest() : LinearTest("softmax") {}

  /// Rows whose class follows a planted column, blurred; labels are 10 (class + 1), or −1 and 1 for two classes.
  SoftmaxOracle write_rows(const std::string& name, std::size_t rows, std::size_t columns, std::size_t classes,
                           bool ones = false) const {
    SoftmaxOracle oracle;
    oracle.classes = classes;
    std::ofstream file(path(name));
    for (std::size_t i = 0; i < rows; ++i) {
      RandomStream draw = Random(3, Purpose::test).stream(0, i);
      std::vector<double> x(columns, 0.0), score(classes);
      for (std::size_t j = 0; j < columns; ++j) {
        if (draw.uniform() < 1.0 / 3) continue;
        x[j] = ones ? 1.0 : static_cast<double>(static_cast<float>(draw.normal()));
        score[j % classes] += x[j];
      }
      for (double& value : score) value += draw.normal();
      const auto y = static_cast<std::size_t>(std::max_element(score.begin(), score.end()) - score.begin());
      file << (classes == 2 ? 2 * static_cast<int>(y) - 1 : 10 * (static_cast<int>(y) + 1));
      for (std::size_t j = 0; j < columns; ++j) {
        if (x[j] != 0) file << ' ' << j + 1 << ':' << static_cast<float>(x[j]);
      }
      file << '\n';
      oracle.x.push_back(x);
      oracle.y.push_back(y);
    }
    return oracle;
  }
};

/// The same fixture for `logistic`, to compare with.
class TwoClasses : public LinearTest {
 public:
  TwoClasses() : LinearTest("logistic") {}
  void TestBody() override {}
  double objective(const std::string& data, const char* penalty, const std::string& lambda) {
    Job one = job({{"penalty", penalty}, {"lambda", lambda}});
    std::ifstream in(data);
    std::ofstream(path("rows")) << in.rdbuf();
    return train_model(one).result.final.objective;
  }
};

TEST_F(SoftmaxTest, reaches_the_minimum_for_every_penalty) {
  const SoftmaxOracle oracle = write_rows("rows", 150, 6, 4);
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

TEST_F(SoftmaxTest, two_classes_are_logistic_regression) {
  write_rows("rows", 300, 8, 2);
  // w₁ = −w₀ = w / 2 is best: λ (|w₀|² + |w₁|²) / 2 = λ |w|² / 4, but λ (|w₀| + |w₁|) = λ |w|.
  TwoClasses logistic;
  for (const auto& [penalty, of_logistic] : {std::pair{"l2", "0.01"}, {"l1", "0.02"}}) {
    const double expected = logistic.objective(path("rows"), penalty, of_logistic);
    const Outcome outcome = train_model(job({{"penalty", penalty}, {"lambda", "0.02"}}));
    EXPECT_NEAR(outcome.result.final.objective, expected, 1e-6 * expected) << penalty;
  }
}

TEST_F(SoftmaxTest, many_weights_take_the_diagonal_or_blocks_to_the_same_minimum) {
  write_rows("rows", 150, 200, 3);
  for (const char* penalty : {"l2", "l1"}) {
    const Outcome outcome = train_model(job({{"penalty", penalty}, {"lambda", "0.03"}}));
    EXPECT_LT(outcome.value("gap"), 1e-5) << penalty;
  }
}

TEST_F(SoftmaxTest, the_same_workers_give_the_same_bits_on_any_threads_and_domains) {
  write_rows("rows", 400, 12, 5, true);
  for (const Params& params :
       {Params{{"penalty", "l2"}}, Params{{"penalty", "l1"}}, Params{{"solver", "sgd"}, {"batch", "8"}}}) {
    Job one = job(params);
    one.stop.iterations = 10;
    const std::string expected = train_model(one).checksum;
    for (const unsigned threads : {2U, 4U}) {
      one.engine.threads = threads;
      EXPECT_EQ(train_model(one).checksum, expected) << threads;
    }
    one.engine.topology = "numa:2 core:2 pu:1";
    EXPECT_EQ(train_model(one).checksum, expected);
  }
}

TEST_F(SoftmaxTest, the_same_workers_give_the_same_bits_on_any_nodes) {
  write_rows("rows", 150, 200, 3);
  Job one = job({{"lambda", "0.03"}});
  one.stop.iterations = 4;
  const std::string expected = train_model(one).checksum;
  EXPECT_EQ(checksums_on(3, one), std::vector<std::string>(3, expected));
}

TEST_F(SoftmaxTest, adaptive_steps_come_near_the_minimum_at_every_staleness) {
  write_rows("rows", 600, 12, 4);
  const double best = train_model(job({{"lambda", "0.01"}})).result.final.objective;
  for (const Clock staleness : {0, 3}) {
    Job steps = job({{"lambda", "0.01"}, {"solver", "sgd"}, {"batch", "8"}});
    steps.stop.iterations = 60;
    steps.engine.threads = 2;
    steps.engine.consistency = staleness > 0 ? Consistency::ssp : Consistency::bsp;
    steps.engine.staleness = staleness;
    const Outcome outcome = train_model(steps);
    EXPECT_LT(outcome.result.final.objective, 1.03 * best) << staleness;
    EXPECT_GE(outcome.value("gap"), outcome.result.final.objective / best - 1 - 1e-6);
  }
}

TEST_F(SoftmaxTest, a_resumed_training_ends_with_the_same_bits) {
  write_rows("rows", 300, 8, 3);
  for (const Params& params : {Params{{"penalty", "l2"}}, Params{{"penalty", "l1"}}, Params{{"solver", "sgd"}}}) {
    Job whole = job(params);
    whole.stop.iterations = 8;
    const std::string expected = train_model(whole).checksum;
    Job part = whole;
    part.stop.iterations = 2;
    part.checkpoint_every = 1;
    Keeper keeper;
    train_model(part, &keeper);
    Job rest = whole;
    rest.resume_from = &keeper.newest;
    EXPECT_EQ(train_model(rest).checksum, expected);
  }
}

/// Rows, weights and a direction at random, in the kernels' layout.
struct KernelCase {
  explicit KernelCase(std::size_t classes) : w(kColumns * classes), d(w.size()), b(classes) {
    RandomStream draw = Random(9, Purpose::test).stream(0, classes);
    for (std::size_t r = 0; r < kRows; ++r) {
      for (std::uint32_t c = 0; c < kColumns; ++c) {
        if (draw.uniform() < 0.4) continue;
        columns.push_back(c);
        values.push_back(static_cast<float>(3 * draw.normal()));
      }
      starts.push_back(columns.size());
      labels.push_back(static_cast<std::uint32_t>(draw.below(classes)));
    }
    for (auto* numbers : {&w, &d, &b}) {
      for (float& value : *numbers) value = static_cast<float>(draw.normal());
    }
  }
  static constexpr std::size_t kRows = 37, kColumns = 9;  // two whole blocks and a part
  std::vector<std::uint64_t> starts{0};
  std::vector<std::uint32_t> columns, labels;
  std::vector<float> values, w, d, b;
};

/// The formulas of softmax_kernels.h in double.
struct KernelSums {
  KernelSums(const KernelCase& in, std::size_t classes, bool ones)
      : slopes(in.w.size()), product(in.w.size()), intercepts(classes) {
    for (std::size_t r = 0; r < KernelCase::kRows; ++r) {
      std::vector<double> p(in.b.begin(), in.b.end()), t(in.b.begin(), in.b.end());
      const auto each = [&](auto&& use) {
        for (std::uint64_t i = in.starts[r]; i < in.starts[r + 1]; ++i) {
          for (std::size_t k = 0; k < classes; ++k) {
            use(in.columns[i] * classes + k, k, ones ? 1.0 : double{in.values[i]});
          }
        }
      };
      each([&](std::size_t at, std::size_t k, double x) { p[k] += x * in.w[at], t[k] += x * in.d[at]; });
      double total = 0, mean = 0;
      for (double& value : p) total += value = std::exp(value);
      for (std::size_t k = 0; k < classes; ++k) mean += (p[k] /= total) * t[k];
      loss -= std::log(p[in.labels[r]]);
      const auto slope = [&](std::size_t k) { return p[k] - (k == in.labels[r] ? 1 : 0); };
      each([&](std::size_t at, std::size_t k, double x) {
        slopes[at].gradient += slope(k) * x;
        slopes[at].curvature += p[k] * (1 - p[k]) * x * x;
        product[at] += p[k] * (t[k] - mean) * x;
      });
      for (std::size_t k = 0; k < classes; ++k) intercepts[k] += slope(k);
    }
  }
  double loss = 0;
  std::vector<newton::Slope> slopes;
  std::vector<double> product, intercepts;
};

TEST_F(SoftmaxTest, kernels_of_all_levels_compute_the_formulas) {
  for (const std::size_t classes : {1U, 2U, 3U, 4U, 7U, 10U, 17U}) {
    const KernelCase in(classes);
    for (int level = 0; level <= static_cast<int>(detect_simd()); ++level) {
      for (const bool ones : {false, true}) {
        const KernelSums expected(in, classes, ones);
        const auto& kernels = softmax::kernels(static_cast<SimdLevel>(level));
        const RowsView view{in.starts.data(), in.columns.data(), ones ? nullptr : in.values.data(), KernelCase::kRows};
        std::vector<newton::Slope> slopes(in.w.size()), of_intercepts(classes);
        std::vector<float> scores(KernelCase::kRows * classes), shares(scores.size()), floats(2 * classes);
        std::vector<double> product(in.w.size(), 0.0), of_product(classes, 0.0), doubles(2 * classes);
        const softmax::Scratch scratch{doubles.data(), floats.data()};
        const auto sums =
            kernels.differentiate(view, in.labels.data(), classes, {in.w.data(), in.b.data()}, slopes.data(),
                                  of_intercepts.data(), scores.data(), shares.data(), scratch);
        kernels.multiply(view, classes, {in.d.data(), in.b.data()}, shares.data(), product.data(), of_product.data(),
                         scratch);
        const double again =
            kernels.losses(scores.data(), scores.data(), 0, in.labels.data(), KernelCase::kRows, classes, scratch);
        EXPECT_NEAR(sums.loss, expected.loss, 1e-5 * expected.loss);
        EXPECT_NEAR(again, expected.loss, 1e-5 * expected.loss);
        for (std::size_t at = 0; at < slopes.size(); ++at) {
          EXPECT_NEAR(slopes[at].gradient, expected.slopes[at].gradient, 1e-3) << classes;
          EXPECT_NEAR(slopes[at].curvature, expected.slopes[at].curvature, 1e-2) << classes;
          EXPECT_NEAR(product[at], expected.product[at], 1e-2) << classes;
        }
        for (std::size_t k = 0; k < classes; ++k) {
          EXPECT_NEAR(of_intercepts[k].gradient, expected.intercepts[k], 1e-3) << classes;
        }
      }
    }
  }
}

TEST_F(SoftmaxTest, a_warm_start_begins_where_the_model_ended_and_matches_classes_by_label) {
  write_rows("rows", 300, 8, 3);
  const Outcome first = train_model(job());
  Job again = job();
  again.init = "run";
  again.out = "again";
  again.stop.iterations = 1;
  EXPECT_NEAR(train_model(again).result.final.objective, first.result.final.objective, 1e-8);
  std::ofstream(path("rows"), std::ios::app) << "-5 1:1\n";  // one class more, before the others
  EXPECT_TRUE(std::isfinite(train_model(again).result.final.objective));
}

TEST_F(SoftmaxTest, odd_data_are_trained_on) {
  for (const char* text :
       {"7 1:1\n", "0 1:1\n3 1:1\n", "1 1:0\n2 1:0\n9 1:0\n", "1 1:1e18\n2 1:-1e18 2:1e-18\n3 1:1e18\n"}) {
    write("rows", text);
    for (const char* penalty : {"l2", "l1"}) {
      const Outcome outcome = train_model(job({{"penalty", penalty}}));
      EXPECT_TRUE(std::isfinite(outcome.result.final.objective)) << text;
      for (const float w : weights()) EXPECT_TRUE(std::isfinite(w)) << text;
    }
  }
}

TEST_F(SoftmaxTest, separable_rows_without_a_penalty_end_with_a_warning) {
  write("rows", "1 1:1\n2 2:1\n3 3:1\n1 1:2\n");
  const Outcome outcome = train_model(job({{"lambda", "0"}}));
  ASSERT_EQ(outcome.warnings.size(), 1U);
  EXPECT_NE(outcome.warnings[0].find("no minimum"), std::string::npos);
  EXPECT_EQ(outcome.value("accuracy"), 1.0);
}

TEST_F(SoftmaxTest, a_model_predicts_a_label_and_probabilities_that_add_up_to_one) {
  const SoftmaxOracle oracle = write_rows("rows", 300, 6, 3);
  const Outcome outcome = train_model(job());
  Engine engine(job().engine);
  std::ostringstream out;
  open()->predict(path("rows"), "", engine, out);
  std::istringstream in(out.str());
  std::size_t right = 0;
  for (const std::size_t y : oracle.y) {
    double label = 0, p[3];
    ASSERT_TRUE(in >> label >> p[0] >> p[1] >> p[2]);
    EXPECT_NEAR(p[0] + p[1] + p[2], 1, 1e-12);
    const auto best = static_cast<std::size_t>(std::max_element(p, p + 3) - p);
    EXPECT_EQ(label, 10.0 * static_cast<double>(best + 1));
    right += best == y ? 1 : 0;
  }
  EXPECT_EQ(static_cast<double>(right) / 300, outcome.value("accuracy"));
  EXPECT_EQ(number_in(open()->evaluate(path("rows"), "", engine), "accuracy"), outcome.value("accuracy"));
}

TEST_F(SoftmaxTest, verify_accepts_the_run_and_finds_changed_weights) {
  write_rows("rows", 200, 5, 3);
  const Outcome outcome = train_model(job({{"penalty", "l1"}}));
  Engine engine(job().engine);
  Model::Run run{.data = path("rows"),
                 .format = "",
                 .valid = {},
                 .data_checksum = read_labelled_rows(path("rows"), "", "", engine).checksum,
                 .value = outcome.result.final.objective};
  for (const Check& check : open()->verify(run, engine)) EXPECT_TRUE(check.passed) << check.what << check.detail;
  run.value = *run.value * 1.01;
  const auto checks = open()->verify(run, engine);
  EXPECT_TRUE(std::any_of(checks.begin(), checks.end(), [](const Check& check) { return !check.passed; }));
}

TEST_F(SoftmaxTest, labels_that_are_no_classes_are_refused) {
  write("rows", "0.5 1:1\n2 1:2\n");
  EXPECT_THROW(train_model(job()), Error);
  write("rows", "1 1:1\n5 1:2\n-3 1:1\n");
  write("new", "1 1:1\n4 1:2\n");
  train_model(job());
  Engine engine(job().engine);
  EXPECT_THROW(open()->evaluate(path("new"), "", engine), Error);
  Job held_out = job();
  held_out.valid = "new";
  EXPECT_THROW(train_model(held_out), Error);
}

}  // namespace
}  // namespace orrery
