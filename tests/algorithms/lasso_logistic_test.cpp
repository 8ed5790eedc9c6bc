// The binomial family of the Lasso from a file to a model and back, against a slow oracle written from its definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "algorithms/labelled_rows.h"
#include "algorithms/lasso_certificate.h"
#include "algorithms/lasso_model.h"
#include "algorithms/lasso_validation.h"
#include "engine/error.h"
#include "tests/algorithms/lasso_fixture.h"

namespace orrery {
namespace {

class LassoLogisticTest : public LassoTest {
 protected:
  /// Rows whose class is the sign of the response above its mean, and some of them turned over.
  static lasso::Oracle make_classes(const LassoProblem& shape) {
    lasso::Oracle oracle = make(shape);
    const double mean = oracle.response_mean();
    const Random random(shape.seed, Purpose::test);
    for (std::size_t i = 0; i < oracle.rows(); ++i) {
      oracle.y[i] = (oracle.y[i] > mean) != (random.uniform(1, i) < 0.15) ? 1 : -1;
    }
    return oracle;
  }
  lasso::Oracle write_classes(const LassoProblem& shape) const {
    const lasso::Oracle oracle = make_classes(shape);
    write_rows("rows", oracle);
    return oracle;
  }
  static Job job(Params params = {}) {
    params["family"] = "binomial";
    Job made = LassoTest::job(std::move(params));
    made.stop.tolerance = 1e-10;
    return made;
  }
  /// The least penalty that leaves nothing: half of what squared errors of −1 and 1 say.
  static double largest(const lasso::Oracle& oracle) { return 0.5 * oracle.largest_lambda(); }
};

TEST_F(LassoLogisticTest, agrees_with_the_definition_for_every_penalty_shape_and_way_of_scaling) {
  for (const LassoProblem& shape : {LassoProblem{60, 12}, LassoProblem{30, 40, 1, 0.7}, LassoProblem{80, 25, 0.12},
                                    LassoProblem{50, 60, 0.1, 0, 5}}) {
    lasso::Oracle oracle = write_classes(shape);
    for (const bool intercept : {true, false}) {
      for (const bool standardize : {true, false}) {
        oracle.intercept = intercept;
        oracle.standardize = standardize;
        const double lambda = 0.2 * largest(oracle);
        for (const double ratio : {1.0, 0.5}) {
          const Outcome outcome = train_model(job({{"lambda", text(lambda)},
                                                   {"l1-ratio", text(ratio)},
                                                   {"intercept", intercept ? "true" : "false"},
                                                   {"standardize", standardize ? "true" : "false"}}));
          const lasso::Oracle::Solution wanted = oracle.solve_classes(lambda, ratio);
          const std::string what =
              text(shape.filled) + (intercept ? " b" : "") + (standardize ? " s " : " ") + text(ratio);
          EXPECT_EQ(outcome.result.stopped_by, StoppedBy::tolerance) << what;
          EXPECT_NEAR(outcome.result.final.objective, wanted.objective, 1e-9 * wanted.objective) << what;
          EXPECT_GE(outcome.value("gap"), -1e-14) << what;
          EXPECT_LE(outcome.value("gap"), 1e-10) << what;
          expect_weights(wanted, what, 1e-3);
        }
      }
    }
  }
}

TEST_F(LassoLogisticTest, the_gap_is_never_less_than_the_distance_from_the_minimum) {
  const lasso::Oracle oracle = write_classes({60, 15, 1, 0.8});
  Engine engine(job().engine);
  const SparseData data = read_labelled_rows(path("rows"), "", "", engine);
  const lasso::Design design(data.rows, true, true, lasso::kernels(engine.simd()), serial_for);
  const lasso::Response response(std::vector<float>(oracle.y.begin(), oracle.y.end()), true);
  const Random random(5, Purpose::test);
  for (const double ratio : {1.0, 0.5, 0.0}) {
    const double lambda = 0.05;
    const lasso::Penalty penalty{lambda * ratio, lambda * (1 - ratio)};
    const lasso::Oracle::Solution best = oracle.solve_classes(lambda, ratio);
    const std::vector<double> coefficients = lasso::standardised(best.weights, design);
    double intercept = best.intercept;
    for (std::uint32_t j = 0; j < design.columns(); ++j) intercept += best.weights[j] * design.mean(j);
    for (std::uint64_t trial = 0; trial < 60; ++trial) {
      RandomStream draw = random.stream(0, trial);
      const double size = std::pow(10.0, -static_cast<double>(trial % 9));
      std::vector<double> somewhere = coefficients;
      for (double& c : somewhere) c += size * draw.normal();
      const Certificate found =
          certify(design, response, somewhere, intercept + size * draw.normal(), penalty, serial_for);
      EXPECT_GE(found.gap, found.objective - best.objective - 1e-12) << ratio << ' ' << trial;
    }
    EXPECT_LT(certify(design, response, coefficients, intercept, penalty, serial_for).gap, 1e-9) << ratio;
  }
}

TEST_F(LassoLogisticTest, the_whole_path_agrees_with_the_definition) {
  const lasso::Oracle oracle = write_classes({70, 20, 1, 0.5});
  train_model(job({{"path", "10"}, {"path-ratio", "0.05"}}));
  const ModelReader model(path("run"));
  const auto table = model.read<double>("path");
  EXPECT_NEAR(table[0], largest(oracle), 1e-12);
  ASSERT_EQ(table.size(), 60U);
  for (std::size_t k = 0; k < 10; ++k) {
    const lasso::Oracle::Solution wanted = oracle.solve_classes(table[6 * k]);
    EXPECT_NEAR(table[6 * k + 3], wanted.objective, 1e-9) << k;
    EXPECT_NEAR(table[6 * k + 1], wanted.intercept, 1e-3) << k;
  }
}

TEST_F(LassoLogisticTest, from_the_largest_lambda_on_only_the_intercept_is_left) {
  const lasso::Oracle oracle = write_classes({61, 20, 0.3});
  train_model(job({{"lambda", text(largest(oracle) * (1 + 1e-9))}}));
  for (const double w : weights()) EXPECT_EQ(w, 0);
  const double share = 0.5 * (1 + oracle.response_mean());
  EXPECT_NEAR(constant(0), std::log(share / (1 - share)), 1e-12);
  train_model(job({{"lambda", text(largest(oracle) * (1 - 1e-4))}}));
  const std::vector<double> w = weights();
  EXPECT_EQ(w.size() - static_cast<std::size_t>(std::count(w.begin(), w.end(), 0.0)), 1U);
}

TEST_F(LassoLogisticTest, weighted_columns_are_those_of_the_weighted_problem) {
  for (const double filled : {1.0, 0.15}) {
    const lasso::Oracle oracle = write_classes({40, 12, filled, 0.5, 2});
    Engine engine(job().engine);
    const SparseData data = read_labelled_rows(path("rows"), "", "", engine);
    const lasso::Design design(data.rows, true, true, lasso::kernels(engine.simd()), serial_for);
    const Random random(2, Purpose::test);
    std::vector<double> weights(40);
    lasso::Residual residual{std::vector<double>(40), 0};
    for (std::size_t i = 0; i < 40; ++i) {
      weights[i] = 0.01 + random.uniform(1, i);
      residual.raw[i] = random.normal(2, i);
      residual.sum += std::sqrt(weights[i]) * residual.raw[i];
    }
    const std::vector<std::uint32_t> chosen{7, 2, 9};
    const lasso::Design weighted(design, chosen, weights);
    double mass = 0;
    for (const double w : weights) mass += w;
    std::vector<std::vector<double>> columns;
    for (const std::uint32_t j : chosen) {
      double mean = 0;
      for (std::size_t i = 0; i < 40; ++i) mean += weights[i] * oracle.x[i][j] / mass;
      columns.emplace_back();
      for (std::size_t i = 0; i < 40; ++i) {
        columns.back().push_back(std::sqrt(weights[i]) * (oracle.x[i][j] - mean) / oracle.scale(j));
      }
    }
    const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
      double sum = 0;
      for (std::size_t i = 0; i < 40; ++i) sum += a[i] * b[i] / 40;
      return sum;
    };
    std::vector<double> scratch(40, 0.0), before;
    for (std::uint32_t k = 0; k < 3; ++k) {
      EXPECT_NEAR(weighted.gradient(k, residual), product(columns[k], residual.raw), 1e-6) << filled;
      EXPECT_NEAR(weighted.curvature(k), product(columns[k], columns[k]), 1e-6) << filled;
      EXPECT_NEAR(weighted.product(k, 0, scratch), product(columns[k], columns[0]), 1e-6) << filled;
      before.push_back(weighted.gradient(k, residual));
    }
    weighted.subtract(1, 0.5, residual);
    for (std::uint32_t k = 0; k < 3; ++k) {
      EXPECT_NEAR(weighted.gradient(k, residual), before[k] - 0.5 * product(columns[k], columns[1]), 1e-6) << filled;
    }
  }
}

TEST_F(LassoLogisticTest, threads_nodes_and_cuts_do_not_change_the_bits) {
  for (const LassoProblem& shape : {LassoProblem{80, 100, 1, 0.8}, LassoProblem{150, 400, 0.04}}) {
    write_classes(shape);
    for (const Params& params :
         {Params{{"lambda", "0.02"}}, Params{{"path", "8"}, {"l1-ratio", "0.8"}}, Params{{"path", "5"}, {"cv", "3"}}}) {
      Job whole = job(params);
      whole.stop.tolerance = 1e-8;
      const Outcome expected = train_model(whole);
      Job threads = whole;
      threads.engine.threads = 4;
      EXPECT_EQ(train_model(threads).checksum, expected.checksum);
      if (!params.contains("cv")) {
        EXPECT_EQ(checksums_on(3, whole), std::vector<std::string>(3, expected.checksum));
      }
      for (const Clock cut : {Clock{1}, expected.result.iterations / 2, expected.result.iterations - 1}) {
        Job part = whole;
        part.stop.iterations = cut;
        part.checkpoint_every = 1;
        Keeper keeper;
        train_model(part, &keeper);
        Job rest = whole;
        rest.resume_from = &keeper.newest;
        EXPECT_EQ(train_model(rest).checksum, expected.checksum) << cut;
      }
    }
  }
}

TEST_F(LassoLogisticTest, errors_of_folds_are_log_losses_of_fits_without_them) {
  const lasso::Oracle oracle = write_classes({60, 8, 1, 0.4});
  train_model(job({{"path", "4"}, {"path-ratio", "0.1"}, {"cv", "3"}}));
  const auto table = ModelReader(path("run")).read<double>("path"), found = ModelReader(path("run")).read<double>("cv");
  const std::vector<std::uint32_t> fold_of = lasso::deal_folds(60, 3, 1);
  for (std::size_t k = 0; k < 4; ++k) {
    double error = 0;
    for (std::uint32_t fold = 0; fold < 3; ++fold) {
      lasso::Oracle outside, inside;
      for (std::size_t i = 0; i < 60; ++i) {
        lasso::Oracle& to = fold_of[i] == fold ? inside : outside;
        to.x.push_back(oracle.x[i]);
        to.y.push_back(oracle.y[i]);
      }
      const lasso::Oracle::Solution fit = outside.solve_classes(table[6 * k]);
      error += inside.class_objective(fit.weights, fit.intercept, 0, 1) / 3;
    }
    EXPECT_NEAR(found[2 * k], error, 1e-5) << k;
  }
}

TEST_F(LassoLogisticTest, held_out_rows_choose_by_log_loss_and_predictions_are_probabilities) {
  LassoProblem shape{250, 40, 1, 0.3};
  write_classes(shape);
  shape.rows = 150;
  shape.seed = 4;
  const lasso::Oracle other = make_classes(shape);
  write_rows("other", other);
  Job valid = job({{"path", "15"}, {"path-ratio", "0.001"}});
  valid.valid = "other";
  const Outcome outcome = train_model(valid);
  Engine engine(valid.engine);
  const ValueList scores = open()->evaluate(path("other"), "", engine);
  EXPECT_NEAR(number_in(scores, "log_loss"), *outcome.result.final.valid, 1e-9);
  EXPECT_GT(number_in(scores, "accuracy"), 0.6);
  EXPECT_GT(number_in(scores, "auc"), 0.6);
  std::ostringstream out;
  open()->predict(path("other"), "", engine, out);
  std::istringstream lines(out.str());
  double loss = 0, probability = 0;
  std::size_t rows = 0;
  while (lines >> probability) loss -= std::log(other.y[rows++] > 0 ? probability : 1 - probability);
  ASSERT_EQ(rows, 150U);
  EXPECT_NEAR(loss / 150, number_in(scores, "log_loss"), 1e-9);
}

TEST_F(LassoLogisticTest, odd_data_are_trained_on) {
  struct Odd {
    const char* text;
    bool warns;
  };
  for (const Odd& odd : {Odd{"1 1:1\n", true}, Odd{"1 1:1\n-1 1:2\n", false},  // separable
                         Odd{"0 1:1\n1 1:1\n0 1:1\n", true},                   // constant
                         Odd{"-1 1:1\n-1 1:2 2:1\n", true}, Odd{"1 1:1e6\n-1 1:-1e6\n-1 1:1e6 2:1e-6\n", false}}) {
    write("rows", odd.text);
    for (const Params& params : {Params{{"lambda", "0.01"}}, Params{{"lambda", "0"}}, Params{{"path", "5"}},
                                 Params{{"lambda", "0.01"}, {"l1-ratio", "0"}}}) {
      const Outcome outcome = train_model(job(params));
      EXPECT_TRUE(std::isfinite(outcome.result.final.objective)) << odd.text;
      for (const double w : weights()) EXPECT_TRUE(std::isfinite(w)) << odd.text;
      EXPECT_TRUE(!odd.warns || !outcome.warnings.empty()) << odd.text;
    }
  }
}

TEST_F(LassoLogisticTest, verify_accepts_the_run_and_finds_another_objective) {
  write_classes({60, 30, 0.2});
  for (const Params& params : {Params{{"lambda", "0.02"}}, Params{{"path", "8"}, {"l1-ratio", "0.5"}}}) {
    const Outcome outcome = train_model(job(params));
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
}

TEST_F(LassoLogisticTest, what_is_no_two_classes_or_another_family_is_refused) {
  write_rows({20, 3});
  EXPECT_THROW(train_model(job({{"lambda", "0.1"}})), Error);  // any numbers as labels
  train_model(LassoTest::job({{"lambda", "0.1"}}));
  write_classes({20, 3});
  Job warm = job({{"lambda", "0.1"}});
  warm.init = "run";
  EXPECT_THROW(train_model(warm), Error);
  EXPECT_THROW(train_model(job({{"scheduler", "cyclic"}})), Error);
}

}  // namespace
}  // namespace orrery
