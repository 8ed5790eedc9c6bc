// Matrix factorisation on a table: against a slow serial program, and the promises of tables seen from the algorithm.
#include "algorithms/mf_data_parallel.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/engine.h"
#include "engine/executor.h"
#include "engine/random.h"
#include "tests/algorithms/mf_oracle.h"

namespace orrery::mf {
namespace {

constexpr std::uint32_t kUsers = 90, kItems = 40;
constexpr std::size_t kRank = 3, kStride = padded_rank(kRank);
constexpr SgdRule kRule{.rate = 0.1, .decay = 0.1, .gain = 0.05};

/// Ratings of a low-rank model, the first items by far the most; some items without any.
RatingStore made_ratings(std::uint32_t users) {
  const Random random(5, Purpose::test);
  RatingStore store;
  for (std::uint32_t u = 0; u < users; ++u) {
    for (std::uint32_t i = 0; i < kItems - 2; ++i) {
      RandomStream draws = random.stream(0, std::uint64_t{u} * kItems + i);
      if (draws.uniform() > 1.0 / (1.0 + 0.2 * i)) continue;
      const double value = std::sin(0.3 * u) * std::cos(0.7 * i) + 0.2 * std::sin(i) + 0.1 * draws.normal();
      store.push_back({u, i, static_cast<float>(value)});
    }
  }
  return store;
}

struct Shape {
  unsigned threads = 1;
  WorkerId workers = 3;
  std::size_t clocks = 4;
  Clock staleness = 0;
  const char* topology = "";
  std::uint32_t users = kUsers;
};

EngineOptions options_of(const Shape& shape) {
  EngineOptions options;
  options.threads = shape.threads;
  options.topology = shape.topology;
  options.staleness = shape.staleness;
  options.consistency = shape.staleness > 0 ? Consistency::ssp : Consistency::bsp;
  return options;
}

CellGrid grid_of(const Shape& shape) {
  RatingStore ratings = made_ratings(shape.users);
  const AxisCounts counts = count_ratings(ratings, shape.users, kItems, serial_for);
  return CellGrid::build(std::move(ratings), deal_axis(counts.rows, shape.workers * shape.clocks, shape.users),
                         deal_axis(counts.columns, 2, kMaxBlockColumns), serial_for);
}

/// A training from the first clock, or from a state that another one saved.
class ToyTraining {
 public:
  explicit ToyTraining(const Shape& shape)
      : shape_(shape),
        engine_(options_of(shape)),
        map_(shape.workers, 1, 0, engine_.domains()),
        grid_(grid_of(shape)),
        state_(engine_.topology(), map_, grid_.rows(), grid_.columns(), kRank) {
    for (std::size_t s = 0; s < grid_.stripes(); ++s) start(state_.stripe(s), grid_.rows(), s, 1);
    for (std::size_t b = 0; b < grid_.blocks(); ++b) {
      start(state_.block(static_cast<BlockId>(b)), grid_.columns(), b, 2);
    }
    trainee_ = std::make_unique<DataParallelTrainee>(engine_, map_, grid_, state_, nullptr, scaling_, kRule,
                                                     kernels(engine_.simd()));
  }

  void run(Clock first, Clock last) {
    DataParallelSchedule schedule(std::vector<std::uint32_t>(shape_.workers, 1));
    Executor executor(engine_, schedule, *trainee_, shape_.workers,
                      {.start = first, .record_trace = false, .should_stop = {}});
    executor.run(last);
  }
  Bytes bytes() const { return trainee_->save_state().at(0).bytes; }
  double train_rmse() {
    for (const auto& [name, value] : trainee_->evaluate(engine_, true).extra) {
      if (name == "train_rmse") return value;
    }
    return std::nan("");
  }
  DataParallelTrainee& trainee() { return *trainee_; }
  const CellGrid& grid() const { return grid_; }
  const MfState& state() const { return state_; }

