// Logistic regression with adaptive steps on a table: against a serial program from the paper, and the promises of
// tables seen from an algorithm.
#include "algorithms/adaptive_steps.h"

#include <gtest/gtest.h>

#include <cmath>

#include "algorithms/logistic_loss.h"
#include "engine/executor.h"
#include "engine/random.h"
#include "engine/reduce.h"
#include "tests/engine/toy_programs.h"

namespace orrery {
namespace {

constexpr std::uint32_t kStepColumns = 40;
constexpr AdaptiveRule kRule{.rate = 0.3, .l2 = 1e-3, .batch = 8};

/// Sparse rows with a planted plane, some on its wrong side, one without entries.
struct Data {
  explicit Data(std::uint64_t count) {
    rows.column_count = kStepColumns;
    for (std::uint64_t r = 0; r < count; ++r) {
      RandomStream draws = Random(5, Purpose::test).stream(0, r);
      double margin = 0;
      for (std::uint32_t c = 0; c < kStepColumns; ++c) {
        if (draws.below(5) != 0 || r == 7) continue;
        rows.columns.push_back(c);
        rows.values.push_back(static_cast<float>(draws.normal()));
        margin += (c % 2 == 0 ? 1.0 : -1.0) * rows.values.back();
      }
      rows.starts.push_back(rows.columns.size());
      signs.push_back(margin + 0.5 * draws.normal() > 0 ? 1.0F : -1.0F);
      rows.labels.push_back(signs.back());
    }
  }
  SparseRows rows;
  std::vector<float> signs;
};

double objective(const Data& data, std::span<const float> weights) {
  double sum = 0, squares = 0;
  for (std::uint64_t r = 0; r < data.rows.rows(); ++r) {
    double margin = weights[kStepColumns];
    for (std::uint64_t e = data.rows.starts[r]; e < data.rows.starts[r + 1]; ++e) {
      margin += double{weights[data.rows.columns[e]]} * data.rows.values[e];
    }
    sum += std::log1p(std::exp(-data.signs[r] * margin));
  }
  for (std::uint32_t c = 0; c < kStepColumns; ++c) squares += double{weights[c]} * weights[c];
  return sum / static_cast<double>(data.rows.rows()) + kRule.l2 / 2 * squares;
}

struct Shape {
  unsigned threads = 1;
  WorkerId workers = 4;
  Clock staleness = 0;
  const char* topology = "";
  NodeId nodes = 1;
};

std::vector<float> train(const Data& data, const Shape& shape, Clock iterations) {
  const logistic::LogisticScoreLoss loss(data.signs);
  std::vector<float> weights;
  toy::on_cluster(shape.nodes, toy::options_with(shape.threads, shape.staleness, shape.topology),
                  [&](NodeId node, Engine& engine) {
                    const WorkerMap map(shape.workers, shape.nodes, node, engine.domains());
                    AdaptiveTrainee trainee(engine, map, data.rows, loss, true, kRule,
                                            std::vector<float>(kStepColumns + 1, 0.0F), {});
                    DataParallelSchedule schedule(std::vector<std::uint32_t>(shape.workers, 1));
                    Executor executor(engine, schedule, trainee, shape.workers, {});
                    executor.run(iterations * trainee.clocks_per_iteration());
                    if (node == 0) weights = trainee.weights();
                  });
  return weights;
}

/// The update of the paper under bulk synchronous parallel, worker after worker, in doubles.
std::vector<double> train_serially(const Data& data, WorkerId workers, Clock clocks) {
  std::vector<double> weights(kStepColumns + 1, 0), squares(kStepColumns + 1, 0), occurs(kStepColumns, 0);
  for (const std::uint32_t column : data.rows.columns) ++occurs[column];
  const std::uint64_t rows = data.rows.rows();
  for (Clock clock = 0; clock < clocks; ++clock) {
    std::vector<double> step(kStepColumns + 1, 0), more(kStepColumns + 1, 0);
    for (WorkerId w = 0; w < workers; ++w) {
      const std::uint64_t first = rows * w / workers, count = rows * (w + 1) / workers - first;
      const std::uint64_t batch = std::min(kRule.batch, count);
      std::vector<double> gradient(kStepColumns + 1, 0), counts(kStepColumns + 1, 0);
      for (std::uint64_t i = 0; i < batch; ++i) {
        const std::uint64_t r = first + (static_cast<std::uint64_t>(clock) * batch + i) % count;
        double margin = weights[kStepColumns];
        for (std::uint64_t e = data.rows.starts[r]; e < data.rows.starts[r + 1]; ++e) {
          margin += weights[data.rows.columns[e]] * data.rows.values[e];
        }
        const double slope = -data.signs[r] / (1 + std::exp(data.signs[r] * margin));
        for (std::uint64_t e = data.rows.starts[r]; e < data.rows.starts[r + 1]; ++e) {
          gradient[data.rows.columns[e]] += slope * data.rows.values[e];
          ++counts[data.rows.columns[e]];
        }
        gradient[kStepColumns] += slope;
        ++counts[kStepColumns];
      }
      for (std::uint32_t c = 0; c <= kStepColumns; ++c) {
        if (counts[c] == 0) continue;
        double g = gradient[c] / static_cast<double>(batch);
        if (c < kStepColumns) {
          g += kRule.l2 * (static_cast<double>(rows) / static_cast<double>(batch)) * counts[c] / occurs[c] * weights[c];
        }
        step[c] -= kRule.rate * g / std::sqrt(1e-6 + squares[c] + workers * g * g);
        more[c] += g * g;
      }
    }
    for (std::uint32_t c = 0; c <= kStepColumns; ++c) {
      weights[c] += step[c];
      squares[c] += more[c];
    }
  }
  return weights;
}

TEST(AdaptiveSteps, follows_the_serial_program_of_the_paper) {
  const Data data(203);
  const std::vector<double> expected = train_serially(data, 4, 3 * 7);  // 51 rows of the longest share, 8 a clock
  const std::vector<float> found = train(data, {.threads = 2}, 3);
  for (std::uint32_t c = 0; c <= kStepColumns; ++c) EXPECT_NEAR(found[c], expected[c], 2e-4) << "column " << c;
}

TEST(AdaptiveSteps, bits_do_not_depend_on_threads_domains_and_nodes) {
  const Data data(500);
  const std::vector<float> expected = train(data, {.threads = 1, .workers = 6}, 3);
  EXPECT_EQ(train(data, {.threads = 2, .workers = 6}, 3), expected);
  EXPECT_EQ(train(data, {.threads = 4, .workers = 6}, 3), expected);
  EXPECT_EQ(train(data, {.threads = 4, .workers = 6, .staleness = 0, .topology = "numa:2 core:2 pu:1"}, 3), expected);
  EXPECT_EQ(train(data, {.threads = 1, .workers = 6, .staleness = 0, .topology = "", .nodes = 3}, 3), expected);
  EXPECT_NE(train(data, {.threads = 1, .workers = 5}, 3), expected) << "workers do change it";
}

TEST(AdaptiveSteps, comes_near_the_minimum_at_every_staleness) {
  const Data data(1000);
  // A minimum to compare with: the serial program with one worker and many passes.
  const std::vector<double> slow = train_serially(data, 1, 60 * 125);
  const double best = objective(data, std::vector<float>(slow.begin(), slow.end()));
  for (const Clock staleness : {0, 1, 4}) {
    EXPECT_LT(objective(data, train(data, {.threads = 4, .workers = 8, .staleness = staleness}, 40)), 1.05 * best);
  }
}

TEST(AdaptiveSteps, more_workers_than_rows_and_empty_rows_do_no_harm) {
  const Data data(9);
  for (const float weight : train(data, {.threads = 2, .workers = 16}, 4)) EXPECT_TRUE(std::isfinite(weight));
}

}  // namespace
}  // namespace orrery
