// Products with a support and Newton's step on it: against columns as the design has them, against the conditions of
// a minimum, and where descent alone would take long.
#include "algorithms/lasso_newton.h"

#include <algorithm>
#include <numeric>

#include "algorithms/labelled_rows.h"
#include "algorithms/lasso_certificate.h"
#include "algorithms/lasso_model.h"
#include "algorithms/lasso_support.h"
#include "engine/simd.h"
#include "tests/algorithms/lasso_fixture.h"

namespace orrery {
namespace {

class LassoNewtonTest : public LassoTest {
 protected:
  /// What is read of a problem that was written.
  struct Regression {
    Regression(const std::string& file, Engine& engine)
        : data(read_labelled_rows(file, "", "", engine)),
          design(data.rows, true, true, lasso::kernels(engine.simd()), serial_for),
          response(data.rows.labels, true),
          coefficients(design.columns(), 0.0) {
      design.rebuild(response.values, coefficients, residual);
    }

    double objective(lasso::Penalty penalty) const {
      lasso::GapSums sums;
      sums.square = design.mean_square(residual);
      for (const double b : coefficients) sums.add_coefficient(b, 0);
      return lasso::primal_value(sums, penalty);
    }

    SparseData data;
    lasso::Design design;
    lasso::Response response;
    std::vector<double> coefficients;
    lasso::Residual residual;
  };