 private:
  static void start(const FactorRows& rows, const Axis& axis, std::size_t part, std::uint64_t purpose) {
    for (std::size_t r = 0; r < axis.part_size(part); ++r) {
      const std::uint64_t id = axis.begin[part] + r;
      for (std::size_t d = 0; d < kRank; ++d) {
        rows.factors[r * kStride + d] = static_cast<float>(0.3 * std::sin(static_cast<double>(7 * id + d + purpose)));
      }
      rows.sides[r].decay = 0.02F;
      rows.sides[r].bias_decay = 0.01F;
    }
  }

  Shape shape_;
  Engine engine_;
  WorkerMap map_;
  CellGrid grid_;
  MfState state_;
  Scaling scaling_;
  std::unique_ptr<DataParallelTrainee> trainee_;
};

oracle::Rows rows_of(const FactorRows& part, std::size_t count) {
  oracle::Rows rows;
  rows.rank = kRank;
  for (std::size_t r = 0; r < count; ++r) {
    const float* factors = part.factors + r * kStride;
    rows.factors.emplace_back(factors, factors + kRank);
    rows.bias.push_back(part.sides[r].bias);
    rows.energy.push_back(part.sides[r].energy);
    rows.decay.push_back(part.sides[r].decay);
    rows.bias_decay.push_back(part.sides[r].bias_decay);
  }
  return rows;
}

/// The whole model in doubles, trained by one loop: in a clock every worker starts from the same items, and the sum of
/// what they have gained, weighed, is added at its end.
struct Oracle {
  explicit Oracle(const ToyTraining& run, const Shape& s) : grid(run.grid()), shape(s) {
    for (std::size_t stripe = 0; stripe < grid.stripes(); ++stripe) {
      users.push_back(rows_of(run.state().stripe(stripe), grid.rows().part_size(stripe)));
    }
    for (std::size_t block = 0; block < grid.blocks(); ++block) {
      items.push_back(rows_of(run.state().block(static_cast<BlockId>(block)), grid.columns().part_size(block)));
    }
  }
  void run_clock(Clock clock) {
    const std::vector<oracle::Rows> before = items;
    for (WorkerId worker = 0; worker < shape.workers; ++worker) {
      const std::size_t stripe = worker * shape.clocks + static_cast<std::size_t>(clock) % shape.clocks;
      for (std::size_t b = 0; b < items.size(); ++b) {
        oracle::Rows mine = before[b];
        std::vector<double> own(mine.bias.size(), 0);
        const double rate =
            kRule.rate *
            std::pow(1 - kRule.decay, std::floor(static_cast<double>(clock) / static_cast<double>(shape.clocks)));
        for (const oracle::Batch& batch : oracle::batches_of(grid.cell(stripe, b))) {
          oracle::train_batch(batch, users[stripe], mine, rate, kRule.gain);
          for (const std::uint32_t column : batch.columns) ++own[column];
        }
        for (std::size_t c = 0; c < own.size(); ++c) add(before[b], mine, own[c], rate, b, c);
      }
    }
  }
  void add(const oracle::Rows& before, const oracle::Rows& after, double own, double rate, std::size_t b,
           std::size_t c) {
    const double total = grid.columns().counts[grid.columns().begin[b] + c];
    const double all = std::max(own, total / static_cast<double>(shape.clocks));
    const double step = rate / std::sqrt(1 + before.energy[c]);
    const double share = (1 + step * own) / (1 + step * all);
    for (std::size_t d = 0; d < kRank; ++d) {
      items[b].factors[c][d] += share * (after.factors[c][d] - before.factors[c][d]);
    }
    items[b].bias[c] += share * (after.bias[c] - before.bias[c]);
    items[b].energy[c] += after.energy[c] - before.energy[c];
  }

