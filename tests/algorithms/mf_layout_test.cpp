// The layout of matrix factorisation: every rating exactly once, balanced, and the same however it was built.
#include "algorithms/mf_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <thread>
#include <tuple>

#include "engine/random.h"

namespace orrery::mf {
namespace {

RatingStore zipf_ratings(std::size_t users, std::size_t items, std::uint64_t count) {
  const Random random(5, Purpose::test);
  RatingStore store;
  for (std::uint64_t i = 0; i < count; ++i) {
    RandomStream draws = random.stream(0, i);
    const double u = draws.uniform();
    const auto item =
        static_cast<std::uint32_t>(std::pow(static_cast<double>(items), u) - 1.0);  // p(item) ~ 1/(item+1)
    store.push_back({static_cast<std::uint32_t>(draws.below(users)), std::min(item, std::uint32_t(items - 1)),
                     static_cast<float>(i)});
  }
  return store;
}

CellGrid grid_of(RatingStore ratings, std::size_t users, std::size_t items, std::size_t stripes, std::size_t blocks,
                 const ParallelFor& parallel = serial_for, const StripeRange& here = {}) {
  const AxisCounts counts = count_ratings(ratings, users, items, parallel);
  return CellGrid::build(std::move(ratings), deal_axis(counts.rows, stripes, users),
                         deal_axis(counts.columns, blocks, kMaxBlockColumns), parallel, here);
}

/// Runs every body on its own thread, last first.
void threaded_for(std::size_t n, const std::function<void(std::size_t)>& body) {
  std::vector<std::jthread> threads;
  for (std::size_t i = n; i > 0; --i) threads.emplace_back([&body, i] { body(i - 1); });
}

using Triple = std::tuple<std::uint32_t, std::uint32_t, float>;

std::multiset<Triple> triples_of(const CellGrid& grid) {
  std::multiset<Triple> out;
  for (std::size_t s = 0; s < grid.stripes(); ++s) {
    for (std::size_t b = 0; b < grid.blocks(); ++b) {
      const Cell& cell = grid.cell(s, b);
      std::size_t batch = 0, rating = 0;
      for (std::size_t n = kMaxBatch; n > 0; --n) {
        for (std::uint32_t k = 0; k < cell.batches[n - 1]; ++k, ++batch) {
          for (std::size_t i = 0; i < n; ++i, ++rating) {
            out.emplace(grid.rows().begin[s] + cell.rows[batch], grid.columns().begin[b] + cell.columns[rating],
                        cell.values[rating]);
          }
        }
      }
      EXPECT_EQ(batch, cell.rows.size());
      EXPECT_EQ(rating, cell.ratings());
      EXPECT_EQ(cell.values.size(), rating + kValuePadding);
    }
  }
  return out;
}

TEST(MfLayout, every_rating_stands_in_exactly_one_cell) {
  RatingStore ratings = zipf_ratings(700, 300, 40000);
  std::vector<Rating> input;
  for (std::size_t c = 0; c < ratings.chunks(); ++c) {
    input.insert(input.end(), ratings.chunk(c).begin(), ratings.chunk(c).end());
  }
  const CellGrid grid = grid_of(std::move(ratings), 700, 300, 5, 10);
  std::multiset<Triple> expected;
  for (const Rating& r : input) {
    expected.emplace(grid.rows().internal[r.user], grid.columns().internal[r.item], r.value);
  }
  EXPECT_EQ(triples_of(grid), expected);
  EXPECT_EQ(grid.ratings(), input.size());
}

TEST(MfLayout, internal_ids_are_a_permutation_and_parts_are_contiguous) {
  const CellGrid grid = grid_of(zipf_ratings(100, 50, 3000), 100, 50, 4, 8);
  for (const Axis* axis : {&grid.rows(), &grid.columns()}) {
    std::vector<std::uint32_t> sorted = axis->internal;
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::uint32_t> all(axis->size());
    std::iota(all.begin(), all.end(), 0U);
    EXPECT_EQ(sorted, all);
    for (std::size_t id = 0; id < axis->size(); ++id) {
      EXPECT_GE(axis->internal[id], axis->begin[axis->part[id]]);
      EXPECT_LT(axis->internal[id], axis->begin[axis->part[id] + 1]);
    }
  }
}

TEST(MfLayout, parts_hold_nearly_the_same_number_of_ratings_on_skewed_data) {
  const CellGrid grid = grid_of(zipf_ratings(2000, 3000, 200000), 2000, 3000, 8, 16);
  for (const Axis* axis : {&grid.rows(), &grid.columns()}) {
    const std::uint64_t total = std::accumulate(axis->counts.begin(), axis->counts.end(), std::uint64_t{0});
    const std::uint64_t most = *std::max_element(axis->counts.begin(), axis->counts.end());
    for (std::size_t p = 0; p < axis->parts(); ++p) {
      const std::uint64_t load = std::accumulate(axis->counts.begin() + axis->begin[p],
                                                 axis->counts.begin() + axis->begin[p + 1], std::uint64_t{0});
      EXPECT_LE(load, std::max(total / axis->parts() + 16, most));
      EXPECT_LE(axis->part_size(p), 2 * ((axis->size() + axis->parts() - 1) / axis->parts()));
    }
  }
}

TEST(MfLayout, a_part_never_takes_more_ids_than_its_cap) {
  const std::vector<std::uint32_t> counts(1000, 0);
  const Axis axis = deal_axis(counts, 4, 250);
  for (std::size_t p = 0; p < 4; ++p) EXPECT_EQ(axis.part_size(p), 250U);
}

TEST(MfLayout, frequent_ids_come_first_in_their_part) {
  const CellGrid grid = grid_of(zipf_ratings(50, 400, 20000), 50, 400, 2, 4);
  const Axis& columns = grid.columns();
  for (std::size_t p = 0; p < columns.parts(); ++p) {
    EXPECT_TRUE(std::is_sorted(columns.counts.begin() + columns.begin[p], columns.counts.begin() + columns.begin[p + 1],
                               std::greater<>()));
  }
}

TEST(MfLayout, a_batch_is_one_row_with_distinct_columns_and_rows_ascend_in_each_class) {
  const CellGrid grid = grid_of(zipf_ratings(40, 60, 20000), 40, 60, 2, 2);  // full of duplicates
  EXPECT_GT(grid.duplicates(), 1000U);
  for (std::size_t c = 0; c < 4; ++c) {
    const Cell& cell = grid.cell(c / 2, c % 2);
    const std::uint32_t* row = cell.rows.data();
    const std::uint16_t* column = cell.columns.data();
    for (std::size_t n = kMaxBatch; n > 0; --n) {
      EXPECT_TRUE(std::is_sorted(row, row + cell.batches[n - 1]));
      for (std::uint32_t b = 0; b < cell.batches[n - 1]; ++b, column += n) {
        EXPECT_EQ(std::set<std::uint16_t>(column, column + n).size(), n);
      }
      row += cell.batches[n - 1];
    }
  }
}

TEST(MfLayout, counts_duplicates) {
  RatingStore ratings;
  for (const std::uint32_t item : {3U, 1U, 3U, 3U}) ratings.push_back({0, item, 1.0F});
  EXPECT_EQ(grid_of(std::move(ratings), 1, 4, 1, 1).duplicates(), 2U);
}

bool same(const Cell& x, const Cell& y) {
  return x.batches == y.batches && x.rows == y.rows && x.columns == y.columns && x.values == y.values;
}

TEST(MfLayout, is_the_same_however_work_is_spread) {
  const auto build = [](const ParallelFor& parallel) {
    return grid_of(zipf_ratings(900, 500, 400000), 900, 500, 6, 6, parallel);
  };
  const CellGrid serial = build(serial_for), threaded = build(threaded_for);
  for (std::size_t s = 0; s < 6; ++s) {
    for (std::size_t b = 0; b < 6; ++b) {
      EXPECT_TRUE(same(serial.cell(s, b), threaded.cell(s, b)));
    }
  }
}

TEST(MfLayout, nodes_have_the_cells_of_their_stripes_and_no_others) {
  const auto build = [](const StripeRange& here) {
    return grid_of(zipf_ratings(300, 200, 20000), 300, 200, 5, 10, serial_for, here);
  };
  const CellGrid whole = build({});
  EXPECT_EQ(whole.here().last, 5U);
  for (const StripeRange& here : {StripeRange{0, 2}, StripeRange{2, 5}}) {
    const CellGrid part = build(here);
    EXPECT_EQ(part.ratings(), whole.ratings());
    for (std::size_t s = 0; s < 5; ++s) {
      for (std::size_t b = 0; b < 10; ++b) {
        EXPECT_TRUE(same(part.cell(s, b), here.holds(s) ? whole.cell(s, b) : Cell{}));
      }
    }
  }
}

TEST(MfLayout, normalised_values_are_centred_and_scaled) {
  CellGrid grid = grid_of(zipf_ratings(100, 100, 5000), 100, 100, 3, 3);
  const std::multiset<Triple> before = triples_of(grid);
  grid.normalise(2499.5, 1000, serial_for);
  std::multiset<Triple> expected;
  for (const auto& [row, column, value] : before) {
    expected.emplace(row, column, static_cast<float>((value - 2499.5) / 1000));
  }
  EXPECT_EQ(triples_of(grid), expected);
}

TEST(MfLayout, takes_about_7_bytes_a_rating) {
  const CellGrid grid = grid_of(zipf_ratings(3000, 200000, 300000), 3000, 200000, 4, 4);
  EXPECT_LT(grid.bytes() - 12U * 203000U, 8U * 300000U);
}

TEST(MfLayout, rows_and_columns_without_ratings_have_a_place_too) {
  RatingStore ratings;
  ratings.push_back({2, 0, 1.0F});
  const CellGrid grid = grid_of(std::move(ratings), 5, 3, 2, 4);
  EXPECT_EQ(grid.rows().size(), 5U);
  EXPECT_EQ(grid.columns().begin.back(), 3U);
  EXPECT_EQ(triples_of(grid).size(), 1U);
}

TEST(MfLayout, a_grid_of_many_more_parts_than_ids_holds_every_rating) {
  const CellGrid grid = grid_of(zipf_ratings(30, 20, 400), 30, 20, 300, 300);
  EXPECT_EQ(triples_of(grid).size(), 400U);
  EXPECT_EQ(grid.ratings(), 400U);
}

TEST(MfLayout, the_grid_depends_on_the_size_of_the_data) {
  EXPECT_EQ(choose_grid(1, 1, 1, 16, 0).stripes, 1U);
  EXPECT_EQ(choose_grid(10'000'000, 100'000, 20'000, 16, 0).stripes, 16U);
  for (const std::size_t workers : {1UL, 3UL, 16UL, 40UL}) {
    const GridShape shape = choose_grid(10'000'000, 100'000, 20'000, 128, workers);
    EXPECT_EQ(shape.stripes, workers);
    EXPECT_EQ(shape.blocks % workers, 0U);
  }
  const GridShape wide = choose_grid(1'000'000, 1'000'000, 10'000'000, 16, 16);
  EXPECT_GE(wide.blocks * kMaxBlockColumns, 10'000'000U);
}

}  // namespace
}  // namespace orrery::mf
