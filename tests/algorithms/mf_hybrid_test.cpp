// Matrix factorisation by groups that rotate replicas of the items: against a slow serial program, and the promises of
// the schedule seen from the algorithm.
#include "algorithms/mf_hybrid.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "engine/engine.h"
#include "engine/executor.h"
#include "engine/random.h"
#include "tests/algorithms/mf_oracle.h"
#include "tests/engine/toy_programs.h"

namespace orrery::mf {
namespace {

constexpr std::uint32_t kHybridUsers = 90, kHybridItems = 40;
constexpr std::size_t kHybridRank = 3, kHybridStride = padded_rank(kHybridRank);
constexpr SgdRule kHybridRule{.rate = 0.1, .decay = 0.1, .gain = 0.05};

struct GroupsShape {
  WorkerId workers = 6;
  std::uint32_t groups = 2;
  std::size_t clocks = 2;
  Clock staleness = 0;
};

CellGrid hybrid_grid(const GroupsShape& shape, const WorkerMap& map) {
  const Random random(5, Purpose::test);
  RatingStore ratings;
  for (std::uint32_t u = 0; u < kHybridUsers; ++u) {
    for (std::uint32_t i = 0; i < kHybridItems - 2; ++i) {
      RandomStream draws = random.stream(0, std::uint64_t{u} * kHybridItems + i);
      if (draws.uniform() > 1.0 / (1.0 + 0.2 * i)) continue;
      const double value = std::sin(0.3 * u) * std::cos(0.7 * i) + 0.2 * std::sin(i) + 0.1 * draws.normal();
      ratings.push_back({u, i, static_cast<float>(value)});
    }
  }
  const AxisCounts counts = count_ratings(ratings, kHybridUsers, kHybridItems, serial_for);
  const StripeRange here{map.first_worker(map.this_node()) * shape.clocks,
                         map.first_worker(map.this_node() + 1) * shape.clocks};
  return CellGrid::build(std::move(ratings), deal_axis(counts.rows, shape.workers * shape.clocks, kHybridUsers),
                         deal_axis(counts.columns, 2 * shape.workers, kMaxBlockColumns), serial_for, here);
}

void start_rows(const FactorRows& rows, const Axis& axis, std::size_t part, std::uint64_t purpose) {
  for (std::size_t r = 0; r < axis.part_size(part); ++r) {
    const std::uint64_t id = axis.begin[part] + r;
    for (std::size_t d = 0; d < kHybridRank; ++d) {
      rows.factors[r * kHybridStride + d] =
          static_cast<float>(0.3 * std::sin(static_cast<double>(7 * id + d + purpose)));
    }
    rows.sides[r].decay = 0.02F;
    rows.sides[r].bias_decay = 0.01F;
  }
}

/// A training on one of several nodes.
class GroupsTraining {
 public:
  GroupsTraining(const GroupsShape& shape, Engine& engine)
      : shape_(shape),
        engine_(engine),
        map_(shape.workers, engine.transport().nodes(), engine.transport().node(), engine.domains()),
        grid_(hybrid_grid(shape, map_)),
        state_(engine.topology(), map_, grid_.rows(), grid_.columns(), kHybridRank),
        trainee_(engine.topology(), map_, shape.groups, shape.staleness, grid_, state_, nullptr, Scaling{}, kHybridRule,
                 kernels(engine.simd())) {
    for (std::size_t s = grid_.here().first; s < grid_.here().last; ++s)
      start_rows(state_.stripe(s), grid_.rows(), s, 1);
    for (std::size_t b = 0; b < grid_.blocks(); ++b) {
      start_rows(state_.block(static_cast<BlockId>(b)), grid_.columns(), b, 2);
    }
  }
  /// Returns the bytes that this node has sent.
  std::uint64_t run(Clock first, Clock last) {
    HybridSchedule schedule(shape_.workers, shape_.groups, static_cast<BlockId>(grid_.blocks()), 1);
    Executor executor(engine_, schedule, trainee_, shape_.workers,
                      {.start = first, .record_trace = false, .should_stop = {}});
    executor.run(last);
    return executor.stats().bytes_sent;
  }
  const CellGrid& grid() const { return grid_; }
  MfState& state() { return state_; }

