// Programs small enough to be checked by a serial loop, one for each kind of schedule, and a cluster of engines in one
// process to run them on.
#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "engine/executor.h"
#include "engine/group_exchange.h"
#include "engine/program.h"
#include "engine/schedule.h"
#include "engine/transport.h"

namespace orrery::toy {

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
std::vector<T> values_of(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return (a ^ (b + 0x9e3779b97f4a7c15U)) * 0xbf58476d1ce4e5b9U;
}

/// Rotation: a visit changes the block by the worker's state and the worker's state by the block, and does not commute.
class Weaving final : public Program {
 public:
  Weaving(WorkerId workers, BlockId blocks) : worker_state(workers), block_state(blocks) {
    for (WorkerId w = 0; w < workers; ++w) worker_state[w] = mix(1, w);
    for (BlockId b = 0; b < blocks; ++b) block_state[b] = mix(2, b);
  }
  void run_unit(const WorkUnit& unit, UnitContext&) override {
    if (before_unit) before_unit(unit);
    for (const BlockId b : unit.blocks) {
      auto& block = block_state[b];
      auto& worker = worker_state[unit.worker];
      block = mix(block, worker) + static_cast<std::uint64_t>(unit.clock);
      worker = mix(worker, block);
    }
    ++units;
  }
  Bytes pack_block(BlockId block, std::uint32_t) override {
    return bytes_of(std::vector<std::uint64_t>{block_state[block]});
  }
  void unpack_block(BlockId block, std::uint32_t, std::span<const std::byte> bytes) override {
    block_state[block] = values_of<std::uint64_t>(bytes).at(0);
  }

  std::vector<std::uint64_t> worker_state, block_state;
  std::function<void(const WorkUnit&)> before_unit;
  std::atomic<int> units{0};
};

/// What Weaving must give: the plan run in serial order.
struct Woven {
  std::vector<std::uint64_t> worker_state, block_state;
};
inline Woven weave_serially(Schedule& schedule, WorkerId workers, Clock clocks) {
  Weaving program(workers, schedule.blocks());
  UnitContext context;
  for (Clock c = 0; c < clocks; ++c) {
    ClockPlan plan;
    schedule.plan(c, plan);
    for (std::size_t i = 0; i < plan.size(); ++i) program.run_unit(plan.unit(i), context);
  }
  return {program.worker_state, program.block_state};
}

/// Data parallel: every worker adds a function of the committed sum, in slices. What is committed is double-buffered,
/// so that units of later clocks may read while a clock is committed.
class Summing final : public Program {
 public:
  Summing(const WorkerMap& map, Clock clocks, std::uint32_t slices)
      : map_(map), slices_(slices), updates_(static_cast<std::size_t>(clocks) * map.workers() * slices), sums(1, 1) {
    sums.reserve(static_cast<std::size_t>(clocks) + 1);
  }
  void run_unit(const WorkUnit& unit, UnitContext&) override {
    // acquire: pairs with the release in commit().
    const Clock seen = committed_.load(std::memory_order_acquire);
    update(unit.clock, unit.worker, unit.step) = mix(sums[static_cast<std::size_t>(seen)], mix(unit.worker, unit.step));
    const std::lock_guard lock(mutex_);
    largest_lag = std::max(largest_lag, unit.clock - seen);
    furthest_ahead = std::max(furthest_ahead, seen - unit.clock);
  }
  Bytes pack_partial(Clock clock) override {
    std::vector<std::uint64_t> sum(1, 0);
    for (WorkerId w = map_.first_worker(map_.this_node()); w < map_.first_worker(map_.this_node() + 1); ++w) {
      for (std::uint32_t s = 0; s < slices_; ++s) sum[0] += update(clock, w, s);
    }
    return bytes_of(sum);
  }
  void commit(Clock clock, std::span<const Bytes> partials) override {
    std::uint64_t sum = sums.back();
    for (const Bytes& partial : partials) sum += values_of<std::uint64_t>(partial).at(0);
    sums.push_back(sum);
    committed_.store(clock + 1, std::memory_order_release);  // release: pairs with the acquire in run_unit()
  }

