// See counted_kernels.h.
#include "bench/micro/counted_kernels.h"

#include "algorithms/mf_layout.h"
#include "bench/micro/temporary_file.h"
#include "bench/micro/workloads.h"
#include "engine/data/ratings.h"
#include "engine/random.h"
#include "engine/simd.h"

namespace orrery::bench {

namespace {

constexpr RatingsShape kSmall{800, 2000, 60000};

CountedKernel train(std::size_t rank, SimdLevel level) {
  return [=](const Region& region) {
    FactorWorkload work(kSmall, rank);
    region([&] { work.train(mf::kernels(level)); });
  };
}

CountedKernel measure(std::size_t rank, SimdLevel level) {
  return [=](const Region& region) {
    const FactorWorkload work(kSmall, rank);
    region([&] { work.measure(mf::kernels(level)); });
  };
}

void read(const Region& region) {
  const TemporaryFile file(ratings_text(kSmall, 1));
  region([&] { read_ratings(file.path()); });
}

void lay_out(const Region& region) {
  RatingStore ratings = make_ratings(kSmall, 1);
  region([&] {
    const auto counts = mf::count_ratings(ratings, kSmall.rows, kSmall.columns, serial_for);
    mf::CellGrid::build(std::move(ratings), mf::deal_axis(counts.rows, 4, kSmall.rows),
                        mf::deal_axis(counts.columns, 4, mf::kMaxBlockColumns), serial_for);
  });
}

void draw_normals(const Region& region) {
  volatile double sum = 0;
  region([&] {
    RandomStream draws = Random(1, Purpose::test).stream(0, 0);
    for (int i = 0; i < 100000; ++i) sum = sum + draws.normal();
  });
}

}  // namespace

std::map<std::string, CountedKernel> counted_kernels() {
  std::map<std::string, CountedKernel> kernels{
      {"reader/ratings", read}, {"reader/layout", lay_out}, {"random/normal", draw_normals}};
  for (const SimdLevel level : {SimdLevel::portable, SimdLevel::avx2}) {
    for (const std::size_t rank : {16, 64, 128}) {
      const std::string tail = "/k" + std::to_string(rank) + "/" + std::string(to_string(level));
      kernels.emplace("mf/train" + tail, train(rank, level));
      kernels.emplace("mf/measure" + tail, measure(rank, level));
    }
  }
  return kernels;
}

}  // namespace orrery::bench
