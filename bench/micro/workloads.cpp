// See workloads.h.
#include "bench/micro/workloads.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>

#include "engine/random.h"

namespace orrery::bench {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kStripes = 16;  // what choose_grid gives the macro case; a workload is one of them

Rating draw_rating(const Random& random, const RatingsShape& shape, std::uint64_t index) {
  RandomStream draws = random.stream(0, index);
  const auto columns = static_cast<double>(shape.columns);
  const double item = std::pow(columns, draws.uniform()) - 1.0;  // p(item) ~ 1/(item + 1)
  const auto last = static_cast<std::uint32_t>(shape.columns - 1);
  return {static_cast<std::uint32_t>(draws.below(shape.rows)), std::min(static_cast<std::uint32_t>(item), last),
          static_cast<float>(draws.normal())};
}

mf::CellGrid make_grid(const RatingsShape& shape, std::size_t stride) {
  RatingStore ratings = make_ratings(shape, 1);
  const auto counts = mf::count_ratings(ratings, shape.rows, shape.columns, serial_for);
  const auto whole = mf::choose_grid(shape.ratings * kStripes, shape.rows * kStripes, shape.columns, stride, kStripes);
  return mf::CellGrid::build(std::move(ratings), deal_axis(counts.rows, 1, shape.rows),
                             deal_axis(counts.columns, whole.blocks, mf::kMaxBlockColumns), serial_for);
}

void fill_factors(std::span<float> factors, std::size_t stride, std::size_t rank, std::uint64_t item) {
  RandomStream draws = Random(1, Purpose::initial_model).stream(0, item);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    factors[i] = i % stride < rank ? 0.1F * static_cast<float>(draws.normal()) : 0.0F;
  }
}

void fill_sides(std::span<mf::Side> sides) {
  for (mf::Side& side : sides) side.decay = 0.02F;
}

}  // namespace

HugeArray::HugeArray(std::size_t bytes)
    : bytes_(bytes),
      memory_(static_cast<std::byte*>(std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage))) {
  if (!memory_) throw std::bad_alloc();
  madvise(memory_.get(), bytes, MADV_HUGEPAGE);  // advice: without it the figures are those of small pages
  std::memset(memory_.get(), 0, bytes);
}

void HugeArray::Free::operator()(std::byte* memory) const noexcept { std::free(memory); }

RatingStore make_ratings(const RatingsShape& shape, std::uint64_t seed) {
  const Random random(seed, Purpose::generator);
  RatingStore store;
  store.grow(shape.ratings);
  for (std::size_t c = 0, index = 0; c < store.chunks(); ++c) {
    for (Rating& rating : store.chunk(c)) rating = draw_rating(random, shape, index++);
  }
  return store;
}

std::string ratings_text(const RatingsShape& shape, std::uint64_t seed) {
  const Random random(seed, Purpose::generator);
  std::string text;
  char line[64];
  for (std::uint64_t i = 0; i < shape.ratings; ++i) {
    const Rating rating = draw_rating(random, shape, i);
    const double value = 3.5 + static_cast<double>(rating.value);
    text.append(line, static_cast<std::size_t>(
                          std::snprintf(line, sizeof line, "%u %u %.2f\n", rating.user, rating.item, value)));
  }
  return text;
}

FactorWorkload::FactorWorkload(const RatingsShape& shape, std::size_t rank)
    : stride_(mf::padded_rank(rank)),
      grid_(make_grid(shape, stride_)),
      row_factors_(shape.rows * stride_ * sizeof(float)),
      column_factors_(shape.columns * stride_ * sizeof(float)),
      row_sides_(shape.rows * sizeof(mf::Side)),
      column_sides_(shape.columns * sizeof(mf::Side)) {
  fill_factors({row_factors_.as<float>(), shape.rows * stride_}, stride_, rank, 0);
  fill_factors({column_factors_.as<float>(), shape.columns * stride_}, stride_, rank, 1);
  fill_sides({row_sides_.as<mf::Side>(), shape.rows});
  fill_sides({column_sides_.as<mf::Side>(), shape.columns});
  const RatingStore held_out = make_ratings({shape.rows, shape.columns, shape.ratings / 9}, 2);
  for (std::size_t c = 0; c < held_out.chunks(); ++c) {
    for (const Rating& rating : held_out.chunk(c)) {
      test_rows_.push_back(rating.user);
      test_columns_.push_back(rating.item);
      test_values_.push_back(rating.value);
    }
  }
}

void FactorWorkload::train(const mf::Kernels& kernels) {
  const mf::StepRule step{0.05F, 1.0F};
  const mf::FactorRows rows{row_factors_.as<float>(), row_sides_.as<mf::Side>()};
  for (std::size_t block = 0; block < grid_.blocks(); ++block) {
    const mf::Cell& cell = grid_.cell(0, block);
    const std::size_t first = grid_.columns().begin[block];
    const mf::FactorRows columns{column_factors_.as<float>() + first * stride_, column_sides_.as<mf::Side>() + first};
    const mf::CellView view{cell.batches.data(), cell.rows.data(), cell.columns.data(), cell.values.data()};
    kernels.train_cell(view, rows, columns, stride_, step);
  }
}

double FactorWorkload::measure(const mf::Kernels& kernels) const {
  return kernels
      .measure(test_rows_.data(), test_columns_.data(), test_values_.data(), test_rows_.size(),
               {row_factors_.as<float>(), row_sides_.as<mf::Side>()},
               {column_factors_.as<float>(), column_sides_.as<mf::Side>()}, stride_)
      .squares;
}

double FactorWorkload::bytes_per_update() const {
  std::size_t batches = 0;
  for (std::size_t block = 0; block < grid_.blocks(); ++block) batches += grid_.cell(0, block).rows.size();
  const double row_bytes = static_cast<double>(stride_ * sizeof(float) + sizeof(mf::Side));
  const double per_batch = row_bytes + sizeof(std::uint32_t);
  const double per_rating = row_bytes + sizeof(std::uint16_t) + sizeof(float);
  return per_rating + per_batch * static_cast<double>(batches) / static_cast<double>(grid_.ratings());
}

}  // namespace orrery::bench
