#include "engine/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <thread>
#include <vector>

namespace orrery {
namespace {

TEST(Random, IsAFunctionOfSeedPurposeClockAndItem) {
  const Random a(7, Purpose::test);
  const Random b(7, Purpose::test);
  EXPECT_EQ(a.at(3, 4), b.at(3, 4));
  EXPECT_NE(a.at(3, 4), Random(8, Purpose::test).at(3, 4));
  EXPECT_NE(a.at(3, 4), Random(7, Purpose::sampling).at(3, 4));
  EXPECT_NE(a.at(3, 4), a.at(4, 4));
  EXPECT_NE(a.at(3, 4), a.at(3, 5));
  EXPECT_NE(a.at(3, 4), a.at(3, 4 + (std::uint64_t{1} << 32)));
  EXPECT_NE(a.at(3, 4), a.at(3 + (Clock{1} << 32), 4));
  EXPECT_NE(a.at(-1, 4), a.at(0, 4));
}

TEST(Random, NeighbouringKeysShareNoWords) {
  std::set<std::uint32_t> seen;
  std::size_t drawn = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    for (Clock clock = 0; clock < 8; ++clock) {
      for (std::uint64_t item = 0; item < 64; ++item) {
        for (const std::uint32_t word : Random(seed, Purpose::test).at(clock, item)) {
          seen.insert(word);
          ++drawn;
        }
      }
    }
  }
  // 8192 words out of 2^32: about 0.008 collisions are expected.
  EXPECT_GE(seen.size() + 2, drawn);
}

TEST(Random, ThreadsAskingInAnyOrderGetTheSame) {
  const Random random(1, Purpose::test);
  std::vector<double> forward(1000);
  std::vector<double> backward(1000);
  std::thread other([&] {
    for (std::size_t i = 1000; i > 0; --i) backward[i - 1] = random.normal(5, i - 1);
  });
  for (std::size_t i = 0; i < 1000; ++i) forward[i] = random.normal(5, i);
  other.join();
  EXPECT_EQ(forward, backward);
}

TEST(Random, AtAndTheHelpersAreTheBeginningOfTheStream) {
  const Random random(11, Purpose::test);
  RandomStream stream = random.stream(2, 9);
  const auto words = random.at(2, 9);
  for (const std::uint32_t word : words) EXPECT_EQ(stream.next(), word);
  RandomStream again = random.stream(2, 9);
  EXPECT_EQ(again.uniform(), random.uniform(2, 9));
  EXPECT_EQ(static_cast<float>(words[0] >> 8) / 16777216.0F, random.uniform_float(2, 9));
}

TEST(Random, UniformIsInTheHalfOpenIntervalWithTheRightMoments) {
  RandomStream stream = Random(1, Purpose::test).stream(0, 0);
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = stream.uniform();
    const float y = stream.uniform_float();
    ASSERT_TRUE(x >= 0.0 && x < 1.0);
    ASSERT_TRUE(y >= 0.0F && y < 1.0F);
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3.0, 0.005);
}

TEST(Random, NormalHasTheMomentsAndTailsOfANormal) {
  RandomStream stream = Random(3, Purpose::test).stream(0, 0);
  constexpr int kDraws = 400000;
  double sum = 0;
  double squares = 0;
  double fourth = 0;
  int beyond_two = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = stream.normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    beyond_two += std::abs(x) > 2.0 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kDraws, 0.0, 0.01);
  EXPECT_NEAR(squares / kDraws, 1.0, 0.01);
  EXPECT_NEAR(fourth / kDraws, 3.0, 0.06);
  EXPECT_NEAR(static_cast<double>(beyond_two) / kDraws, 0.0455, 0.002);
}

TEST(Random, BelowIsUnbiasedAndInRange) {
  RandomStream stream = Random(5, Purpose::test).stream(0, 0);
  for (const std::uint64_t n : {std::uint64_t{1}, std::uint64_t{7}, std::uint64_t{3} << 30, std::uint64_t{3} << 62}) {
    std::vector<int> thirds(3);
    for (int i = 0; i < 30000; ++i) {
      const std::uint64_t value = stream.below(n);
      ASSERT_LT(value, n);
      ++thirds[static_cast<std::size_t>(static_cast<double>(value) / static_cast<double>(n) * 3.0)];
    }
    if (n < 3) continue;
    // With 3 * 2^30 a plain remainder or a shift would give one third twice the weight of another.
    const double expected_first = n == 7 ? 30000 * 3.0 / 7.0 : 10000;
    EXPECT_NEAR(thirds[0], expected_first, 400) << n;
  }
}

TEST(Random, PermutationIsAPermutationAndEveryOrderIsPossible) {
  const Random random(1, Purpose::test);
  for (const std::uint32_t n : {0U, 1U, 2U, 100U}) {
    std::vector<std::uint32_t> order = random.permutation(n, 1, 2);
    EXPECT_EQ(order, random.permutation(n, 1, 2));
    std::sort(order.begin(), order.end());
    for (std::uint32_t i = 0; i < n; ++i) EXPECT_EQ(order[i], i);
  }
  std::set<std::vector<std::uint32_t>> orders;
  for (std::uint64_t item = 0; item < 1000; ++item) orders.insert(random.permutation(4, 0, item));
  EXPECT_EQ(orders.size(), 24U);
}

TEST(Random, WordsOfTheReferenceImplementationComeOut) {
  // Known answer of Random123's kat_vectors for philox4x32-10, counter and key all ones: guards against a changed
  // header.
  const r123::Philox4x32::ctr_type counter{{~0U, ~0U, ~0U, ~0U}};
  const r123::Philox4x32::key_type key{{~0U, ~0U}};
  const auto words = r123::Philox4x32{}(counter, key);
  EXPECT_EQ(words[0], 0x408f276dU);
  EXPECT_EQ(words[1], 0x41c83b0eU);
  EXPECT_EQ(words[2], 0xa20bc7c6U);
  EXPECT_EQ(words[3], 0x6d5451fdU);
}

}  // namespace
}  // namespace orrery
