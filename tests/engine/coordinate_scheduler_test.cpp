// Scheduled model parallelism: what is under way together does not depend on each other, draws follow their weights,
// bins are balanced, nobody starves, and a program on top of it descends where one without checks diverges.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>

#include "engine/coordinate_scheduler.h"

namespace orrery {
namespace {

/// Dependences from a matrix, costs from a list.
class PriorityTable final : public CoordinateModel {
 public:
  PriorityTable(std::uint32_t count, std::uint64_t seed) : count_(count) {
    const Random random(seed, Purpose::test);
    for (std::uint32_t a = 0; a < count; ++a) {
      for (std::uint32_t b = 0; b < count; ++b) {
        const std::uint64_t pair = std::uint64_t{std::min(a, b)} * count + std::max(a, b);
        values_.push_back(a == b ? 1.0 : std::pow(random.uniform(0, pair), 6));
      }
      costs_.push_back(1 + random.below(50, 1, a));
    }
  }
  std::uint32_t coordinates() const override { return count_; }
  double dependence(std::uint32_t a, std::uint32_t b) const override { return values_[a * count_ + b]; }
  std::uint64_t cost(std::uint32_t coordinate) const override { return costs_[coordinate]; }
  void set(std::uint32_t a, std::uint32_t b, double value) {
    values_[a * count_ + b] = values_[b * count_ + a] = value;
  }

