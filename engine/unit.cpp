#include "engine/unit.h"

namespace orrery {

void ClockPlan::add(Clock clock, WorkerId worker, std::uint32_t step, std::uint32_t group,
                    std::span<const BlockId> blocks, std::span<const std::uint32_t> items) {
  entries_.push_back({clock, worker, step, group, blocks_.size(), blocks.size(), items_.size(), items.size()});
  blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
  items_.insert(items_.end(), items.begin(), items.end());
}

void ClockPlan::clear() {
  entries_.clear();
  blocks_.clear();
  items_.clear();
}

WorkUnit ClockPlan::unit(std::size_t index) const {
  const Entry& e = entries_[index];
  return {static_cast<std::uint32_t>(index),
          e.worker,
          e.clock,
          e.step,
          e.group,
          {blocks_.data() + e.first_block, e.blocks},
          {items_.data() + e.first_item, e.items}};
}

}  // namespace orrery