 private:
  const GroupsShape shape_;
  Engine& engine_;
  const WorkerMap map_;
  CellGrid grid_;
  MfState state_;
  HybridTrainee trainee_;
};

/// The items after so many clocks, on every node; all must agree.
Bytes items_after(Clock clocks, const GroupsShape& shape, NodeId nodes, unsigned threads,
                  const std::string& topology = {}) {
  std::vector<Bytes> all(nodes);
  toy::on_cluster(nodes, toy::options_with(threads, shape.staleness, topology), [&](NodeId node, Engine& engine) {
    GroupsTraining training(shape, engine);
    training.run(0, clocks);
    all[node] = training.state().save().columns;
  });
  for (const Bytes& items : all) EXPECT_EQ(items, all.front());
  return all.front();
}

TEST(MfHybrid, bits_depend_on_the_groups_and_not_on_threads_domains_and_nodes) {
  for (const Clock staleness : {0, 2}) {
    const GroupsShape shape{.staleness = staleness};
    const Bytes expected = items_after(6, shape, 1, 1);
    EXPECT_EQ(items_after(6, shape, 1, 4, "numa:2 core:2 pu:1"), expected) << "staleness " << staleness;
    for (const NodeId nodes : {2U, 4U, 6U}) EXPECT_EQ(items_after(6, shape, nodes, 2), expected) << nodes << " nodes";
    EXPECT_NE(items_after(6, {.groups = 3, .staleness = staleness}, 1, 2), expected);
  }
}

TEST(MfHybrid, goes_on_from_a_cut_to_the_same_bits_at_staleness_0) {
  Engine engine{EngineOptions{}};
  GroupsTraining training({}, engine);
  training.run(0, 3);
  training.run(3, 6);  // a new executor, as after a resume
  EXPECT_EQ(training.state().save().columns, items_after(6, {}, 1, 1));
}

/// Bytes of the passes of blocks from node to node, as the plan has them; `between_clocks`: also from the last visit of
/// a clock to the first of the next.
std::uint64_t bytes_of_passes(Schedule& schedule, const WorkerMap& map, Clock clocks, bool between_clocks,
                              const MfState& state) {
  std::map<std::pair<std::uint32_t, BlockId>, NodeId> lies_on;
  std::uint64_t bytes = 0;
  for (Clock clock = 0; clock < clocks; ++clock) {
    if (!between_clocks) lies_on.clear();
    ClockPlan plan;
    schedule.plan(clock, plan);
    for (std::size_t i = 0; i < plan.size(); ++i) {
      const WorkUnit unit = plan.unit(i);
      const NodeId node = map.node_of(unit.worker);
      const auto [last, is_first] = lies_on.try_emplace({unit.group, unit.blocks[0]}, node);
      if (!is_first && last->second != node) bytes += state.block_bytes(unit.blocks[0]);
      last->second = node;
    }
  }
  return bytes;
}

TEST(MfHybrid, sends_the_bytes_that_the_plan_says_and_no_more) {
  const Clock clocks = 4;
  for (const NodeId nodes : {2U, 3U, 6U}) {
    const GroupsShape shape{.groups = 3};
    std::vector<std::uint64_t> sent(nodes), expected(nodes);
    toy::on_cluster(nodes, toy::options_with(1), [&](NodeId node, Engine& engine) {
      GroupsTraining training(shape, engine);
      sent[node] = training.run(0, clocks);
      HybridSchedule schedule(shape.workers, shape.groups, static_cast<BlockId>(training.grid().blocks()), 1);
      std::uint64_t gains =
          0;  // of every group, to all other nodes: 16 bytes, then factors, bias and energy of each item
      for (BlockId b = 0; b < training.grid().blocks(); ++b) {
        gains += shape.groups * (nodes - 1) * (16 + training.state().columns_in(b) * (kHybridRank + 2) * sizeof(float));
      }
      expected[node] =
          clocks * gains + bytes_of_passes(schedule, {shape.workers, nodes, node, 1}, clocks, false, training.state());
    });
    EXPECT_EQ(std::accumulate(sent.begin(), sent.end(), std::uint64_t{0}), expected[0]) << nodes << " nodes";
  }
}

TEST(MfRotation, sends_the_bytes_that_the_plan_says_and_no_more) {
  const Clock clocks = 4;
  for (const NodeId nodes : {2U, 3U, 6U}) {
    const GroupsShape shape{.clocks = 1};
    std::vector<std::uint64_t> sent(nodes), expected(nodes);
    EngineOptions options = toy::options_with(1);
    options.reassign = Reassign::off;
    toy::on_cluster(nodes, options, [&](NodeId node, Engine& engine) {
      const WorkerMap map(shape.workers, nodes, node, engine.domains());
      const CellGrid grid = hybrid_grid(shape, map);
      MfState state(engine.topology(), map, grid.rows(), grid.columns(), kHybridRank);
      SgdTrainee trainee(grid, state, nullptr, Scaling{}, kHybridRule, kernels(engine.simd()));
      RotationSchedule schedule(shape.workers, static_cast<BlockId>(grid.blocks()), 1);
      Executor executor(engine, schedule, trainee, shape.workers, {});
      executor.run(clocks);
      sent[node] = executor.stats().bytes_sent;
      RotationSchedule again(shape.workers, static_cast<BlockId>(grid.blocks()), 1);
      expected[node] = bytes_of_passes(again, map, clocks, true, state);
    });
    EXPECT_EQ(std::accumulate(sent.begin(), sent.end(), std::uint64_t{0}), expected[0]) << nodes << " nodes";
  }
}

using oracle::Rows;

/// Replicas and gains in double, clock after clock and unit after unit.
class SlowGroups {
 public:
  SlowGroups(const GroupsShape& shape, GroupsTraining& fast) : shape_(shape), grid_(fast.grid()) {
    for (std::size_t s = 0; s < grid_.stripes(); ++s)
      users_.push_back(taken(fast.state().stripe(s), fast.state().rows_in(s)));
    for (BlockId b = 0; b < grid_.blocks(); ++b)
      model_.push_back(taken(fast.state().block(b), fast.state().columns_in(b)));
    replicas_.assign(shape.groups, model_);
  }
  void run(Clock clocks) {
    HybridSchedule schedule(shape_.workers, shape_.groups, static_cast<BlockId>(grid_.blocks()), 1);
    for (Clock clock = 0; clock < clocks; ++clock) {
      if (clock > shape_.staleness) take_in(clock - shape_.staleness - 1);
      const std::vector<std::vector<Rows>> bases = replicas_;
      ClockPlan plan;
      schedule.plan(clock, plan);
      for (std::size_t i = 0; i < plan.size(); ++i) train(plan.unit(i));
      publish(clock, bases);
    }
  }
  const std::vector<Rows>& model() const { return model_; }