 private:
  std::uint32_t count_;
  std::vector<double> values_;
  std::vector<std::uint64_t> costs_;
};

using Bins = std::vector<std::vector<std::uint32_t>>;

std::vector<std::uint32_t> items_of(const Bins& bins) {
  std::vector<std::uint32_t> items;
  for (const auto& bin : bins) items.insert(items.end(), bin.begin(), bin.end());
  return items;
}

std::vector<std::unique_ptr<PrioritySource>> sources(std::uint32_t count) {
  std::vector<std::unique_ptr<PrioritySource>> all;
  all.push_back(std::make_unique<SampledSource>(count, 1e-6, 4));
  all.push_back(std::make_unique<CyclicSource>(count, false, 4));
  all.push_back(std::make_unique<CyclicSource>(count, true, 4));
  all.push_back(std::make_unique<DynamicSource>(count));
  return all;
}

TEST(CoordinateSchedulerTest, what_is_under_way_together_keeps_the_threshold_also_across_rounds) {
  constexpr std::uint32_t kCount = 80;
  constexpr double kMost = 0.1;
  const PriorityTable table(kCount, 1);
  const Random random(2, Purpose::test);
  for (const auto& source : sources(kCount)) {
    for (const std::size_t in_flight : {1U, 3U}) {
      CoordinateScheduler scheduler(table, *source, {16, kMost});
      std::deque<std::vector<std::uint32_t>> rounds;
      std::size_t pairs = 0;
      for (Clock round = 0; round < 300; ++round) {
        Bins bins(4);
        scheduler.pick(round, bins);
        rounds.push_back(items_of(bins));
        std::vector<std::uint32_t> all;
        for (const auto& one : rounds) all.insert(all.end(), one.begin(), one.end());
        for (std::size_t a = 0; a < all.size(); ++a) {
          for (std::size_t b = a + 1; b < all.size(); ++b) {
            ASSERT_NE(all[a], all[b]);
            ASSERT_LT(table.dependence(all[a], all[b]), kMost);
            ++pairs;
          }
        }
        if (rounds.size() < in_flight) continue;
        for (const std::uint32_t j : rounds.front()) source->told(j, random.uniform(round, j) < 0.5 ? 0.0 : 0.1);
        scheduler.pulled();
        rounds.pop_front();
      }
      EXPECT_GT(pairs, 1000U);
      EXPECT_GT(scheduler.dropped(), 0U);
      while (!rounds.empty()) {
        scheduler.pulled();
        rounds.pop_front();
      }
    }
  }
}

TEST(CoordinateSchedulerTest, nobody_starves_beside_a_duplicate) {
  constexpr std::uint32_t kCount = 20;
  PriorityTable table(kCount, 3);
  for (std::uint32_t a = 0; a < kCount; ++a) {
    for (std::uint32_t b = 0; b < a; ++b) table.set(a, b, 0);
  }
  for (std::uint32_t j = 0; j < kCount; j += 2) table.set(j, j + 1, 1);
  for (const auto& source : sources(kCount)) {
    CoordinateScheduler scheduler(table, *source, {kCount, 0.1});
    std::vector<int> turns(kCount, 0);
    for (Clock round = 0; round < 100; ++round) {
      Bins bins(3);
      scheduler.pick(round, bins);
      for (const std::uint32_t j : items_of(bins)) {
        ++turns[j];
        source->told(j, 1.0);
      }
      scheduler.pulled();
    }
    for (const int count : turns) EXPECT_GE(count, 20);
  }
}

TEST(CoordinateSchedulerTest, draws_follow_the_weights) {
  constexpr std::uint32_t kCount = 37;
  SumTree tree(kCount, 1);
  const Random random(5, Purpose::test);
  std::vector<double> weights;
  for (std::uint32_t k = 0; k < kCount; ++k) {
    weights.push_back(k % 5 == 0 ? 0.0 : 0.2 + random.uniform(0, k));
    tree.set(k, weights.back());
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  EXPECT_NEAR(tree.total(), total, 1e-12);
  constexpr int kDraws = 200000;
  std::vector<int> counts(kCount, 0);
  RandomStream stream = random.stream(1, 0);
  for (int draw = 0; draw < kDraws; ++draw) ++counts[tree.find(stream.uniform() * tree.total())];
  double chi_square = 0;
  int cells = 0;
  for (std::uint32_t k = 0; k < kCount; ++k) {
    if (weights[k] == 0) {
      EXPECT_EQ(counts[k], 0);
      continue;
    }
    const double expected = kDraws * weights[k] / total;
    chi_square += (counts[k] - expected) * (counts[k] - expected) / expected;
    ++cells;
  }
  // Mean cells − 1, standard deviation √(2 (cells − 1)): five of them beyond never happens with these seeds.
  EXPECT_LT(chi_square, (cells - 1) + 5 * std::sqrt(2.0 * (cells - 1)));
}

TEST(CoordinateSchedulerTest, the_tree_finds_what_a_running_sum_finds) {
  const Random random(8, Purpose::test);
  for (const std::uint32_t count : {1U, 7U, 8U, 9U, 64U, 65U, 513U, 4097U}) {
    SumTree tree(count, 0.5);
    std::vector<std::uint32_t> weights(count, 1);  // in halves, so that sums are exact and drift would show
    for (std::uint64_t change = 0; change < 3000; ++change) {
      const auto k = static_cast<std::uint32_t>(random.below(count, 0, change));
      weights[k] = random.below(3, 1, change) == 0 ? 0 : static_cast<std::uint32_t>(random.below(1000, 2, change));
      tree.set(k, 0.5 * weights[k]);
    }
    double sum = 0;
    for (std::uint32_t k = 0; k < count; ++k) {
      EXPECT_EQ(tree.weight(k), 0.5 * weights[k]);
      if (weights[k] == 0) continue;
      EXPECT_EQ(tree.find(sum), k) << count;
      EXPECT_EQ(tree.find(sum + 0.5 * weights[k] - 0.25), k) << count;
      sum += 0.5 * weights[k];
    }
    EXPECT_EQ(tree.total(), sum);
    if (sum > 0) EXPECT_GT(tree.weight(tree.find(sum)), 0) << count;  // where rounding may put a point
  }
}

TEST(CoordinateSchedulerTest, sampled_candidates_are_drawn_by_their_last_change_squared) {
  constexpr std::uint32_t kCount = 12;
  constexpr double kEpsilon = 1e-3;
  SampledSource source(kCount, kEpsilon, 6);
  std::vector<double> weights;
  for (std::uint32_t j = 0; j < kCount; ++j) {
    const double change = 0.05 * j;
    source.told(j, change);
    weights.push_back(change * change + kEpsilon);
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  constexpr Clock kRounds = 50000;
  std::vector<int> counts(kCount, 0);
  for (Clock round = 0; round < kRounds; ++round) {
    std::vector<std::uint32_t> out;
    source.draw(round, 1, out);
    ASSERT_EQ(out.size(), 1U);
    ++counts[out[0]];
  }
  double chi_square = 0;
  for (std::uint32_t j = 0; j < kCount; ++j) {
    const double expected = kRounds * weights[j] / total;
    chi_square += (counts[j] - expected) * (counts[j] - expected) / expected;
  }
  EXPECT_LT(chi_square, (kCount - 1) + 5 * std::sqrt(2.0 * (kCount - 1)));
}

/// The least possible makespan, by trying everything.
std::uint64_t best_makespan(const std::vector<std::uint64_t>& costs, std::vector<std::uint64_t>& loads,
                            std::size_t at) {
  if (at == costs.size()) return *std::max_element(loads.begin(), loads.end());
  std::uint64_t best = ~std::uint64_t{0};
  for (std::uint64_t& load : loads) {
    load += costs[at];
    best = std::min(best, best_makespan(costs, loads, at + 1));
    load -= costs[at];
  }
  return best;
}

TEST(CoordinateSchedulerTest, bins_are_within_four_thirds_of_the_best_packing) {
  const Random random(7, Purpose::test);
  for (std::uint64_t trial = 0; trial < 60; ++trial) {
    const std::size_t bins = 2 + trial % 2;
    std::vector<std::uint64_t> costs;
    for (std::uint64_t k = 0; k < 8; ++k) costs.push_back(1 + random.below(trial < 30 ? 9 : 1000, 0, 100 * trial + k));
    std::vector<std::uint32_t> items(costs.size());
    std::iota(items.begin(), items.end(), 0U);
    Bins packed(bins);
    pack_longest_first(items, costs, packed);
    std::uint64_t fullest = 0;
    std::multiset<std::uint32_t> seen;
    for (const auto& bin : packed) {
      std::uint64_t load = 0;
      for (const std::uint32_t j : bin) {
        load += costs[j];
        seen.insert(j);
      }
      fullest = std::max(fullest, load);
    }
    EXPECT_EQ(seen, std::multiset<std::uint32_t>(items.begin(), items.end()));
    std::vector<std::uint64_t> loads(bins, 0);
    const auto best = static_cast<double>(best_makespan(costs, loads, 0));
    EXPECT_LE(static_cast<double>(fullest), (4.0 / 3 - 1.0 / (3.0 * static_cast<double>(bins))) * best + 1e-9);
  }
}

TEST(CoordinateSchedulerTest, a_pass_takes_every_coordinate_once_and_rests_get_longer) {
  CyclicSource cyclic(10, false, 1), shuffled(10, true, 1);
  for (CyclicSource* source : {&cyclic, &shuffled}) {
    for (int pass = 0; pass < 3; ++pass) {
      std::set<std::uint32_t> seen;
      for (const std::size_t wanted : {4U, 4U, 2U}) {
        std::vector<std::uint32_t> out;
        source->draw(0, wanted, out);
        EXPECT_EQ(out.size(), wanted);
        seen.insert(out.begin(), out.end());
      }
      EXPECT_EQ(seen.size(), 10U);
    }
  }
  DynamicSource dynamic(2);
  std::vector<int> turns(2, 0);
  for (Clock round = 0; round < 320; ++round) {
    std::vector<std::uint32_t> out;
    dynamic.draw(round, 2, out);
    for (const std::uint32_t j : out) {
      ++turns[j];
      dynamic.told(j, j == 0 ? 0.5 : 0.0);
    }
  }
  EXPECT_EQ(turns[0], 320);
  EXPECT_GE(turns[1], 8);
  EXPECT_LE(turns[1], 20);
}

TEST(CoordinateSchedulerTest, a_saved_scheduler_goes_on_with_the_same_rounds) {
  constexpr std::uint32_t kCount = 50;
  const PriorityTable table(kCount, 9);
  for (std::size_t which = 0; which < 4; ++which) {
    auto whole = std::move(sources(kCount)[which]), rest = std::move(sources(kCount)[which]);
    CoordinateScheduler first(table, *whole, {8, 0.1}), second(table, *rest, {8, 0.1});
    for (Clock round = 0; round < 60; ++round) {
      Bins bins(2), same(2);
      first.pick(round, bins);
      if (round >= 30) {
        second.pick(round, same);
        EXPECT_EQ(bins, same) << which << ' ' << round;
      }
      for (const std::uint32_t j : items_of(bins)) whole->told(j, j % 3 == 0 ? 0.0 : 0.1 / (1 + j));
      first.pulled();
      if (round >= 30) {
        for (const std::uint32_t j : items_of(same)) rest->told(j, j % 3 == 0 ? 0.0 : 0.1 / (1 + j));
        second.pulled();
      }
      if (round != 29) continue;
      Bytes bytes;
      whole->save(bytes);
      first.save(bytes);
      WireReader reader(bytes);
      rest->load(reader);
      second.load(reader);
    }
  }
}

}  // namespace
}  // namespace orrery
