#include "engine/lending_policy.h"

#include <algorithm>

namespace orrery {
namespace {

constexpr NodeId kGroup = 4;
/// One is on its way while the one before is worked on.
constexpr unsigned kMostUnderWay = 2;
/// How much quicker a node must be to help one that is in the same clock, and how much sooner a unit must come back
/// than it would be done here: less is noise.
constexpr double kQuicker = 1.4, kSooner = 1.2;
/// There and back, before it was measured: units that are shorter than messages stay where they are.
constexpr double kTrip = 1e-3;

/// The weight of what is new in a mean of the last ones.
double mixed(double before, double now) {
  constexpr double kNew = 0.1;
  return before == 0 ? now : (1 - kNew) * before + kNew * now;
}

}  // namespace

LendingPolicy::LendingPolicy(NodeId here, NodeId nodes, unsigned threads, Reassign mode)
    : mode_(mode),
      threads_(threads),
      first_(here / kGroup * kGroup),
      last_(std::min(nodes, first_ + kGroup)),
      helpers_(last_ - first_) {}

void LendingPolicy::unit_ran(double seconds) {
  const std::lock_guard lock(mutex_);
  unit_seconds_ = mixed(unit_seconds_, seconds);
}

double LendingPolicy::unit_seconds() const {
  const std::lock_guard lock(mutex_);
  return unit_seconds_;
}

void LendingPolicy::offered(NodeId helper, Clock clock, double unit_seconds) {
  const std::lock_guard lock(mutex_);
  // What was slow once may not be now: after some tens of clocks it is tried again.
  constexpr double kForget = 0.97;
  Helper& of = helpers_[helper - first_];
  if (clock > of.clock) of.round_trip *= kForget;
  of.offered = true;
  of.clock = std::max(of.clock, clock);
  of.unit_seconds = unit_seconds;
}

bool LendingPolicy::pays(const Helper& helper, Clock clock, std::size_t waiting) const {
  if (!helper.offered || helper.under_way >= (helper.round_trip == 0 ? 1 : kMostUnderWay)) return false;
  if (mode_ == Reassign::always) return true;
  if (unit_seconds_ == 0) return false;
  if (helper.clock <= clock && unit_seconds_ < kQuicker * helper.unit_seconds) return false;
  const double mine = unit_seconds_ * static_cast<double>(waiting + threads_) / threads_;  // one runs on each
  const double theirs = helper.round_trip == 0 ? helper.unit_seconds + kTrip : helper.round_trip;
  return mine > kSooner * (theirs + helper.under_way * helper.unit_seconds);
}

std::optional<NodeId> LendingPolicy::lend(Clock clock, std::size_t waiting) {
  if (waiting == 0) return std::nullopt;
  const std::lock_guard lock(mutex_);
  Helper* best = nullptr;
  for (Helper& helper : helpers_) {
    if (!pays(helper, clock, waiting)) continue;
    if (best == nullptr || helper.under_way < best->under_way ||
        (helper.under_way == best->under_way && helper.round_trip < best->round_trip)) {
      best = &helper;
    }
  }
  if (best == nullptr) return std::nullopt;
  ++best->under_way;
  return first_ + static_cast<NodeId>(best - helpers_.data());
}

void LendingPolicy::came_back(NodeId helper, std::optional<double> seconds) {
  const std::lock_guard lock(mutex_);
  Helper& of = helpers_[helper - first_];
  --of.under_way;
  if (seconds) of.round_trip = mixed(of.round_trip, *seconds);
}

}  // namespace orrery