 private:
  static Rows taken(const FactorRows& from, std::size_t count) {
    Rows rows;
    rows.rank = kHybridRank;
    for (std::size_t r = 0; r < count; ++r) {
      rows.factors.emplace_back(from.factors + r * kHybridStride, from.factors + r * kHybridStride + kHybridRank);
      rows.bias.push_back(from.sides[r].bias);
      rows.energy.push_back(from.sides[r].energy);
      rows.decay.push_back(from.sides[r].decay);
      rows.bias_decay.push_back(from.sides[r].bias_decay);
    }
    return rows;
  }
  static void add(Rows& to, const Rows& gain) {
    for (std::size_t r = 0; r < to.bias.size(); ++r) {
      for (std::size_t d = 0; d < to.rank; ++d) to.factors[r][d] += gain.factors[r][d];
      to.bias[r] += gain.bias[r];
      to.energy[r] += gain.energy[r];
    }
  }
  void take_in(Clock clock) {
    const auto& gains = gains_[static_cast<std::size_t>(clock)];
    for (std::size_t g = 0; g < replicas_.size(); ++g) {
      for (std::size_t b = 0; b < model_.size(); ++b) {
        for (std::size_t other = 0; other < gains.size(); ++other) {
          if (other != g) add(replicas_[g][b], gains[other][b]);
        }
      }
    }
  }
  void train(const WorkUnit& unit) {
    const std::size_t stripe = unit.worker * shape_.clocks + static_cast<std::size_t>(unit.clock) % shape_.clocks;
    const StepRule step = kHybridRule.at(unit.clock / static_cast<Clock>(shape_.clocks));
    for (const oracle::Batch& batch : oracle::batches_of(grid_.cell(stripe, unit.blocks[0]))) {
      oracle::train_batch(batch, users_[stripe], replicas_[unit.group][unit.blocks[0]], step.rate, step.gain);
    }
  }
  void publish(Clock clock, const std::vector<std::vector<Rows>>& bases) {
    const double rate = kHybridRule.at(clock / static_cast<Clock>(shape_.clocks)).rate;
    auto& gains = gains_.emplace_back(bases);
    for (std::size_t g = 0; g < replicas_.size(); ++g) {
      for (std::size_t b = 0; b < model_.size(); ++b) {
        Rows& gain = gains[g][b];
        const Rows &base = bases[g][b], &now = replicas_[g][b];
        for (std::size_t r = 0; r < gain.bias.size(); ++r) {
          const double steps = rate / std::sqrt(1 + base.energy[r]) *
                               grid_.columns().counts[grid_.columns().begin[b] + r] /
                               static_cast<double>(shape_.clocks);
          const double share = (1 + steps / shape_.groups) / (1 + steps);
          for (std::size_t d = 0; d < gain.rank; ++d)
            gain.factors[r][d] = share * (now.factors[r][d] - base.factors[r][d]);
          gain.bias[r] = share * (now.bias[r] - base.bias[r]);
          gain.energy[r] = now.energy[r] - base.energy[r];
        }
        add(model_[b], gain);
        replicas_[g][b] = base;
        add(replicas_[g][b], gain);
      }
    }
  }