  void expect_residual_of_coefficients(const Regression& at) const {
    lasso::Residual again;
    at.design.rebuild(at.response.values, at.coefficients, again);
    lasso::Residual kept = at.residual;
    at.design.recentre(kept);
    for (std::size_t i = 0; i < again.raw.size(); ++i) ASSERT_NEAR(kept.raw[i], again.raw[i], 1e-10) << i;
  }
};

TEST_F(LassoNewtonTest, products_with_a_support_are_those_of_its_columns_whatever_part_makes_them) {
  for (const LassoProblem& shape : {LassoProblem{400, 90, 1, 0.5}, LassoProblem{900, 2000, 0.04}}) {
    write_rows(shape);
    Engine engine(job().engine);
    const Regression problem(path("rows"), engine);
    const std::size_t rows = problem.design.rows();
    std::vector<std::uint32_t> columns;
    for (std::uint32_t j = 1; j < problem.design.columns(); j += 2) columns.push_back(j);
    lasso::SupportColumns support(problem.design);
    support.lay_out(std::span(columns).first(3));
    support.lay_out(columns);
    ASSERT_GT(support.row_parts(), 1U);
    ASSERT_GT(support.column_parts(), 1U);
    const Random random(5, Purpose::test);
    RandomStream draw = random.stream(0, shape.columns);
    std::vector<double> weights, expected(rows, 0.0), found(support.places());
    for (const std::uint32_t j : columns) {
      weights.push_back(draw.normal());
      const lasso::ColumnView x = problem.design.view(j);
      for (std::size_t i = 0; i < x.count; ++i) {
        expected[x.rows == nullptr ? i : x.rows[i]] += weights.back() * double{x.values[i]};
      }
    }
    for (std::size_t part = support.row_parts(); part-- > 0;) support.multiply(part, weights, found);
    std::vector<double> whole(rows, 0.0);
    for (std::size_t place = 0; place < support.places(); ++place) whole[support.row(place)] = found[place];
    for (std::size_t i = 0; i < rows; ++i) ASSERT_NEAR(whole[i], expected[i], 1e-11) << i;
    for (std::size_t k = 0; k < columns.size(); ++k) {
      ASSERT_NEAR(support.dot(k, found), problem.design.kernels().dot(problem.design.view(columns[k]), whole.data()),
                  1e-10)
          << k;
    }
  }
}

TEST_F(LassoNewtonTest, parts_cover_all_items_and_cost_about_the_same) {
  const Random random(6, Purpose::test);
  for (std::uint64_t trial = 0; trial < 60; ++trial) {
    RandomStream draw = random.stream(0, trial);
    std::vector<std::uint64_t> start{7};
    const std::uint64_t items = draw.below(3000), most = 1 + draw.below(trial % 2 == 0 ? 20 : 20000);
    for (std::uint64_t i = 0; i < items; ++i) start.push_back(start.back() + draw.below(most));
    const std::vector<std::uint32_t> first = lasso::cut_into_parts(start);
    ASSERT_EQ(first.front(), 0U);
    ASSERT_EQ(first.back(), items);
    ASSERT_TRUE(std::is_sorted(first.begin(), first.end()));
    const std::uint64_t share = (start.back() - start.front()) / (first.size() - 1);
    for (std::size_t part = 0; part + 1 < first.size(); ++part) {
      ASSERT_LE(start[first[part + 1]] - start[first[part]], share + most + 1) << trial << ' ' << part;
    }
  }
}

// From a point with the signs of the minimum a step ends there: the slopes on the support vanish but for the forcing
// term, and what moves is residual and coefficients together.
TEST_F(LassoNewtonTest, a_step_goes_to_where_the_slopes_on_the_support_vanish) {
  for (const LassoProblem& shape : {LassoProblem{200, 60, 1, 0.8}, LassoProblem{300, 500, 0.05}}) {
    const lasso::Oracle oracle = write_rows(shape);
    Engine engine(job().engine);
    for (const double ratio : {1.0, 0.6}) {
      const double lambda = 0.1 * oracle.largest_lambda();
      const lasso::Penalty penalty{lambda * ratio, lambda * (1 - ratio)};
      Regression at(path("rows"), engine);
      at.coefficients = lasso::standardised(oracle.solve(lambda, ratio).weights, at.design);
      std::vector<std::uint32_t> support;
      for (std::uint32_t j = 0; j < at.design.columns(); ++j) {
        if (std::abs(at.coefficients[j]) < 1e-3) at.coefficients[j] = 0;
        if (at.coefficients[j] != 0) support.push_back(j);
        at.coefficients[j] *= 1.05;
      }
      at.design.rebuild(at.response.values, at.coefficients, at.residual);
      const auto largest_slope = [&] {
        double largest = 0;
        for (const std::uint32_t j : support) {
          const double b = at.coefficients[j];
          if (b == 0) continue;
          largest = std::max(
              largest, std::abs(at.design.gradient(j, at.residual) - penalty.l2 * b - std::copysign(penalty.l1, b)));
        }
        return largest;
      };
      const double slope = largest_slope(), before = at.objective(penalty);
      lasso::SupportNewton newton(at.design, at.coefficients, at.residual);
      newton.begin(support, penalty, 0);
      while (const std::size_t parts = newton.next()) {
        for (std::size_t part = parts; part-- > 0;) newton.run(part);
      }
      EXPECT_LT(largest_slope(), 0.3 * slope);
      EXPECT_GT(newton.fall(), 0);
      EXPECT_NEAR(before - at.objective(penalty), newton.fall(), 1e-12 * before);
      expect_residual_of_coefficients(at);
    }
  }
}

// Random starts: signs are wrong, coefficients vanish on the way. The objective never rises, and a step that gains
// nothing leaves every bit.
TEST_F(LassoNewtonTest, a_step_never_climbs_and_moves_nothing_when_it_gains_nothing) {
  write_rows({80, 150, 0.2, 0.9});
  Engine engine(job().engine);
  const lasso::Penalty penalty{0.3, 0};
  const Random random(9, Purpose::test);
  for (std::uint64_t trial = 0; trial < 30; ++trial) {
    RandomStream draw = random.stream(0, trial);
    Regression at(path("rows"), engine);
    std::vector<std::uint32_t> support;
    for (std::uint32_t j = 0; j < at.design.columns(); ++j) {
      if (draw.uniform() > 0.4 || !at.design.is_usable(j)) continue;
      at.coefficients[j] = std::pow(10.0, -static_cast<double>(trial % 5)) * draw.normal();
      support.push_back(j);
    }
    at.design.rebuild(at.response.values, at.coefficients, at.residual);
    lasso::SupportNewton newton(at.design, at.coefficients, at.residual);
    for (int step = 0; step < 4; ++step) {
      const double before = at.objective(penalty);
      const std::vector<double> coefficients = at.coefficients, residual = at.residual.raw;
      newton.begin(support, penalty, 0);
      while (const std::size_t parts = newton.next()) {
        for (std::size_t part = 0; part < parts; ++part) newton.run(part);
      }
      ASSERT_NEAR(before - at.objective(penalty), newton.fall(), 1e-11 * before) << trial;
      ASSERT_GE(newton.fall(), 0) << trial;
      if (newton.fall() == 0) {
        ASSERT_EQ(at.coefficients, coefficients) << trial;
        ASSERT_EQ(at.residual.raw, residual) << trial;
      }
      expect_residual_of_coefficients(at);
      std::erase_if(support, [&](std::uint32_t j) { return at.coefficients[j] == 0; });
    }
  }
}

// Pairs of columns that have all but a few of their rows to themselves and in common: descent on one undoes what it did
// on the other, a little less each time.
TEST_F(LassoNewtonTest, columns_that_share_their_only_rows_are_solved_to_a_small_gap) {
  lasso::Oracle oracle;
  const Random random(4, Purpose::test);
  for (std::size_t i = 0; i < 240; ++i) {
    RandomStream draw = random.stream(0, i);
    std::vector<double> x(160, 0.0);
    const std::size_t pair = i / 3;
    x[2 * pair] = static_cast<double>(static_cast<float>(1 + 0.5 * draw.uniform()));
    x[2 * pair + 1] = static_cast<double>(static_cast<float>(x[2 * pair] * (1 + 1e-3 * draw.uniform())));
    x[(2 * pair + 2) % 160] = static_cast<double>(static_cast<float>(0.01 * draw.normal()));
    oracle.x.push_back(x);
    oracle.y.push_back(2 * draw.normal());
  }
  write_rows("rows", oracle);
  Job one = job({{"lambda", text(1e-4 * oracle.largest_lambda())}});
  one.stop.tolerance = 1e-9;
  const Outcome outcome = train_model(one);
  EXPECT_LE(outcome.value("gap"), 1e-9);
  EXPECT_LE(outcome.result.iterations, 30);
  EXPECT_TRUE(outcome.warnings.empty()) << outcome.warnings.front();
}

// Large enough for many parts in a round, and on the residual: columns are short against their number.
TEST_F(LassoNewtonTest, threads_and_nodes_do_not_change_the_bits_of_rounds_in_parts) {
  write_rows({500, 1100, 0.08});
  Engine engine(job().engine);
  Job one = job({{"lambda", "0.03"}});
  one.stop.tolerance = 1e-5;
  const Outcome expected = train_model(one);
  const auto working = static_cast<std::size_t>(expected.value("nonzeros"));
  const Regression problem(path("rows"), engine);
  std::vector<std::uint32_t> columns(working);
  std::iota(columns.begin(), columns.end(), 0U);
  lasso::SupportColumns support(problem.design);
  support.lay_out(columns);
  ASSERT_GT(support.column_parts(), 1U);
  for (const unsigned threads : {2U, 4U}) {
    one.engine.threads = threads;
    EXPECT_EQ(train_model(one).checksum, expected.checksum) << threads;
  }
  EXPECT_EQ(checksums_on(2, one), std::vector<std::string>(2, expected.checksum));
}

}  // namespace
}  // namespace orrery
