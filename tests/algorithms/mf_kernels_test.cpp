// The kernels of matrix factorisation against the slow oracle, at every level that this machine has.
#include "algorithms/mf_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <tuple>

#include "engine/random.h"
#include "tests/algorithms/mf_oracle.h"

namespace orrery::mf {
namespace {

std::vector<SimdLevel> levels() {
  std::vector<SimdLevel> out;
  for (const SimdLevel level : {SimdLevel::portable, SimdLevel::avx2, SimdLevel::avx512}) {
    if (level <= detect_simd()) out.push_back(level);
  }
  return out;
}

/// One side of a model in the kernels' form, with a guard row behind it.
class Side64 {
 public:
  Side64(std::size_t rows, std::size_t rank, std::uint64_t seed) : rank_(rank), stride_(padded_rank(rank)) {
    const Random random(seed, Purpose::test);
    factors_.resize((rows + 1) * stride_ + 16);
    sides_.resize(rows + 1);
    for (std::size_t r = 0; r < rows; ++r) {
      RandomStream draws = random.stream(1, r);
      for (std::size_t d = 0; d < rank; ++d) {
        factors()[r * stride_ + d] = static_cast<float>(draws.normal() / std::sqrt(std::sqrt(double(rank))));
      }
      sides_[r] = {static_cast<float>(0.3 * draws.normal()), static_cast<float>(draws.uniform()),
                   static_cast<float>(0.1 * draws.uniform()), static_cast<float>(0.2 * draws.uniform())};
    }
  }
  float* factors() {
    void* p = factors_.data();
    std::size_t space = factors_.size() * sizeof(float);
    return static_cast<float*>(std::align(64, 64, p, space));
  }
  FactorRows view() { return {factors(), sides_.data()}; }
  ConstFactorRows const_view() { return {factors(), sides_.data()}; }
  std::size_t rows() const { return sides_.size() - 1; }
  std::size_t stride() const { return stride_; }
  const Side& side(std::size_t r) const { return sides_[r]; }

  oracle::Rows in_double() {
    oracle::Rows out;
    out.rank = rank_;
    for (std::size_t r = 0; r < rows(); ++r) {
      const float* f = factors() + r * stride_;
      out.factors.emplace_back(f, f + rank_);
      out.bias.push_back(double{sides_[r].bias});
      out.energy.push_back(double{sides_[r].energy});
      out.decay.push_back(double{sides_[r].decay});
      out.bias_decay.push_back(double{sides_[r].bias_decay});
    }
    return out;
  }
  void expect_near(const oracle::Rows& expected, double tolerance) {
    for (std::size_t r = 0; r < rows(); ++r) {
      for (std::size_t d = 0; d < rank_; ++d) {
        ASSERT_NEAR(double{factors()[r * stride_ + d]}, expected.factors[r][d], tolerance)
            << "row " << r << " dim " << d;
      }
      ASSERT_NEAR(double{sides_[r].bias}, expected.bias[r], tolerance) << "row " << r;
      ASSERT_NEAR(double{sides_[r].energy}, expected.energy[r], tolerance * (1.0 + expected.energy[r]));
      ASSERT_EQ(double{sides_[r].decay}, expected.decay[r]);
      ASSERT_EQ(double{sides_[r].bias_decay}, expected.bias_decay[r]);
    }
  }
  void expect_zero_padding_and_guard() {
    for (std::size_t r = 0; r <= rows(); ++r) {
      for (std::size_t d = r < rows() ? rank_ : 0; d < stride_; ++d) ASSERT_EQ(factors()[r * stride_ + d], 0.0F);
    }
    ASSERT_EQ(sides_.back().bias, 0.0F);
  }
  std::vector<float> bits() {
    std::vector<float> out(factors(), factors() + rows() * stride_);
    for (const Side& s : sides_) out.insert(out.end(), {s.bias, s.energy, s.decay, s.bias_decay});
    return out;
  }

