#include "engine/access_costs.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <vector>

#include "engine/access_slots.h"
#include "engine/update_records.h"

namespace orrery {
namespace {

constexpr std::uint32_t kRecords = 1U << 14;  // with their values a megabyte: what a worker's plan usually takes
constexpr std::uint32_t kWidth = 6;

/// The best of a few runs, because others disturb only upwards.
template <class Body>
double nanoseconds_each(std::size_t count, Body&& body) {
  double best = 1e9;
  for (int run = 0; run < 5; ++run) {
    const auto start = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count() / static_cast<double>(count));
  }
  return best;
}

/// 0 to kRecords - 1 in no order: an odd multiple of each, so that every number comes once.
std::vector<std::uint32_t> scattered() {
  std::vector<std::uint32_t> order(kRecords);
  for (std::uint32_t i = 0; i < kRecords; ++i) order[i] = i * 0x9e3779b1U % kRecords;
  return order;
}

AccessCosts measure() {
  const std::vector<std::uint32_t> order = scattered();
  auto slots = std::make_shared<AccessSlots>(2 * kRecords);
  for (const std::uint32_t row : order) slots->enter(2 * row);
  UpdateRecords<float> records(kWidth, kWidth, std::pmr::get_default_resource());
  records.follow(slots, false);
  records.begin(0);
  const auto layout = records.layout();
  volatile std::uint64_t sink = 0;  // what is measured must not be left out
  AccessCosts costs;
  const auto sum_of = [&](auto&& of) {
    return nanoseconds_each(kRecords, [&] {
      std::uint64_t sum = 0;
      for (std::uint32_t i = 0; i < kRecords; ++i) sum += of(i);
      sink = sink + sum;
    });
  };
  costs.lookup = sum_of([&](std::uint32_t i) { return slots->find(2 * order[i]); });
  costs.visit = sum_of([&](std::uint32_t i) { return layout.touched(order[i]).clock; });
  costs.walk = sum_of([&](std::uint32_t i) { return layout.touched(i).clock; });
  std::array<float, 4096> sum{}, other{};
  other.fill(1.0F);
  costs.add = nanoseconds_each(sum.size(), [&] {
    for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += other[d];
    sink = sink + static_cast<std::uint64_t>(sum[sum.size() - 1]);
  });
  return costs;
}

}  // namespace

ValueList named(const AccessCosts& costs) {
  return {{"lookup_ns", costs.lookup}, {"visit_ns", costs.visit}, {"walk_ns", costs.walk}, {"add_ns", costs.add}};
}

const AccessCosts& access_costs() {
  static const AccessCosts costs = measure();
  return costs;
}

}  // namespace orrery
