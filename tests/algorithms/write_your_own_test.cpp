// The program of algorithms/README.md: it is there as it stands in l1_logistic.h, and it does what the page says.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>
#include <utility>
#include <vector>

#include "engine/coordinate_scheduler.h"
#include "engine/engine.h"
#include "engine/executor.h"
#include "engine/schedule.h"

namespace orrery {
namespace {

#include "tests/algorithms/l1_logistic.h"

constexpr std::uint32_t kColumns = 60;
constexpr std::size_t kRows = 200;

std::vector<std::vector<double>> make_columns() {
  const Random random(3, Purpose::test);
  std::vector<std::vector<double>> columns(kColumns, std::vector<double>(kRows));
  for (std::size_t i = 0; i < kRows; ++i) {
    RandomStream draw = random.stream(0, i);
    double before = draw.normal();
    for (auto& column : columns) {
      before = 0.8 * before + 0.6 * draw.normal();  // neighbours are strongly correlated
      column[i] = before;
    }
  }
  return columns;
}

std::vector<double> make_classes(const std::vector<std::vector<double>>& columns) {
  const Random random(4, Purpose::test);
  std::vector<double> y;
  for (std::size_t i = 0; i < kRows; ++i) {
    const double margin = 2 * columns[5][i] - 1.5 * columns[20][i];
    y.push_back(random.uniform(0, i) < 1 / (1 + std::exp(-margin)) ? 1.0 : -1.0);
  }
  return y;
}

std::vector<double> trained(unsigned threads, double lambda, double* violation) {
  constexpr WorkerId kWorkers = 4;
  EngineOptions options;
  options.threads = threads;
  Engine engine(options);
  const auto columns = make_columns();
  L1Logistic program(columns, make_classes(columns), lambda, kWorkers);
  ScheduledSchedule schedule(kWorkers, [&](Clock round, auto bins) { program.pick(round, bins); });
  Executor executor(engine, schedule, program, kWorkers, {});
  executor.run(8000);
  const std::vector<double> weights(program.weights().begin(), program.weights().end());
  *violation = 0;
  for (std::uint32_t j = 0; j < kColumns; ++j) {
    const double slope = program.slope(j);
    const double off =
        weights[j] == 0 ? std::max(std::abs(slope) - lambda, 0.0) : std::abs(slope + std::copysign(lambda, weights[j]));
    *violation = std::max(*violation, off);
  }
  return weights;
}

TEST(WriteYourOwnTest, the_program_of_the_page_ends_at_the_minimum_with_the_same_bits_on_any_threads) {
  double violation = 0;
  const std::vector<double> weights = trained(1, 0.05, &violation);
  EXPECT_LT(violation, 1e-6);
  const auto zeros = std::count(weights.begin(), weights.end(), 0.0);
  EXPECT_GT(zeros, 20);
  EXPECT_LT(zeros, 60);
  EXPECT_EQ(trained(2, 0.05, &violation), weights);
}

TEST(WriteYourOwnTest, the_page_shows_the_program_as_it_is) {
  const auto text_of = [](const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(std::string(ORRERY_SOURCE_DIR) + "/" + file).rdbuf();
    return text.str();
  };
  const std::string program = text_of("tests/algorithms/l1_logistic.h");
  ASSERT_FALSE(program.empty());
  EXPECT_NE(text_of("algorithms/README.md").find("```cpp\n" + program + "```"), std::string::npos);
}

}  // namespace
}  // namespace orrery
