// Which columns may move together: the correlation against its definition, and the filters against asking for every
// pair.
#include <gtest/gtest.h>

#include <cmath>

#include "algorithms/labelled_rows.h"
#include "algorithms/lasso_correlation.h"
#include "engine/engine.h"
#include "engine/random.h"
#include "tests/algorithms/lasso_fixture.h"

namespace orrery {
namespace {

class LassoCorrelationTest : public LassoTest {};

TEST_F(LassoCorrelationTest, dependence_is_the_correlation_of_the_columns) {
  for (const double filled : {1.0, 0.15}) {
    lasso::Oracle oracle = make({70, 12, filled, 0.5, 2});
    for (auto& row : oracle.x) {
      row[4] = 3;
      row[7] = -row[6];
    }
    write_rows("rows", oracle);
    Engine engine(job().engine);
    const SparseData data = read_labelled_rows(path("rows"), "", "", engine);
    const lasso::Design design(data.rows, true, true, lasso::kernels(engine.simd()), serial_for);
    const lasso::ColumnCorrelation correlation(design);
    for (std::uint32_t a = 0; a < 12; ++a) {
      for (std::uint32_t b = 0; b < 12; ++b) {
        const std::vector<double> left = oracle.standardised(a), right = oracle.standardised(b);
        double product = 0;
        for (std::size_t i = 0; i < left.size(); ++i) product += left[i] * right[i] / static_cast<double>(left.size());
        EXPECT_NEAR(correlation.dependence(a, b), std::abs(product), 1e-9) << a << ' ' << b;
      }
    }
  }
}

struct FilterCase {
  LassoProblem shape;
  bool intercept;
  bool only_ones;
};

TEST_F(LassoCorrelationTest, a_filter_by_shared_rows_says_what_every_pair_says) {
  const double most = 0.2;
  std::size_t free = 0, put_off = 0;
  for (const FilterCase& at : {FilterCase{{200, 60, 0.04, 0.9}, true, false}, FilterCase{{200, 60, 0.04}, false, false},
                               FilterCase{{80, 60, 0.15, 0, 5}, true, false}, FilterCase{{200, 60, 0.1}, true, true}}) {
    lasso::Oracle oracle = make(at.shape);
    for (auto& row : oracle.x) {
      row[4] = 0;
      row[7] = -row[6];
      for (double& x : row) x = at.only_ones && x != 0 ? 1 : x;
    }
    write_rows("rows", oracle);
    Engine engine(job().engine);
    const SparseData data = read_labelled_rows(path("rows"), "", "", engine);
    const lasso::Design design(data.rows, at.intercept, true, lasso::kernels(engine.simd()), serial_for);
    ASSERT_FALSE(design.is_dense());
    const lasso::ColumnCorrelation correlation(design);
    const auto rows = correlation.filter(most), pairs = correlation.CoordinateModel::filter(most);
    RandomStream draw = Random(1, Purpose::test).stream(0, at.shape.rows);
    std::vector<std::uint32_t> under_way;
    for (int turn = 0; turn < 2000; ++turn) {
      const auto j = static_cast<std::uint32_t>(draw.below(design.columns()));
      rows->expect(std::span(&j, 1));
      const bool is_free = pairs->is_free(j);
      ASSERT_EQ(rows->is_free(j), is_free) << turn << ' ' << j;
      ++(is_free ? free : put_off);
      if (is_free) {
        rows->take(j);
        pairs->take(j);
        under_way.push_back(j);
      }
      if (under_way.size() < 12 && draw.uniform() < 0.8) continue;
      under_way.erase(under_way.begin(), under_way.begin() + static_cast<std::ptrdiff_t>(under_way.size() / 2));
      rows->keep(under_way);
      pairs->keep(under_way);
    }
  }
  EXPECT_GT(free, 1000U);
  EXPECT_GT(put_off, 1000U);
}

TEST_F(LassoCorrelationTest, products_of_dense_pairs_are_kept_within_a_fixed_size) {
  write_rows("rows", make({10, 1200, 1, 0.5}));
  Engine engine(job().engine);
  const SparseData data = read_labelled_rows(path("rows"), "", "", engine);
  const lasso::Design design(data.rows, true, true, lasso::kernels(engine.simd()), serial_for);
  const lasso::ColumnCorrelation correlation(design), fresh(design);
  for (int turn = 0; turn < 3; ++turn) {
    for (std::uint32_t a = 0; a < 30; ++a) {
      for (std::uint32_t b = 0; b < a; ++b) {
        EXPECT_EQ(correlation.dependence(a, b), correlation.dependence(b, a));
        EXPECT_EQ(correlation.dependence(a, b), fresh.dependence(b, a));
      }
    }
  }
  EXPECT_LE(correlation.computed(), 2 * 30U * 29 / 2);  // each once, but for the few that share a place
  const std::uint64_t before = correlation.computed();
  std::uint64_t pairs = 0;
  for (std::uint32_t a = 0; a < design.columns(); ++a) {
    for (std::uint32_t b = 0; b < a; ++b, ++pairs) static_cast<void>(correlation.dependence(a, b));
  }
  ASSERT_GT(pairs, 2 * lasso::ColumnCorrelation::kKeptPairs);
  for (std::uint32_t a = 0; a < design.columns(); ++a) {
    for (std::uint32_t b = 0; b < a; ++b) static_cast<void>(correlation.dependence(a, b));
  }
  // What does not fit is computed again: at most the table was there the second time.
  EXPECT_GE(correlation.computed() - before, 2 * pairs - lasso::ColumnCorrelation::kKeptPairs - 30 * 29 / 2);
}

}  // namespace
}  // namespace orrery