  const GroupsShape shape_;
  const CellGrid& grid_;
  std::vector<Rows> users_, model_;
  std::vector<std::vector<Rows>> replicas_;            ///< by group, then block
  std::vector<std::vector<std::vector<Rows>>> gains_;  ///< by clock, group, block
};

TEST(MfHybrid, follows_a_serial_program_in_double) {
  for (const GroupsShape& shape : {GroupsShape{}, GroupsShape{.groups = 3, .clocks = 1, .staleness = 1},
                                   GroupsShape{.groups = 6, .clocks = 3, .staleness = 2}}) {
    Engine engine(toy::options_with(2, shape.staleness));
    GroupsTraining fast(shape, engine);
    SlowGroups slow(shape, fast);
    fast.run(0, 6);
    slow.run(6);
    for (BlockId b = 0; b < fast.grid().blocks(); ++b) {
      const FactorRows items = fast.state().block(b);
      for (std::size_t r = 0; r < fast.state().columns_in(b); ++r) {
        EXPECT_NEAR(items.sides[r].bias, slow.model()[b].bias[r], 2e-5);
        EXPECT_NEAR(items.sides[r].energy, slow.model()[b].energy[r], 2e-4);
        for (std::size_t d = 0; d < kHybridRank; ++d) {
          EXPECT_NEAR(items.factors[r * kHybridStride + d], slow.model()[b].factors[r][d], 2e-5);
        }
      }
    }
  }
}

}  // namespace
}  // namespace orrery::mf
