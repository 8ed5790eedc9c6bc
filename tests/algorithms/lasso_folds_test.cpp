// Cross-validation of the Lasso: the folds, the rules, and the whole of it against fits written down from the
// definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>
#include <vector>

#include "algorithms/labelled_rows.h"
#include "algorithms/lasso_validation.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "tests/algorithms/lasso_fixture.h"

namespace orrery {
namespace {

class LassoFoldsTest : public LassoTest {
 protected:
  /// Mean squared error on rows of `inside` after a fit to all others.
  static double error_without(const lasso::Oracle& oracle, const std::vector<std::uint32_t>& fold_of,
                              std::uint32_t fold, double lambda) {
    lasso::Oracle outside;
    for (std::size_t i = 0; i < oracle.rows(); ++i) {
      if (fold_of[i] == fold) continue;
      outside.x.push_back(oracle.x[i]);
      outside.y.push_back(oracle.y[i]);
    }
    const lasso::Oracle::Solution fit = outside.solve(lambda);
    double sum = 0;
    for (std::size_t i = 0; i < oracle.rows(); ++i) {
      if (fold_of[i] != fold) continue;
      double error = oracle.y[i] - fit.intercept;
      for (std::size_t j = 0; j < oracle.columns(); ++j) error -= oracle.x[i][j] * fit.weights[j];
      sum += error * error;
    }
    return sum / static_cast<double>(std::count(fold_of.begin(), fold_of.end(), fold));
  }
};

TEST_F(LassoFoldsTest, folds_are_as_large_as_each_other_and_drawn_from_the_seed) {
  for (const auto& [rows, folds] : {std::pair{10U, 10U}, std::pair{103U, 5U}, std::pair{2U, 2U}}) {
    const std::vector<std::uint32_t> fold_of = lasso::deal_folds(rows, folds, 1);
    for (std::uint32_t f = 0; f < folds; ++f) {
      const auto size = static_cast<std::uint32_t>(std::count(fold_of.begin(), fold_of.end(), f));
      EXPECT_GE(size, rows / folds);
      EXPECT_LE(size, (rows + folds - 1) / folds);
    }
    EXPECT_EQ(lasso::deal_folds(rows, folds, 1), fold_of);
  }
  EXPECT_NE(lasso::deal_folds(103, 5, 1), lasso::deal_folds(103, 5, 2));
}

TEST_F(LassoFoldsTest, the_rules_take_the_least_error_and_the_largest_penalty_that_cannot_be_told_from_it) {
  lasso::CvTable table;
  table.points = {{9, 1}, {5.1, 0.3}, {4.6, 0.2}, {4.2, 0.5}, {4, 0.7}, {4, 0.1}, {4.5, 0.1}};
  lasso::apply_rules(table);
  EXPECT_EQ(table.least, 4U);  // of equal errors the larger penalty
  EXPECT_EQ(table.one_se, 2U);
  table.points = {{1, 0.1}};
  lasso::apply_rules(table);
  EXPECT_EQ(table.least, 0U);
  EXPECT_EQ(table.one_se, 0U);
}

TEST_F(LassoFoldsTest, errors_and_choice_are_those_of_fits_without_each_fold) {
  LassoProblem shape{53, 20, 1, 0.4};
  shape.noise = 3;
  const lasso::Oracle oracle = write_rows(shape);
  train_model(job({{"path", "8"}, {"path-ratio", "0.01"}, {"cv", "4"}}));
  const ModelReader model(path("run"));
  const auto table = model.read<double>("path"), found = model.read<double>("cv");
  const auto choice = model.read<std::uint64_t>("cv_choice");
  const std::vector<std::uint32_t> fold_of = lasso::deal_folds(53, 4, 1);
  ASSERT_EQ(found.size(), 16U);
  std::vector<double> mean(8, 0.0), spread(8, 0.0);
  for (std::size_t k = 0; k < 8; ++k) {
    std::vector<double> errors;
    for (std::uint32_t f = 0; f < 4; ++f) errors.push_back(error_without(oracle, fold_of, f, table[6 * k]));
    const std::vector<double> shares{14.0 / 53, 13.0 / 53, 13.0 / 53, 13.0 / 53};
    for (std::size_t f = 0; f < 4; ++f) mean[k] += shares[f] * errors[f];
    for (std::size_t f = 0; f < 4; ++f) spread[k] += shares[f] * (errors[f] - mean[k]) * (errors[f] - mean[k]);
    EXPECT_NEAR(found[2 * k], mean[k], 1e-5 * mean[k]) << k;
    EXPECT_NEAR(found[2 * k + 1], std::sqrt(spread[k] / 3), 1e-5 * mean[k]) << k;
  }
  const auto least = static_cast<std::size_t>(std::min_element(mean.begin(), mean.end()) - mean.begin());
  std::size_t one_se = 0;
  while (mean[one_se] > mean[least] + std::sqrt(spread[least] / 3)) ++one_se;
  EXPECT_EQ(choice[0], least);
  EXPECT_EQ(choice[1], one_se);
  EXPECT_LT(one_se, least);
  EXPECT_EQ(constant(3), table[6 * one_se]);
  const Outcome least_error =
      train_model(job({{"path", "8"}, {"path-ratio", "0.01"}, {"cv", "4"}, {"cv-rule", "min"}}));
  EXPECT_EQ(constant(3), table[6 * least]);
  EXPECT_EQ(least_error.value("lambda_min"), table[6 * least]);
  EXPECT_EQ(least_error.value("lambda_1se"), table[6 * one_se]);
  EXPECT_EQ(least_error.value("cv_error"), found[2 * least]);
}

TEST_F(LassoFoldsTest, a_cut_between_any_two_rounds_and_any_threads_and_workers_give_the_same_bits) {
  for (const LassoProblem& shape : {LassoProblem{60, 30, 1, 0.8}, LassoProblem{90, 120, 0.06}}) {
    write_rows(shape);
    Job whole = job({{"path", "10"}, {"cv", "5"}});
    whole.stop.tolerance = 1e-8;
    const Outcome expected = train_model(whole);
    for (const WorkerId workers : {WorkerId{1}, WorkerId{3}}) {
      Job other = whole;
      other.workers = workers;
      other.engine.threads = 4;
      EXPECT_EQ(train_model(other).checksum, expected.checksum) << workers;
    }
    for (Clock cut = 1; cut < expected.result.iterations; cut += 7) {
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

TEST_F(LassoFoldsTest, a_training_that_was_cut_short_keeps_the_path_and_says_that_nothing_was_chosen) {
  write_rows({60, 30, 1, 0.5});
  Job part = job({{"path", "6"}, {"cv", "3"}});
  const Clock all = train_model(part).result.iterations;
  part.stop.iterations = all - 1;
  const Outcome outcome = train_model(part);
  EXPECT_FALSE(ModelReader(path("run")).has("cv"));
  ASSERT_EQ(outcome.warnings.size(), 1U);
  EXPECT_NE(outcome.warnings[0].find("not finished"), std::string::npos);
}

TEST_F(LassoFoldsTest, verify_finds_a_choice_that_the_rules_would_not_make) {
  write_rows({60, 30, 1, 0.5});
  train_model(job({{"path", "6"}, {"cv", "3"}}));
  Engine engine(job().engine);
  const std::uint64_t checksum = read_labelled_rows(path("rows"), "", "", engine).checksum;
  const auto find = [&](const Model& model) {
    Model::Run run{.data = path("rows"), .format = "", .valid = {}, .data_checksum = checksum, .value = {}};
    for (const Check& check : model.verify(run, engine)) {
      if (check.what.find("cross-validation") != std::string::npos) return check;
    }
    return Check{};
  };
  EXPECT_TRUE(find(*open()).passed);
  // The same model with another row of the table as its choice.
  const ModelReader model(path("run"));
  std::filesystem::create_directories(path("changed"));
  ModelWriter writer(path("changed"));
  for (const char* name : {"weights", "constants", "path", "path_values", "cv"}) {
    writer.add_array<double>(name, model.read<double>(name));
  }
  writer.add_array<std::uint64_t>("path_starts", model.read<std::uint64_t>("path_starts"));
  writer.add_array<std::uint32_t>("path_columns", model.read<std::uint32_t>("path_columns"));
  const auto choice = model.read<std::uint64_t>("cv_choice");
  writer.add_array<std::uint64_t>("cv_choice", std::vector<std::uint64_t>{choice[0], choice[0] == 0 ? 1U : 0U});
  writer.finish("{}");
  EXPECT_FALSE(find(*open("changed")).passed);
}

TEST_F(LassoFoldsTest, odd_folds_are_fitted) {
  for (const char* text : {"1 1:1\n2 1:2\n", "5 1:1\n5 1:2\n5 2:3\n", "1 1:1\n1 1:1\n2 1:2 2:4\n3 2:1\n"}) {
    write("rows", text);
    const Outcome outcome = train_model(job({{"path", "4"}, {"cv", "2"}}));
    EXPECT_TRUE(std::isfinite(outcome.value("cv_error"))) << text;
  }
}

TEST_F(LassoFoldsTest, contradictory_options_are_refused) {
  write_rows({20, 3});
  EXPECT_THROW(train_model(job({{"cv", "1"}})), Error);
  EXPECT_THROW(train_model(job({{"cv", "21"}})), Error);
  EXPECT_THROW(train_model(job({{"cv", "5"}, {"lambda", "0.1"}})), Error);
  EXPECT_THROW(train_model(job({{"cv", "5"}, {"scheduler", "cyclic"}})), Error);
  EXPECT_THROW(train_model(job({{"cv-rule", "min"}})), Error);
  Job both = job({{"cv", "5"}});
  both.valid = "rows";
  EXPECT_THROW(train_model(both), Error);
}

}  // namespace
}  // namespace orrery
