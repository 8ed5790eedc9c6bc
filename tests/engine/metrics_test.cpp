#include "engine/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/engine/files.h"

namespace orrery {
namespace {

using test::expect_error;
using test::read_bytes;
using test::TemporaryDirectory;
using test::write_bytes;

ValueList line_of(Clock iteration) {
  return {{"iteration", iteration}, {"seconds", 0.1 * static_cast<double>(iteration)}, {"rmse", 1.0 / 3.0}};
}

TEST(Metrics, ALineIsWrittenInOrderWithEveryBitOfItsNumbers) {
  EXPECT_EQ(to_json({{"b", std::int64_t{1}}, {"a", 0.1}, {"c", true}, {"d", std::string{"x\"\ny"}}, {"e", 2.0}}),
            R"({"b":1,"a":0.1,"c":true,"d":"x\"\ny","e":2.0})");
  const TemporaryDirectory directory;
  MetricsFile(directory / "m").append(line_of(3));
  EXPECT_EQ(number_in(read_metrics(directory / "m").at(0), "rmse"), 1.0 / 3.0);
}

TEST(Metrics, NanAndInfinityAreNull) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(to_json({{"a", std::nan("")}, {"b", kInf}, {"c", -kInf}}), R"({"a":null,"b":null,"c":null})");
  const TemporaryDirectory directory;
  write_bytes(directory / "m", "{\"a\":null}\n");
  EXPECT_TRUE(std::isnan(number_in(read_metrics(directory / "m").at(0), "a")));
}

TEST(Metrics, TextThatIsNoUtf8DoesNotStopARun) {
  EXPECT_NE(to_json({{"a", std::string{"x\xff"}}}).find("x"), std::string::npos);
}

TEST(Metrics, EachLineIsInTheFileAtOnce) {
  const TemporaryDirectory directory;
  MetricsFile file(directory / "m");
  for (Clock i = 1; i <= 5; ++i) {
    file.append(line_of(i));
    EXPECT_EQ(read_metrics(directory / "m").size(), static_cast<std::size_t>(i));
  }
  file.sync();
}

TEST(Metrics, ResumingCutsBackToTheCheckpoint) {
  const TemporaryDirectory directory;
  {
    MetricsFile file(directory / "m");
    for (Clock i = 1; i <= 9; ++i) file.append(line_of(i));
  }
  const std::string first_six =
      read_bytes(directory / "m").substr(0, read_bytes(directory / "m").find("{\"iteration\":7"));
  write_bytes(directory / "m", read_bytes(directory / "m") + R"({"iteration":10,"sec)");
  MetricsFile file(directory / "m", Clock{6});
  EXPECT_EQ(read_bytes(directory / "m"), first_six);
  file.append(line_of(7));
  EXPECT_EQ(read_metrics(directory / "m").size(), 7U);
}

TEST(Metrics, ResumingWithoutAFileStartsOne) {
  const TemporaryDirectory directory;
  MetricsFile file(directory / "m", Clock{6});
  file.append(line_of(7));
  EXPECT_EQ(read_metrics(directory / "m").size(), 1U);
}

TEST(Metrics, AMalformedLineIsADataErrorWithItsNumber) {
  const TemporaryDirectory directory;
  write_bytes(directory / "m", "{\"iteration\":1}\nnonsense\n{\"iteration\":3}\n");
  expect_error(ErrorKind::data, {"m:2", "nonsense"}, [&] { read_metrics(directory / "m"); });
  write_bytes(directory / "m", "{\"iteration\":[1]}\n");
  expect_error(ErrorKind::data, {"m:1", "flat"}, [&] { read_metrics(directory / "m"); });
  expect_error(ErrorKind::data, {"cannot be read"}, [&] { read_metrics(directory / "no"); });
}

TEST(Metrics, AFullDiskIsAnOutputErrorAndTakesTheTornLineBack) {
  const TemporaryDirectory directory;
  EXPECT_EQ(test::exit_code_of_child([&] {
              test::limit_file_size(200);
              MetricsFile file(directory / "m");
              for (Clock i = 1;; ++i) file.append(line_of(i));
              return 0;
            }),
            5);
  const std::string text = read_bytes(directory / "m");
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(text.back(), '\n');
  EXPECT_GE(read_metrics(directory / "m").size(), 2U);
  expect_error(ErrorKind::output, {"/dev/full", "No space"}, [] { MetricsFile("/dev/full").append(line_of(1)); });
}

TEST(Metrics, NoDirectoryIsAnOutputError) {
  const TemporaryDirectory directory;
  expect_error(ErrorKind::output, {"no/m"}, [&] { MetricsFile(directory / "no/m"); });
}

}  // namespace
}  // namespace orrery
