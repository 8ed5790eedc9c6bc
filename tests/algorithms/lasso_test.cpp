// The Lasso from a file to a model and back, against a slow oracle written from its definition (lasso_oracle.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "algorithms/algorithm.h"
#include "algorithms/labelled_rows.h"
#include "algorithms/lasso_certificate.h"
#include "algorithms/lasso_columns.h"
#include "algorithms/lasso_gram.h"
#include "algorithms/lasso_model.h"
#include "algorithms/lasso_rounds.h"
#include "algorithms/lasso_scores.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/random.h"
#include "tests/algorithms/lasso_fixture.h"

namespace orrery {
namespace {

TEST_F(LassoTest, agrees_with_the_definition_for_every_penalty_shape_and_way_of_scaling) {
  for (const LassoProblem& shape :
       {LassoProblem{}, LassoProblem{40, 80, 1, 0.9}, LassoProblem{80, 30, 0.1}, LassoProblem{50, 90, 0.15, 0, 5}}) {
    lasso::Oracle oracle = write_rows(shape);
    for (const bool intercept : {true, false}) {
      for (const bool standardize : {true, false}) {
        oracle.intercept = intercept;
        oracle.standardize = standardize;
        const double lambda = 0.1 * oracle.largest_lambda();
        for (const double ratio : {1.0, 0.5}) {
          const Outcome outcome = train_model(job({{"lambda", text(lambda)},
                                                   {"l1-ratio", text(ratio)},
                                                   {"intercept", intercept ? "true" : "false"},
                                                   {"standardize", standardize ? "true" : "false"}}));
          const lasso::Oracle::Solution wanted = oracle.solve(lambda, ratio);
          const std::string what =
              text(shape.filled) + (intercept ? " b" : "") + (standardize ? " s " : " ") + text(ratio);
          EXPECT_EQ(outcome.result.stopped_by, StoppedBy::tolerance) << what;
          EXPECT_NEAR(outcome.result.final.objective, wanted.objective, 1e-10 * wanted.objective) << what;
          EXPECT_GE(outcome.value("gap"), -1e-14) << what;
          EXPECT_LE(outcome.value("gap"), 1e-12) << what;
          expect_weights(wanted, what, 1e-4);
        }
      }
    }
  }
}

TEST_F(LassoTest, the_gap_is_never_less_than_the_distance_from_the_minimum) {
  const lasso::Oracle oracle = write_rows({60, 40, 1, 0.8});
  Engine engine(job().engine);
  const SparseData data = read_labelled_rows(path("rows"), "", "", engine);
  const lasso::Design design(data.rows, true, true, lasso::kernels(engine.simd()), serial_for);
  const lasso::Response response(data.rows.labels, true);
  const Random random(5, Purpose::test);
  for (const double ratio : {1.0, 0.5, 0.0}) {
    const double lambda = 0.05;
    const double minimum = oracle.solve(lambda, ratio).objective;
    const std::vector<double> best = lasso::standardised(oracle.solve(lambda, ratio).weights, design);
    for (std::uint64_t trial = 0; trial < 50; ++trial) {
      RandomStream draw = random.stream(0, trial);
      std::vector<double> somewhere = best;
      for (double& c : somewhere) c += std::pow(10.0, -static_cast<double>(trial % 9)) * draw.normal();
      const Certificate found =
          certify(design, response, somewhere, response.mean, {lambda * ratio, lambda * (1 - ratio)}, serial_for);
      EXPECT_GE(found.gap, found.objective - minimum - 1e-12) << ratio << ' ' << trial;
    }
    const Certificate at_best =
        certify(design, response, best, response.mean, {lambda * ratio, lambda * (1 - ratio)}, serial_for);
    EXPECT_LT(at_best.gap, 1e-9) << ratio;
  }
}

TEST_F(LassoTest, the_whole_path_agrees_with_the_definition) {
  for (const LassoProblem& shape : {LassoProblem{60, 40, 1, 0.7}, LassoProblem{60, 90, 0.12}}) {
    const lasso::Oracle oracle = write_rows(shape);
    train_model(job({{"path", "20"}, {"path-ratio", "0.02"}}));
    const ModelReader model(path("run"));
    const auto table = model.read<double>("path");
    const auto starts = model.read<std::uint64_t>("path_starts");
    const auto columns = model.read<std::uint32_t>("path_columns");
    const auto values = model.read<double>("path_values");
    ASSERT_EQ(table.size(), 120U);
    EXPECT_NEAR(table[0], oracle.largest_lambda(), 1e-12);
    EXPECT_NEAR(table[19 * 6], 0.02 * oracle.largest_lambda(), 1e-12);
    for (std::size_t k = 0; k < 20; ++k) {
      const lasso::Oracle::Solution wanted = oracle.solve(table[k * 6]);
      std::vector<double> found(shape.columns, 0.0);
      for (std::uint64_t i = starts[k]; i < starts[k + 1]; ++i) found[columns[i]] = values[i];
      for (std::size_t j = 0; j < found.size(); ++j) EXPECT_NEAR(found[j], wanted.weights[j], 1e-6) << k << ' ' << j;
      EXPECT_NEAR(table[k * 6 + 1], wanted.intercept, 1e-6) << k;
      EXPECT_NEAR(table[k * 6 + 3], wanted.objective, 1e-9) << k;
      EXPECT_EQ(table[k * 6 + 2], static_cast<double>(starts[k + 1] - starts[k])) << k;
    }
    EXPECT_EQ(model.read_text("path_table").size(), 21U);
  }
}

TEST_F(LassoTest, from_the_largest_lambda_on_nothing_is_left_and_just_below_one_column_is) {
  const lasso::Oracle oracle = write_rows({60, 40, 0.2});
  const double largest = oracle.largest_lambda();
  for (const double lambda : {largest * (1 + 1e-9), 10 * largest}) {
    train_model(job({{"lambda", text(lambda)}}));
    for (const double w : weights()) EXPECT_EQ(w, 0);
    EXPECT_NEAR(constant(0), oracle.response_mean(), 1e-12);
  }
  train_model(job({{"lambda", text(largest * (1 - 1e-4))}}));
  const std::vector<double> w = weights();
  EXPECT_EQ(w.size() - static_cast<std::size_t>(std::count(w.begin(), w.end(), 0.0)), 1U);
}

TEST_F(LassoTest, orthonormal_columns_have_a_closed_form) {
  // Columns of a Hadamard matrix of order 16 but the first: mean 0, variance 1, orthogonal.
  lasso::Oracle oracle;
  const Random random(8, Purpose::test);
  for (unsigned i = 0; i < 16; ++i) {
    std::vector<double> row;
    for (unsigned j = 1; j < 16; ++j) row.push_back(__builtin_popcount(i & j) % 2 == 0 ? 1.0 : -1.0);
    oracle.x.push_back(row);
    oracle.y.push_back(3 * random.normal(0, i));
  }
  write_rows("rows", oracle);
  for (const double ratio : {1.0, 0.3}) {
    const double lambda = 0.4;
    train_model(job({{"lambda", text(lambda)}, {"l1-ratio", text(ratio)}}));
    const std::vector<double> w = weights();
    for (std::size_t j = 0; j < 15; ++j) {
      double product = 0;
      for (std::size_t i = 0; i < 16; ++i) product += oracle.x[i][j] * oracle.y[i] / 16;
      const double over = std::max(std::abs(product) - lambda * ratio, 0.0);
      EXPECT_NEAR(w[j], std::copysign(over, product) / (1 + lambda * (1 - ratio)), 1e-12) << j;
    }
  }
}

TEST_F(LassoTest, the_same_workers_give_the_same_bits_on_any_threads_and_domains) {
  for (const LassoProblem& shape : {LassoProblem{100, 300, 1, 0.9}, LassoProblem{200, 900, 0.03}}) {
    write_rows(shape);
    for (const Params& params : {Params{{"lambda", "0.05"}}, Params{{"path", "15"}, {"l1-ratio", "0.8"}}}) {
      Job one = job(params);
      one.stop.tolerance = 1e-9;
      const std::string expected = train_model(one).checksum;
      for (const unsigned threads : {2U, 8U}) {
        one.engine.threads = threads;
        EXPECT_EQ(train_model(one).checksum, expected) << threads;
      }
      one.engine.topology = "numa:2 core:2 pu:1";
      EXPECT_EQ(train_model(one).checksum, expected);
    }
  }
}

TEST_F(LassoTest, the_same_workers_give_the_same_bits_on_any_nodes_and_a_run_goes_on_on_others) {
  write_rows("dense", make({1000, 300, 1, 0.9}));  // its products make rounds of their own
  write_rows("sparse", make({200, 1500, 0.03}));
  write_rows("held-out", make({60, 1600, 0.03, 0, 0, 4}));
  write_rows("narrow", make({80, 100, 0.1}));  // two blocks of columns: most nodes have none
  for (const auto& [data, params] : {std::pair{"dense", Params{{"path", "8"}}},
                                     {"dense", Params{{"lambda", "0.05"}, {"l1-ratio", "0.7"}}},
                                     {"sparse", Params{{"path", "20"}, {"path-ratio", "0.01"}}},
                                     {"sparse", Params{{"lambda", "0.02"}}},
                                     {"narrow", Params{{"path", "6"}}}}) {
    Job one = job(params);
    one.data = data;
    one.valid = one.data == "sparse" ? "held-out" : "";
    one.workers = 7;
    one.stop.tolerance = 1e-8;
    Keeper keeper;
    const Outcome expected = train_model(one, &keeper);
    EXPECT_EQ(checksums_on(7, one), std::vector<std::string>(7, expected.checksum)) << data;
    Job part = one;
    part.stop.iterations = expected.result.iterations / 2;
    part.checkpoint_every = 1;
    checksums_on(3, part, &keeper);
    Job rest = one;
    rest.resume_from = &keeper.newest;
    EXPECT_EQ(train_model(rest).checksum, expected.checksum) << data;
    EXPECT_EQ(checksums_on(2, rest), std::vector<std::string>(2, expected.checksum)) << data;
    if (params.contains("path")) continue;
    Job again = one;
    again.init = one.out;
    again.out = "again";
    const std::string warm = train_model(again).checksum;
    EXPECT_EQ(checksums_on(3, again), std::vector<std::string>(3, warm)) << data;
  }
}

TEST_F(LassoTest, a_node_keeps_its_columns_and_the_working_set_of_others) {
  const lasso::Oracle oracle = write_rows({200, 1500, 0.03});
  Engine engine(job().engine);
  const SparseRows rows = read_labelled_rows(path("rows"), "", "", engine).rows;
  const lasso::Kernels& kernels = lasso::kernels(engine.simd());
  const lasso::Design whole(rows, true, true, kernels, serial_for);
  std::uint32_t seen = 0;
  for (NodeId node = 0; node < 3; ++node) {
    lasso::Design part(rows, true, true, kernels, serial_for, {.workers = 5, .nodes = 3, .node = node});
    EXPECT_EQ(part.first_here(), seen);
    seen = part.last_here();
    for (std::uint32_t j = 0; j < whole.columns(); ++j) {
      ASSERT_EQ(part.length(j), whole.length(j));
      ASSERT_EQ(part.mean(j), whole.mean(j));
      ASSERT_EQ(part.inverse_scale(j), whole.inverse_scale(j));
      ASSERT_EQ(part.curvature(j), whole.curvature(j));
      if (!part.is_here(j)) continue;
      const lasso::ColumnView mine = part.view(j), theirs = whole.view(j);
      ASSERT_TRUE(std::equal(mine.rows, mine.rows + mine.count, theirs.rows, theirs.rows + theirs.count));
      ASSERT_TRUE(std::equal(mine.values, mine.values + mine.count, theirs.values));
    }
  }
  EXPECT_EQ(seen, whole.columns());
  EXPECT_EQ(oracle.columns(), whole.columns());
}

TEST_F(LassoTest, lent_columns_are_those_wanted_and_at_most_twice_as_many_others) {
  write_rows({200, 1500, 0.03});
  Engine engine(job().engine);
  const SparseRows rows = read_labelled_rows(path("rows"), "", "", engine).rows;
  const lasso::Kernels& kernels = lasso::kernels(engine.simd());
  std::vector<lasso::Design> designs;
  for (NodeId node = 0; node < 2; ++node) {
    designs.emplace_back(rows, true, true, kernels, serial_for, lasso::Dealing{.workers = 4, .nodes = 2, .node = node});
  }
  const lasso::Design whole(rows, true, true, kernels, serial_for);
  std::vector<lasso::ColumnLoans> loans;
  for (lasso::Design& design : designs) loans.emplace_back(design);
  const Random random(6, Purpose::test);
  for (std::uint64_t turn = 0; turn < 50; ++turn) {
    RandomStream draw = random.stream(0, turn);
    std::vector<std::uint32_t> wanted;
    for (std::uint64_t k = 0; k < 1 + turn % 7 * 20; ++k)
      wanted.push_back(static_cast<std::uint32_t>(draw.below(whole.columns())));
    ASSERT_EQ(loans[0].want(wanted), loans[1].want(wanted));
    const Bytes of[] = {loans[0].pack(), loans[1].pack()};
    for (NodeId node = 0; node < 2; ++node) loans[node].take(of[1 - node]);
    std::uint64_t entries = 0;
    for (const std::uint32_t j : std::set<std::uint32_t>(wanted.begin(), wanted.end())) {
      entries += whole.length(j);
      for (const lasso::Design& design : designs) {
        const lasso::ColumnView here = design.view(j), there = whole.view(j);
        ASSERT_TRUE(std::equal(here.rows, here.rows + here.count, there.rows, there.rows + there.count));
        ASSERT_TRUE(std::equal(here.values, here.values + here.count, there.values));
      }
    }
    for (const lasso::Design& design : designs) ASSERT_LE(design.lent_entries(), 3 * entries) << turn;
  }
}

TEST_F(LassoTest, a_resumed_training_ends_with_the_same_bits) {
  for (const LassoProblem& shape : {LassoProblem{100, 300, 1, 0.9}, LassoProblem{200, 900, 0.03}}) {
    write_rows(shape);
    Job whole = job({{"path", "12"}});
    whole.stop.tolerance = 1e-8;
    const Outcome expected = train_model(whole);
    for (const Clock cut : {Clock{1}, Clock{2}, expected.result.iterations / 2, expected.result.iterations - 1}) {
      Job part = whole;
      part.stop.iterations = cut;
      part.checkpoint_every = 1;
      Keeper keeper;
      train_model(part, &keeper);
      Job rest = whole;
      rest.resume_from = &keeper.newest;
      rest.engine.threads = 2;
      EXPECT_EQ(train_model(rest).checksum, expected.checksum) << cut;
    }
  }
}

TEST_F(LassoTest, a_resumed_training_goes_back_to_the_best_state_before_the_cut) {
  write_rows({60, 100, 1, 0.3});
  write_rows("other", make({40, 100, 1, 0.3, 0, 4}));
  Job whole = job({{"path", "30"}, {"path-ratio", "0.0001"}});
  whole.valid = "other";
  whole.stop.patience = 4;
  const Outcome expected = train_model(whole);
  ASSERT_EQ(expected.result.stopped_by, StoppedBy::validation);
  Job part = whole;
  part.stop.iterations = expected.result.iterations - 1;
  ASSERT_GT(part.stop.iterations, expected.result.best_iteration);
  part.checkpoint_every = 1;
  Keeper keeper;
  train_model(part, &keeper);
  Job rest = whole;
  rest.resume_from = &keeper.newest;
  EXPECT_EQ(train_model(rest).checksum, expected.checksum);
}

TEST_F(LassoTest, no_column_that_screening_leaves_out_is_active_at_the_minimum) {
  const lasso::Oracle oracle = write_rows({60, 200, 1, 0.5});
  Engine engine(job().engine);
  const SparseData data = read_labelled_rows(path("rows"), "", "", engine);
  const lasso::Design design(data.rows, true, true, lasso::kernels(engine.simd()), serial_for);
  const lasso::Response response(data.rows.labels, true);
  const double lambda = 0.1 * oracle.largest_lambda();
  const lasso::Penalty penalty{lambda, 0};
  const std::vector<double> best = lasso::standardised(oracle.solve(lambda).weights, design);
  const Random random(6, Purpose::test);
  std::size_t left_out = 0;
  for (std::uint64_t trial = 0; trial < 40; ++trial) {
    RandomStream draw = random.stream(0, trial);
    std::vector<double> near = best;
    for (double& c : near) c *= 1 + std::pow(10.0, -1 - static_cast<double>(trial % 6)) * draw.normal();
    lasso::Scores scores(design, 3);
    lasso::Residual residual;
    design.rebuild(response.values, near, residual);
    const std::vector<double> nothing(design.columns(), 0.0);
    lasso::GapSums sums;
    sums.square = design.mean_square(residual);
    for (WorkerId w = 0; w < 3; ++w) scores.update(w, residual, nothing, 0);
    for (std::uint32_t j = 0; j < design.columns(); ++j) sums.add(near[j], scores.gradient(j), penalty);
    const double gap = lasso::primal_value(sums, penalty) - lasso::dual_value(sums, penalty);
    scores.screen(lasso::dual_scale(sums, penalty), gap, penalty);
    std::vector<char> looked_at(design.columns(), 0);
    for (WorkerId w = 0; w < 3; ++w) {
      scores.update(w, residual, nothing, 0);
      for (const std::uint32_t j : scores.listed(w)) looked_at[j] = 1;
    }
    for (std::uint32_t j = 0; j < design.columns(); ++j) {
      if (looked_at[j] != 0) continue;
      ++left_out;
      EXPECT_EQ(best[j], 0) << trial << ' ' << j;
    }
  }
  EXPECT_GT(left_out, 100U);
}

TEST_F(LassoTest, a_column_before_its_deadline_is_below_the_threshold) {
  write_rows({60, 200, 0.3});
  Engine engine(job().engine);
  const SparseData data = read_labelled_rows(path("rows"), "", "", engine);
  const lasso::Design design(data.rows, true, true, lasso::kernels(engine.simd()), serial_for);
  lasso::Scores scores(design, 2);
  lasso::Residual residual;
  const Random random(7, Purpose::test);
  RandomStream draw = random.stream(0, 0);
  std::vector<double> values(design.rows());
  for (double& v : values) v = draw.normal();
  const std::vector<double> nothing(design.columns(), 0.0);
  const double due = 0.2;
  std::uint64_t spared = 0, computed = 0;
  for (int step = 0; step < 50; ++step) {
    design.rebuild(values, nothing, residual);
    for (WorkerId w = 0; w < 2; ++w) scores.update(w, residual, nothing, due);
    std::vector<char> listed(design.columns(), 0);
    for (WorkerId w = 0; w < 2; ++w) {
      for (const std::uint32_t j : scores.listed(w)) listed[j] = 1;
    }
    for (std::uint32_t j = 0; j < design.columns(); ++j) {
      EXPECT_EQ(listed[j] != 0, std::abs(design.gradient(j, residual)) >= due) << step << ' ' << j;
    }
    spared += design.columns() - (scores.computed() - computed);
    computed = scores.computed();
    double square = 0;
    for (double& v : values) {
      const double move = 0.03 * draw.normal();
      v += move;
      square += move * move;
    }
    scores.moved(std::sqrt(square / static_cast<double>(values.size())), {});
  }
  EXPECT_GT(spared, 1000U);
}

TEST_F(LassoTest, kept_products_are_those_of_the_columns_in_any_parts) {
  for (const LassoProblem& shape : {LassoProblem{1100, 50, 1, 0.5, 3}, LassoProblem{300, 50, 0.1}}) {
    const lasso::Oracle oracle = write_rows(shape);
    Engine engine(job().engine);
    const SparseData data = read_labelled_rows(path("rows"), "", "", engine);
    const lasso::Design design(data.rows, true, true, lasso::kernels(engine.simd()), serial_for);
    lasso::Gram one(design), many(design);
    for (const std::vector<std::uint32_t>& columns : {std::vector<std::uint32_t>{3, 9, 4}, {49, 3, 0, 1, 2, 5, 6, 7}}) {
      one.admit(columns);
      one.fill(0, 1);
      one.settle();
      many.admit(columns);
      for (const std::uint32_t part : {2U, 0U, 1U}) many.fill(part, 3);
      many.settle();
    }
    ASSERT_EQ(one.size(), 10U);
    for (std::size_t a = 0; a < one.size(); ++a) {
      for (std::size_t b = 0; b < one.size(); ++b) {
        const std::vector<double> left = oracle.standardised(one.column(a)), right = oracle.standardised(one.column(b));
        double product = 0;
        for (std::size_t i = 0; i < left.size(); ++i) product += left[i] * right[i] / static_cast<double>(left.size());
        EXPECT_NEAR(one.row(a)[b], product, 1e-5) << a << ' ' << b;
        EXPECT_EQ(one.row(a)[b], many.row(a)[b]);
        EXPECT_EQ(one.row(a)[b], one.row(b)[a]);
      }
    }
  }
}

TEST_F(LassoTest, a_warm_start_ends_at_the_same_minimum) {
  const lasso::Oracle oracle = write_rows({60, 40, 1, 0.5});
  train_model(job({{"lambda", "0.3"}}));
  Job warm = job({{"lambda", "0.1"}});
  warm.init = "run";
  warm.out = "warm";
  train_model(warm);
  const std::vector<double> found = ModelReader(path("warm")).read<double>("weights");
  const lasso::Oracle::Solution wanted = oracle.solve(0.1);
  for (std::size_t j = 0; j < found.size(); ++j) EXPECT_NEAR(found[j], wanted.weights[j], 1e-6) << j;
}

TEST_F(LassoTest, held_out_rows_choose_the_point_of_a_path) {
  // So much noise that the end of the path fits noise, and other rows tell.
  LassoProblem problem{50, 60, 1, 0.3};
  problem.noise = 5;
  write_rows(problem);
  LassoProblem other{200, 60, 1, 0.3};
  other.seed = 4;
  other.noise = 5;
  write_rows("other", make(other));
  Job valid = job({{"path", "30"}, {"path-ratio", "0.0001"}});
  valid.valid = "other";
  const Outcome outcome = train_model(valid);
  const auto table = ModelReader(path("run")).read<double>("path");
  EXPECT_GT(constant(3), table[table.size() - 6]);
  EXPECT_LT(constant(3), table[0]);
  Engine engine(valid.engine);
  EXPECT_NEAR(number_in(open()->evaluate(path("other"), "", engine), "rmse"), *outcome.result.final.valid, 1e-9);
}

TEST_F(LassoTest, odd_data_are_trained_on) {
  struct Odd {
    const char* text;
    bool warns;
  };
  for (const Odd& odd :
       {Odd{"1 1:1\n", true}, Odd{"1 1:1\n2 1:2\n3 1:3.5\n", false}, Odd{"5 1:1\n5 1:2\n5 2:3\n", true},
        Odd{"1 1:2 2:0 3:1\n2 1:2 2:0 3:-1\n5 1:2\n", true}, Odd{"1 1:1 2:1\n2 1:2 2:2\n4 1:3 2:3\n", false},
        Odd{"1\n2 3:1\n", true}, Odd{"1 1:1e15\n-2 1:-1e15 2:1e-15\n-1 1:1e15\n", false}}) {
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

TEST_F(LassoTest, columns_that_say_nothing_are_left_alone) {
  lasso::Oracle oracle = make({40, 12, 1, 0.3});
  for (auto& row : oracle.x) {
    row[3] = 7;       // constant
    row[5] = 0;       // empty
    row[8] = row[2];  // twice the same
  }
  write_rows("rows", oracle);
  const Outcome outcome = train_model(job({{"lambda", "0.05"}}));
  const std::vector<double> w = weights();
  EXPECT_EQ(w[3], 0);
  EXPECT_EQ(w[5], 0);
  const lasso::Oracle::Solution wanted = oracle.solve(0.05);
  EXPECT_NEAR(w[2] + w[8], wanted.weights[2] + wanted.weights[8], 1e-6);
  EXPECT_NEAR(outcome.result.final.objective, wanted.objective, 1e-10);
  EXPECT_EQ(outcome.warnings.size(), 1U);
}

TEST_F(LassoTest, least_squares_is_solved_without_a_penalty) {
  const lasso::Oracle oracle = write_rows({80, 10, 1, 0.5});
  const Outcome outcome = train_model(job({{"lambda", "0"}}));
  expect_weights(oracle.solve(0), "least squares", 1e-6);
  EXPECT_EQ(outcome.warnings.size(), 1U);
}

TEST_F(LassoTest, a_path_that_explains_everything_ends_early_and_says_so) {
  lasso::Oracle oracle = make({60, 5});
  for (std::size_t i = 0; i < oracle.rows(); ++i) oracle.y[i] = 2 * oracle.x[i][0] - oracle.x[i][1];
  write_rows("rows", oracle);
  const Outcome outcome = train_model(job());
  EXPECT_LT(ModelReader(path("run")).read<double>("path").size(), 600U);
  ASSERT_EQ(outcome.warnings.size(), 1U);
  EXPECT_NE(outcome.warnings[0].find("ended after"), std::string::npos);
  EXPECT_EQ(outcome.result.stopped_by, StoppedBy::tolerance);
}

// No gap is below a tolerance under rounding: what is left is said as what it is.
TEST_F(LassoTest, a_gap_that_no_longer_falls_is_named_with_where_it_stays) {
  write_rows({60, 20});
  for (const bool is_path : {false, true}) {
    Job one = job({{is_path ? "path" : "lambda", is_path ? "6" : "0.05"}});
    one.stop.tolerance = 1e-30;
    const Outcome outcome = train_model(one);
    ASSERT_EQ(outcome.warnings.size(), 1U);
    const std::string& text = outcome.warnings[0];
    EXPECT_NE(text.find("no longer falls at lambda "), std::string::npos) << text;
    EXPECT_NE(text.find("above --tolerance 1e-30"), std::string::npos) << text;
    EXPECT_NE(text.find("rounding"), std::string::npos) << text;
    const std::size_t points = ModelReader(path("run")).read<double>("path").size() / 6;
    const std::string ended = "after " + std::to_string(points) + " of 6 penalties";
    EXPECT_EQ(text.find(ended) != std::string::npos, is_path && points < 6) << text;
    EXPECT_EQ(text.find("not reached"), std::string::npos) << text;
  }
}

TEST_F(LassoTest, a_model_predicts_and_ignores_columns_it_has_not_seen) {
  const lasso::Oracle oracle = write_rows({60, 6});
  train_model(job({{"lambda", "0.05"}}));
  write("new", "0 1:1\n7 1:1 9:5\n");
  Engine engine(job().engine);
  std::ostringstream out;
  open()->predict(path("new"), "", engine, out);
  double first = 0, second = 0;
  std::istringstream(out.str()) >> first >> second;
  const lasso::Oracle::Solution wanted = oracle.solve(0.05);
  EXPECT_NEAR(first, wanted.intercept + wanted.weights[0], 1e-6);
  EXPECT_EQ(first, second);
  EXPECT_EQ(engine.warnings().size(), 1U);
}

TEST_F(LassoTest, verify_accepts_the_run_and_finds_a_changed_file) {
  write_rows({60, 30, 0.2});
  for (const Params& params : {Params{{"lambda", "0.1"}}, Params{{"path", "10"}, {"l1-ratio", "0.5"}}}) {
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

TEST_F(LassoTest, every_scheduler_comes_to_the_same_minimum_with_the_same_bits_on_any_threads) {
  for (const LassoProblem& shape : {LassoProblem{60, 40, 1, 0.7}, LassoProblem{80, 50, 0.1}}) {
    const lasso::Oracle oracle = write_rows(shape);
    for (const char* scheduler : {"sampled", "cyclic", "shuffle"}) {
      Job one = job({{"lambda", "0.1"}, {"scheduler", scheduler}, {"select", "8"}, {"max-corr", "0.3"}});
      const Outcome outcome = train_model(one);
      EXPECT_EQ(outcome.result.stopped_by, StoppedBy::tolerance) << scheduler;
      expect_weights(oracle.solve(0.1), scheduler, 1e-4);
      one.engine.threads = 8;
      EXPECT_EQ(train_model(one).checksum, outcome.checksum) << scheduler;
      Job part = one;
      part.stop.iterations = outcome.result.iterations / 2;
      part.checkpoint_every = 1;
      Keeper keeper;
      train_model(part, &keeper);
      Job rest = one;
      rest.resume_from = &keeper.newest;
      EXPECT_EQ(train_model(rest).checksum, outcome.checksum) << scheduler;
    }
  }
}

/// Rounds without an engine: one bin for each worker, one after the other.
struct SerialRounds {
  SerialRounds(const lasso::Design& design_in, const lasso::Response& response, lasso::RoundsOptions options)
      : design(design_in), rounds(design, options, 4), coefficients(design.columns(), 0.0) {
    design.rebuild(response.values, coefficients, residual);
  }
  double objective(double lambda) const {
    double sum = 0.5 * design.mean_square(residual);
    for (const double c : coefficients) sum += lambda * std::abs(c);
    return sum;
  }
  std::size_t round(Clock clock, double lambda) {
    std::vector<std::vector<std::uint32_t>> bins(4);
    rounds.pick(clock, bins);
    for (WorkerId w = 0; w < 4; ++w) rounds.push(w, bins[w], residual, coefficients, {lambda, 0});
    std::vector<std::uint32_t> touched;
    return rounds.pull(residual, coefficients, touched);
  }
  const lasso::Design& design;
  lasso::Rounds rounds;
  std::vector<double> coefficients;
  lasso::Residual residual;
};

TEST_F(LassoTest, rounds_descend_on_columns_where_unchecked_ones_diverge) {
  for (const double correlation : {0.95, 0.0}) {
    lasso::Oracle oracle = make({100, 128, 1, correlation});
    for (auto& row : oracle.x) {  // pairs of duplicates
      for (std::size_t j = 0; j < row.size() && correlation == 0; j += 2) row[j + 1] = row[j];
    }
    write_rows("rows", oracle);
    Engine engine(job().engine);
    const SparseData data = read_labelled_rows(path("rows"), "", "", engine);
    const lasso::Design design(data.rows, true, true, lasso::kernels(engine.simd()), serial_for);
    const lasso::Response response(data.rows.labels, true);
    constexpr double kLambda = 0.02;
    const lasso::RoundsOptions options{lasso::Scheduler::cyclic, 128, 0.1, 1};
    lasso::RoundsOptions unchecked = options;
    unchecked.most_correlation = 2;  // of an absolute correlation: nothing is ever put off
    SerialRounds safe(design, response, options), parallel(design, response, unchecked);
    const double start = safe.objective(kLambda);
    double last = start;
    for (Clock clock = 0; clock < 400; ++clock) {
      safe.round(clock, kLambda);
      EXPECT_LE(safe.objective(kLambda), last * (1 + 1e-12)) << clock;
      last = safe.objective(kLambda);
    }
    for (Clock clock = 0; clock < 20; ++clock) parallel.round(clock, kLambda);
    EXPECT_LT(last, 0.5 * start);
    EXPECT_GT(parallel.objective(kLambda), start);
  }
}

TEST_F(LassoTest, checked_rounds_are_at_the_minimum_before_unchecked_ones_with_three_times_the_updates) {
  lasso::Oracle oracle = make({100, 128, 1, 0.8});
  for (auto& row : oracle.x) {  // every column twice, so that even two neighbours of a round overshoot
    for (std::size_t j = 0; j < row.size(); j += 2) row[j + 1] = row[j];
  }
  write_rows("rows", oracle);
  Engine engine(job().engine);
  const SparseData data = read_labelled_rows(path("rows"), "", "", engine);
  const lasso::Design design(data.rows, true, true, lasso::kernels(engine.simd()), serial_for);
  const lasso::Response response(data.rows.labels, true);
  constexpr double kLambda = 0.1;
  const double enough = 1.001 * oracle.solve(kLambda).objective;
  for (const lasso::Scheduler scheduler : {lasso::Scheduler::cyclic, lasso::Scheduler::sampled}) {
    lasso::RoundsOptions options{scheduler, 16, 0.3, 1};
    SerialRounds checked(design, response, options);
    std::size_t updates = 0, unchecked_updates = 0;
    for (Clock clock = 0; clock < 20000 && checked.objective(kLambda) > enough; ++clock) {
      updates += checked.round(clock, kLambda);
    }
    ASSERT_LE(checked.objective(kLambda), enough);
    options.most_correlation = 2;  // of an absolute correlation: nothing is ever put off
    SerialRounds unchecked(design, response, options);
    double best = unchecked.objective(kLambda);
    for (Clock clock = 0; unchecked_updates < 3 * updates; ++clock) {
      unchecked_updates += unchecked.round(clock, kLambda);
      const double now = unchecked.objective(kLambda);
      if (!std::isfinite(now)) break;
      best = std::min(best, now);
    }
    EXPECT_GT(best, enough);
  }
}

TEST_F(LassoTest, rounds_of_one_coordinate_are_serial_coordinate_descent) {
  const lasso::Oracle oracle = write_rows({50, 20, 1, 0.6});
  Engine engine(job().engine);
  const SparseData data = read_labelled_rows(path("rows"), "", "", engine);
  const lasso::Design design(data.rows, true, true, lasso::kernels(engine.simd()), serial_for);
  const lasso::Response response(data.rows.labels, true);
  SerialRounds rounds(design, response, {lasso::Scheduler::cyclic, 1, 0.1, 1});
  std::vector<std::vector<double>> z;
  for (std::size_t j = 0; j < 20; ++j) z.push_back(oracle.standardised(j));
  std::vector<double> c(20, 0.0), r(oracle.y);
  for (double& v : r) v -= oracle.response_mean();
  for (Clock step = 0; step < 100; ++step) {
    const auto j = static_cast<std::size_t>(step % 20);
    double product = c[j];
    for (std::size_t i = 0; i < 50; ++i) product += z[j][i] * r[i] / 50;
    const double to = std::copysign(std::max(std::abs(product) - 0.1, 0.0), product);
    for (std::size_t i = 0; i < 50; ++i) r[i] -= z[j][i] * (to - c[j]);
    c[j] = to;
    ASSERT_EQ(rounds.round(step, 0.1), 1U);
    for (std::size_t k = 0; k < 20; ++k) ASSERT_NEAR(rounds.coefficients[k], c[k], 1e-12) << step;
  }
}

TEST_F(LassoTest, contradictory_options_are_refused) {
  write_rows({20, 3});
  EXPECT_THROW(train_model(job({{"lambda", "0.1"}, {"path", "5"}})), Error);
  EXPECT_THROW(train_model(job({{"lambda", "-0.1"}})), Error);
  EXPECT_THROW(train_model(job({{"l1-ratio", "1.5"}})), Error);
  EXPECT_THROW(train_model(job({{"select", "3"}})), Error);
  EXPECT_THROW(train_model(job({{"max-corr", "0.3"}})), Error);
  train_model(job({{"lambda", "0.1"}}));
  Job warm = job();
  warm.init = "run";
  EXPECT_THROW(train_model(warm), Error);
  Job stale = job();
  stale.engine.consistency = Consistency::ssp;
  stale.engine.staleness = 2;
  EXPECT_THROW(train_model(stale), Error);
}

}  // namespace
}  // namespace orrery