 private:
  std::uint64_t& update(Clock clock, WorkerId worker, std::uint32_t slice) {
    return updates_[(static_cast<std::size_t>(clock) * map_.workers() + worker) * slices_ + slice];
  }
  const WorkerMap map_;
  const std::uint32_t slices_;
  std::vector<std::uint64_t> updates_;
  std::atomic<Clock> committed_{0};
  std::mutex mutex_;

 public:
  std::vector<std::uint64_t> sums;  ///< sums[c]: after the clocks below c
  Clock largest_lag = 0, furthest_ahead = 0;
};

/// Scheduled: coordinates are picked from what is committed, pushed by bins, pulled in unit order.
class Picking final : public Program {
 public:
  Picking(const WorkerMap& map, std::size_t coordinates) : x(coordinates, 1), map_(map) {}
  void pick(Clock round, std::span<std::vector<std::uint32_t>> bins) const {
    for (std::size_t w = 0; w < bins.size(); ++w) {
      const std::uint64_t state = x[w % x.size()];
      for (std::uint64_t i = 0; i < 3; ++i) {
        const auto coordinate = mix(mix(state, i), static_cast<std::uint64_t>(round)) % (x.size() / bins.size());
        bins[w].push_back(static_cast<std::uint32_t>(coordinate * bins.size() + w));
      }
    }
  }
  void run_unit(const WorkUnit& unit, UnitContext&) override {
    std::vector<std::uint64_t> pushed;
    for (const std::uint32_t j : unit.items) {
      pushed.push_back(j);
      pushed.push_back(mix(x[j], x[(j + 1) % x.size()]));
    }
    const std::lock_guard lock(mutex_);
    partial_[{unit.clock, unit.index}] = pushed;
  }
  Bytes pack_partial(Clock clock) override {
    const std::lock_guard lock(mutex_);
    std::vector<std::uint64_t> all;
    for (const auto& [key, pushed] : partial_) {
      if (key.first == clock) all.insert(all.end(), pushed.begin(), pushed.end());
    }
    std::erase_if(partial_, [&](const auto& entry) { return entry.first.first == clock; });
    return bytes_of(all);
  }
  void commit(Clock, std::span<const Bytes> partials) override {
    for (const Bytes& partial : partials) {
      const auto moves = values_of<std::uint64_t>(partial);
      for (std::size_t i = 0; i < moves.size(); i += 2) x[moves[i]] = mix(x[moves[i]], moves[i + 1]);
    }
  }

  std::vector<std::uint64_t> x;

 private:
  const WorkerMap map_;
  std::mutex mutex_;
  std::map<std::pair<Clock, std::uint32_t>, std::vector<std::uint64_t>> partial_;
};

/// Hybrid: every visit adds to the replica of its group, and every group sees what it should at the first visit of a
/// clock: all of its own updates, and those of the others through clock - staleness - 1. Integers: nothing may be lost
/// or counted twice.
class Adding final : public Program, private ReplicatedBlocks {
 public:
  Adding(const WorkerMap& map, std::uint32_t groups, BlockId blocks, Clock staleness)
      : map_(map),
        staleness_(staleness),
        model_(blocks, 0),
        replicas_(groups, std::vector<std::int64_t>(blocks, 0)),
        bases_(replicas_),
        exchange_(map, groups, blocks, staleness, *this) {}
  static std::int64_t update(WorkerId worker, Clock clock) {
    return static_cast<std::int64_t>(mix(worker, static_cast<std::uint64_t>(clock)) % 1000);
  }
  /// What all workers, or those of a group, have added to each block before `clock`.
  std::int64_t added(Clock clock, std::uint32_t group) const {
    std::int64_t sum = 0;
    for (WorkerId w = 0; w < map_.workers(); ++w) {
      for (Clock c = 0; c < clock && exchange_.group_of(w) == group; ++c) sum += update(w, c);
    }
    return sum;
  }
  std::int64_t added(Clock clock) const {
    std::int64_t sum = 0;
    for (std::uint32_t g = 0; g < replicas_.size(); ++g) sum += added(clock, g);
    return sum;
  }
  std::int64_t model(BlockId block) const { return model_[block]; }
  int wrong_views() const { return wrong_views_.load(); }

