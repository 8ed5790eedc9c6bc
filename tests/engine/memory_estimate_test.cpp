#include "engine/memory_estimate.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/engine/files.h"

namespace orrery {
namespace {

using test::expect_error;

TEST(MemoryEstimate, TotalIsTheSumOfItsParts) {
  MemoryEstimate estimate;
  EXPECT_EQ(estimate.total(), 0U);
  estimate.add("ratings", 1000, 24).add("model", 500, 4).add("rest", 7);
  EXPECT_EQ(estimate.total(), 26007U);
  EXPECT_EQ(estimate.parts().size(), 3U);
}

TEST(MemoryEstimate, FitsUpToTheLimitAndIsRefusedAboveItWithTheNumbers) {
  MemoryEstimate estimate;
  estimate.add("ratings", 3, std::uint64_t{1} << 30).add("model", 1, std::uint64_t{1} << 30);
  estimate.require_fits(std::uint64_t{4} << 30, "--memory-limit");
  expect_error(ErrorKind::usage, {"4.0 GiB", "--memory-limit", "2.0 GiB", "ratings", "3.0 GiB", "model", "1.0 GiB"},
               [&] { estimate.require_fits(std::uint64_t{2} << 30, "--memory-limit"); });
}

TEST(MemoryEstimate, HugeNumbersDoNotWrapAround) {
  MemoryEstimate estimate;
  estimate.add("a", std::uint64_t{1} << 40, std::uint64_t{1} << 40).add("b", 5);
  EXPECT_EQ(estimate.total(), std::numeric_limits<std::uint64_t>::max());
}

TEST(MemoryEstimate, TableIsAligned) {
  MemoryEstimate estimate;
  estimate.add("a", 1).add("a longer name", 10 << 20);
  EXPECT_EQ(estimate.table(),
            "  a               1 bytes\n"
            "  a longer name  10.0 MiB\n"
            "  total          10.0 MiB\n");
}

TEST(PeakRss, GrowsWithWhatIsTouched) {
  const std::uint64_t before = peak_rss_bytes();
  ASSERT_GT(before, 0U);
  constexpr std::size_t kSize = 64 << 20;
  const std::string touched(kSize, 'x');
  EXPECT_GE(peak_rss_bytes(), before + kSize / 2) << touched.size();
}

}  // namespace
}  // namespace orrery