 private:
  std::size_t rank_, stride_;
  std::vector<float> factors_;
  std::vector<Side> sides_;
};

/// Random ratings in one cell; with `rows` small there are long runs, with `rows` large there are short ones, and some
/// pairs come twice.
Cell random_cell(std::size_t rows, std::size_t columns, std::size_t ratings) {
  const Random random(11, Purpose::test);
  RatingStore store;
  for (std::size_t i = 0; i < ratings; ++i) {
    RandomStream draws = random.stream(0, i);
    store.push_back({static_cast<std::uint32_t>(draws.below(rows)), static_cast<std::uint32_t>(draws.below(columns)),
                     static_cast<float>(draws.normal())});
  }
  const AxisCounts counts = count_ratings(store, rows, columns, serial_for);
  const CellGrid grid = CellGrid::build(std::move(store), deal_axis(counts.rows, 1, rows),
                                        deal_axis(counts.columns, 1, columns), serial_for);
  return grid.cell(0, 0);
}

CellView view_of(const Cell& cell) {
  return {cell.batches.data(), cell.rows.data(), cell.columns.data(), cell.values.data()};
}

class MfKernels : public testing::TestWithParam<std::tuple<SimdLevel, std::size_t>> {
 protected:
  const Kernels& level() const { return kernels(std::get<0>(GetParam())); }
  std::size_t rank() const { return std::get<1>(GetParam()); }
};

TEST_P(MfKernels, training_a_cell_is_equivalent_to_the_oracle) {
  for (const std::size_t rows : {2UL, 60UL, 400UL}) {
    const Cell cell = random_cell(rows, 40, 700);
    Side64 users(rows, rank(), 1), items(40, rank(), 2);
    oracle::Rows expected_users = users.in_double(), expected_items = items.in_double();
    for (const oracle::Batch& batch : oracle::batches_of(cell)) {
      oracle::train_batch(batch, expected_users, expected_items, 0.02, 0.1);
    }
    level().train_cell(view_of(cell), users.view(), items.view(), users.stride(), {0.02F, 0.1F});
    users.expect_near(expected_users, 1e-4);
    items.expect_near(expected_items, 1e-4);
    users.expect_zero_padding_and_guard();
    items.expect_zero_padding_and_guard();
  }
}

TEST_P(MfKernels, a_step_goes_down_the_gradient_of_the_loss) {
  const std::vector<std::size_t> sizes{1, 2, 3, 4, 5, 6, 7, 8};
  for (const std::size_t n : sizes) {
    Side64 users(1, rank(), 3), items(n, rank(), 4);
    Cell cell;
    cell.batches[n - 1] = 1;
    cell.rows = {0};
    cell.values.resize(n + kValuePadding, 99.0F);  // what a kernel must ignore
    for (std::size_t i = 0; i < n; ++i) {
      cell.columns.push_back(static_cast<std::uint16_t>(n - 1 - i));
      cell.values[i] = static_cast<float>(i) - 2.5F;
    }
    oracle::Rows w = users.in_double(), h = items.in_double();
    const oracle::Batch batch = oracle::batches_of(cell)[0];
    const auto slope = [&](double& x) {
      const double at = x, eps = 1e-5;
      x = at + eps;
      const double above = oracle::batch_loss(batch, w, h);
      x = at - eps;
      const double below = oracle::batch_loss(batch, w, h);
      x = at;
      return (above - below) / (2.0 * eps);
    };
    const float rate = 0.01F;
    level().train_cell(view_of(cell), users.view(), items.view(), users.stride(), {rate, 0.0F});
    const auto expect_step = [&](Side64& after, oracle::Rows& before) {
      for (std::size_t r = 0; r < after.rows(); ++r) {
        const double step = double{rate} / std::sqrt(1.0 + before.energy[r]);
        for (std::size_t d = 0; d < rank(); ++d) {
          const double moved = double{after.factors()[r * after.stride() + d]} - before.factors[r][d];
          ASSERT_NEAR(moved, -step * slope(before.factors[r][d]), 2e-6) << n << " ratings, row " << r << " dim " << d;
        }
        ASSERT_NEAR(double{after.side(r).bias} - before.bias[r], -step * slope(before.bias[r]), 2e-6);
      }
    };
    expect_step(users, w);
    expect_step(items, h);
  }
}

TEST_P(MfKernels, the_same_cell_gives_the_same_bits) {
  const Cell cell = random_cell(50, 70, 900);
  std::vector<float> first;
  for (int run = 0; run < 2; ++run) {
    Side64 users(50, rank(), 5), items(70, rank(), 6);
    level().train_cell(view_of(cell), users.view(), items.view(), users.stride(), {0.1F, 0.01F});
    std::vector<float> bits = users.bits();
    const std::vector<float> more = items.bits();
    bits.insert(bits.end(), more.begin(), more.end());
    if (run == 0) first = bits;
    ASSERT_EQ(first.size(), bits.size());
    EXPECT_EQ(std::memcmp(first.data(), bits.data(), bits.size() * sizeof(float)), 0);
  }
}

TEST_P(MfKernels, held_out_errors_are_summed_as_the_oracle_predicts) {
  Side64 users(30, rank(), 7), items(20, rank(), 8);
  const oracle::Rows w = users.in_double(), h = items.in_double();
  const Random random(9, Purpose::test);
  std::vector<std::uint32_t> rows, columns;
  std::vector<float> values;
  double squares = 0.0, absolute = 0.0;
  for (std::uint32_t i = 0; i < 101; ++i) {
    rows.push_back(static_cast<std::uint32_t>(random.below(30, 0, i)));
    columns.push_back(static_cast<std::uint32_t>(random.below(20, 1, i)));
    values.push_back(static_cast<float>(random.normal(2, i)));
    double e = double{values.back()} - w.bias[rows.back()] - h.bias[columns.back()];
    for (std::size_t d = 0; d < rank(); ++d) e -= w.factors[rows.back()][d] * h.factors[columns.back()][d];
    squares += e * e;
    absolute += std::abs(e);
  }
  const ErrorSums sums = level().measure(rows.data(), columns.data(), values.data(), values.size(), users.const_view(),
                                         items.const_view(), users.stride());
  EXPECT_NEAR(sums.squares, squares, 1e-5 * squares);
  EXPECT_NEAR(sums.absolute, absolute, 1e-5 * absolute);
}

/// Ratings of one row by all columns of a side, with a scratch for solve_row.
struct Regression {
  Regression(Side64& side, std::size_t count) {
    const Random random(21, Purpose::test);
    for (std::size_t k = 0; k < count; ++k) {
      others.push_back(side.factors() + (k % side.rows()) * side.stride());
      targets.push_back(static_cast<float>(random.normal(3, k)));
    }
    memory.resize(solve_scratch_floats(side.stride()) + 16);
    void* p = memory.data();
    std::size_t space = memory.size() * sizeof(float);
    scratch = static_cast<float*>(std::align(64, 64, p, space));
  }
  RatedBy view() const { return {others.data(), targets.data(), targets.size()}; }
  std::vector<const float*> others;
  std::vector<float> targets, memory;
  float* scratch = nullptr;
};

TEST_P(MfKernels, solving_a_row_ends_where_the_gradient_is_zero) {
  for (const std::size_t count : {1UL, 5UL, 63UL, 64UL, 65UL, 300UL}) {
    Side64 items(90, rank(), 17), users(1, rank(), 18);
    const Regression data(items, count);
    const double ridge = 0.7, bias_ridge = 2.0;
    float* w = users.factors();
    float bias = 9.0F;
    level().solve_row(data.view(), rank(), users.stride(), static_cast<float>(ridge), static_cast<float>(bias_ridge),
                      data.scratch, w, &bias);
    std::vector<double> slope(rank());
    double bias_slope = bias_ridge * double{bias};
    for (std::size_t d = 0; d < rank(); ++d) slope[d] = ridge * double{w[d]};
    for (std::size_t k = 0; k < count; ++k) {
      double error = double{data.targets[k]} - double{bias};
      for (std::size_t d = 0; d < rank(); ++d) error -= double{w[d]} * double{data.others[k][d]};
      for (std::size_t d = 0; d < rank(); ++d) slope[d] -= error * double{data.others[k][d]};
      bias_slope -= error;
    }
    for (std::size_t d = 0; d < rank(); ++d) ASSERT_NEAR(slope[d], 0.0, 2e-5 * double(count + 10)) << count << ' ' << d;
    ASSERT_NEAR(bias_slope, 0.0, 2e-5 * double(count + 10));
    users.expect_zero_padding_and_guard();
  }
}

TEST_P(MfKernels, solving_without_a_penalty_fits_what_can_be_fitted) {
  const std::size_t count = std::min<std::size_t>(rank(), 20);  // as many unknowns as ratings, or more
  Side64 items(count, rank(), 19), users(1, rank(), 20);
  const Regression data(items, count);
  float bias = 0.0F;
  level().solve_row(data.view(), rank(), users.stride(), 0.0F, 0.0F, data.scratch, users.factors(), &bias);
  for (std::size_t k = 0; k < count; ++k) {
    double predicted = double{bias};
    for (std::size_t d = 0; d < rank(); ++d) predicted += double{users.factors()[d]} * double{data.others[k][d]};
    EXPECT_NEAR(predicted, double{data.targets[k]}, 0.02);
  }
}

TEST_P(MfKernels, an_empty_cell_changes_nothing) {
  Side64 users(3, rank(), 10), items(3, rank(), 11);
  const std::vector<float> before = users.bits();
  level().train_cell(view_of(random_cell(3, 3, 0)), users.view(), items.view(), users.stride(), {0.1F, 0.1F});
  EXPECT_EQ(users.bits(), before);
}

std::string name_of(const testing::TestParamInfo<std::tuple<SimdLevel, std::size_t>>& info) {
  return std::string(to_string(std::get<0>(info.param))) + "_rank_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(EveryLevel, MfKernels,
                         testing::Combine(testing::ValuesIn(levels()),
                                          testing::Values(1UL, 3UL, 16UL, 17UL, 64UL, 100UL, 128UL)),
                         name_of);

TEST(MfKernelLevels, agree_to_rounding) {
  const Cell cell = random_cell(100, 80, 2000);
  std::vector<std::vector<float>> results;
  for (const SimdLevel level : levels()) {
    Side64 users(100, 33, 12), items(80, 33, 13);
    kernels(level).train_cell(view_of(cell), users.view(), items.view(), users.stride(), {0.05F, 0.1F});
    results.push_back(users.bits());
  }
  for (const std::vector<float>& result : results) {
    for (std::size_t i = 0; i < result.size(); ++i) ASSERT_NEAR(result[i], results[0][i], 1e-4F);
  }
}

}  // namespace
}  // namespace orrery::mf
