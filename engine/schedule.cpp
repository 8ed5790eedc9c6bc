#include "engine/schedule.h"

#include <numeric>

#include "engine/assert.h"
#include "engine/random.h"

namespace orrery {
namespace {

// Puts the workers [first, last) on the ring: either half of them before the other one as a coin falls, and so on
// within the halves.
void add_to_ring(WorkerId first, WorkerId last, RandomStream& coins, std::vector<WorkerId>& ring) {
  if (last - first == 1) return ring.push_back(first);
  const WorkerId middle = first + (last - first) / 2;
  const bool swapped = (coins.next() & 1U) != 0;
  if (swapped) add_to_ring(middle, last, coins, ring);
  add_to_ring(first, middle, coins, ring);
  if (!swapped) add_to_ring(middle, last, coins, ring);
}

// One clock of rotation of `blocks` among `workers` consecutive workers from `first`: at step t the worker at place r
// of the ring has block order[(m·r + t) mod B]. With B = m·W the blocks of a step differ, every worker meets every
// block once, and a block goes from place r to place r-1 after m steps. Within a step the plan goes up the ring: of the
// workers of a node the first is then the one whose block leaves the node and the last the one that gets it from
// another, and all between run while it is on its way.
void plan_rotation(Clock clock, WorkerId first, WorkerId workers, std::uint32_t group, BlockId blocks,
                   std::uint64_t seed, ClockPlan& out) {
  const Random random(seed, Purpose::block_order);
  const auto order = random.permutation(blocks, clock, 2 * group);
  RandomStream coins = random.stream(clock, 2 * group + 1);
  std::vector<WorkerId> ring;
  add_to_ring(first, first + workers, coins, ring);
  const BlockId m = blocks / workers;
  for (std::uint32_t step = 0; step < blocks; ++step) {
    for (WorkerId place = 0; place < workers; ++place) {
      const BlockId block = order[(std::uint64_t{m} * place + step) % blocks];
      out.add(clock, ring[place], step, group, {&block, 1}, {});
    }
  }
}

}  // namespace

DataParallelSchedule::DataParallelSchedule(std::vector<std::uint32_t> slices) : slices_(std::move(slices)) {
  for (const auto slices_of_worker : slices_) ORRERY_CHECK(slices_of_worker >= 1);
}

void DataParallelSchedule::plan(Clock clock, ClockPlan& out) {
  for (WorkerId w = 0; w < slices_.size(); ++w) {
    for (std::uint32_t slice = 0; slice < slices_[w]; ++slice) out.add(clock, w, slice, 0, {}, {});
  }
}

RotationSchedule::RotationSchedule(WorkerId workers, BlockId blocks, std::uint64_t seed)
    : workers_(workers), blocks_(blocks), seed_(seed) {
  ORRERY_CHECK(workers >= 1 && blocks >= workers && blocks % workers == 0);
}

void RotationSchedule::plan(Clock clock, ClockPlan& out) { plan_rotation(clock, 0, workers_, 0, blocks_, seed_, out); }

HybridSchedule::HybridSchedule(WorkerId workers, std::uint32_t groups, BlockId blocks, std::uint64_t seed)
    : workers_(workers), groups_(groups), blocks_(blocks), seed_(seed) {
  ORRERY_CHECK(groups >= 1 && workers >= groups && workers % groups == 0 && blocks % (workers / groups) == 0);
}

void HybridSchedule::plan(Clock clock, ClockPlan& out) {
  const WorkerId size = workers_ / groups_;
  for (std::uint32_t g = 0; g < groups_; ++g) plan_rotation(clock, g * size, size, g, blocks_, seed_, out);
}

ScheduledSchedule::ScheduledSchedule(WorkerId workers, Pick pick) : pick_(std::move(pick)), bins_(workers) {
  ORRERY_CHECK(workers >= 1);
}

void ScheduledSchedule::plan(Clock clock, ClockPlan& out) {
  for (auto& bin : bins_) bin.clear();
  pick_(clock, bins_);
  for (WorkerId w = 0; w < bins_.size(); ++w) out.add(clock, w, 0, 0, {}, bins_[w]);
}

}  // namespace orrery