  void connect(Outbox&, Clock start) override { exchange_.connect(start); }
  void block_begins(BlockId block, Clock clock, UnitContext& context) override {
    exchange_.block_begins(block, clock, context.worker, context.domain);
    const std::uint32_t own = exchange_.group_of(context.worker);
    std::int64_t expected = added(clock, own);
    for (std::uint32_t g = 0; g < replicas_.size(); ++g) expected += g == own ? 0 : added(clock - staleness_, g);
    if (replicas_[own][block] != expected) ++wrong_views_;
  }
  void block_ends(BlockId block, Clock clock, UnitContext& context) override {
    exchange_.block_ends(block, clock, context.worker);
  }
  void run_unit(const WorkUnit& unit, UnitContext&) override {
    for (const BlockId b : unit.blocks) replicas_[unit.group][b] += update(unit.worker, unit.clock);
  }
  Bytes pack_block(BlockId block, std::uint32_t group) override { return exchange_.pack_block(block, group); }
  void unpack_block(BlockId block, std::uint32_t group, std::span<const std::byte> bytes) override {
    exchange_.unpack_block(block, group, bytes);
  }
  Bytes pack_partial(Clock clock) override { return exchange_.pack_partial(clock); }
  void commit(Clock clock, std::span<const Bytes> partials) override {
    exchange_.commit(clock, std::vector<std::span<const std::byte>>(partials.begin(), partials.end()));
  }

 private:
  void copy_to_replica(std::uint32_t group, BlockId block, DomainId) override {
    replicas_[group][block] = model_[block];
  }
  void keep_base(std::uint32_t group, BlockId block) override { bases_[group][block] = replicas_[group][block]; }
  Bytes gain(std::uint32_t group, BlockId block, Clock) override {
    const std::int64_t base = staleness_ > 0 ? bases_[group][block] : model_[block];
    return bytes_of(std::vector<std::int64_t>{replicas_[group][block] - base});
  }
  void add_to_replica(std::uint32_t group, BlockId block, std::span<const std::byte> gain) override {
    replicas_[group][block] += values_of<std::int64_t>(gain).at(0);
  }
  void add_to_model(BlockId block, std::span<const std::byte> gain) override {
    model_[block] += values_of<std::int64_t>(gain).at(0);
  }
  Bytes pack_replica(std::uint32_t group, BlockId block, Part part) override {
    return bytes_of(std::vector<std::int64_t>{(part == Part::base ? bases_ : replicas_)[group][block]});
  }
  void unpack_replica(std::uint32_t group, BlockId block, Part part, std::span<const std::byte> bytes) override {
    (part == Part::base ? bases_ : replicas_)[group][block] = values_of<std::int64_t>(bytes).at(0);
  }

  const WorkerMap map_;
  const Clock staleness_;
  std::vector<std::int64_t> model_;
  std::vector<std::vector<std::int64_t>> replicas_, bases_;
  std::atomic<int> wrong_views_{0};
  GroupExchange exchange_;
};

inline EngineOptions options_with(unsigned threads, Clock staleness = 0, std::string topology = {}) {
  EngineOptions options;
  options.threads = threads;
  options.staleness = staleness;
  options.consistency = staleness > 0 ? Consistency::ssp : Consistency::bsp;
  options.topology = std::move(topology);
  return options;
}

/// Runs body(node, engine) on one thread for each node, each with an engine of its own joined by a LocalCluster.
inline void on_cluster(NodeId nodes, const EngineOptions& options, const std::function<void(NodeId, Engine&)>& body) {
  LocalCluster cluster(nodes);
  std::vector<std::exception_ptr> errors(nodes);
  {
    std::vector<std::jthread> threads;
    for (NodeId n = 0; n < nodes; ++n) {
      threads.emplace_back([&, n] {
        try {
          Engine engine(options, &cluster.node(n));
          body(n, engine);
        } catch (...) {
          errors[n] = std::current_exception();
        }
      });
    }
  }
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace orrery::toy