  const CellGrid& grid;
  const Shape shape;
  std::vector<oracle::Rows> users, items;
};

void expect_near(const oracle::Rows& found, const oracle::Rows& expected) {
  for (std::size_t r = 0; r < expected.bias.size(); ++r) {
    for (std::size_t d = 0; d < kRank; ++d) EXPECT_NEAR(found.factors[r][d], expected.factors[r][d], 1e-5);
    EXPECT_NEAR(found.bias[r], expected.bias[r], 1e-5);
    EXPECT_NEAR(found.energy[r], expected.energy[r], 1e-5);
  }
}

TEST(MfDataParallel, follows_a_serial_program_in_doubles) {
  const Shape shape{.threads = 2};
  ToyTraining run(shape);
  Oracle slow(run, shape);
  const Clock clocks = 3 * run.trainee().clocks_per_iteration();
  run.run(0, clocks);
  static_cast<void>(run.bytes());  // brings the items of the table into the state
  for (Clock clock = 0; clock < clocks; ++clock) slow.run_clock(clock);
  const CellGrid& grid = run.grid();
  for (std::size_t s = 0; s < grid.stripes(); ++s) {
    expect_near(rows_of(run.state().stripe(s), grid.rows().part_size(s)), slow.users[s]);
  }
  for (std::size_t b = 0; b < grid.blocks(); ++b) {
    expect_near(rows_of(run.state().block(static_cast<BlockId>(b)), grid.columns().part_size(b)), slow.items[b]);
  }
}

Bytes trained(const Shape& shape, Clock clocks = 12) {
  ToyTraining run(shape);
  run.run(0, clocks);
  return run.bytes();
}

TEST(MfDataParallel, bits_do_not_depend_on_threads_and_domains) {
  const Bytes expected = trained({.threads = 1, .workers = 6});
  EXPECT_EQ(trained({.threads = 2, .workers = 6}), expected);
  EXPECT_EQ(trained({.threads = 4, .workers = 6}), expected);
  EXPECT_EQ(trained({.threads = 4, .workers = 6, .clocks = 4, .staleness = 0, .topology = "numa:2 core:2 pu:1"}),
            expected);
  EXPECT_NE(trained({.threads = 1, .workers = 12, .clocks = 2}), expected) << "workers do change it";
}

TEST(MfDataParallel, goes_on_from_a_saved_state_to_the_same_bits) {
  ToyTraining first({.threads = 2}), second({.threads = 1});
  first.run(0, 6);
  second.trainee().load_state(first.trainee().save_state());
  second.run(6, 12);
  EXPECT_EQ(second.bytes(), trained({.threads = 1}));
}

TEST(MfDataParallel, the_best_state_comes_back) {
  ToyTraining run({.threads = 1});
  run.run(0, 4);
  run.trainee().keep_best();
  const Bytes best = run.bytes();
  run.run(4, 8);
  EXPECT_NE(run.bytes(), best);
  run.trainee().restore_best();
  EXPECT_EQ(run.bytes(), best);
}

TEST(MfDataParallel, learns_as_much_at_every_staleness_and_number_of_workers) {
  const auto error = [](const Shape& shape) {
    ToyTraining run(shape);
    run.run(0, 60 * run.trainee().clocks_per_iteration());
    return run.train_rmse();
  };
  const double serial = error({.threads = 1, .workers = 1, .clocks = 1});
  EXPECT_LT(serial, 0.4) << "the ratings spread by 0.5";
  for (const WorkerId workers : {3U, 12U}) {
    for (const Clock staleness : {0, 1, 4}) {
      EXPECT_LT(error({.threads = 4, .workers = workers, .clocks = 4, .staleness = staleness}), 1.1 * serial)
          << workers << " workers, staleness " << staleness;
    }
  }
}

TEST(MfDataParallel, workers_without_users_do_no_harm) {
  ToyTraining run({.threads = 2, .workers = 8, .clocks = 4, .staleness = 0, .topology = "", .users = 5});
  run.run(0, 8);
  EXPECT_TRUE(std::isfinite(run.train_rmse()));
}

}  // namespace
}  // namespace orrery::mf
