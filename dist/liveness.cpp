#include "dist/liveness.h"

#include <algorithm>

namespace orrery::dist {
namespace {

constexpr Seconds kLongGap{0.3};

Time::duration ticks(Seconds seconds) { return std::chrono::duration_cast<Time::duration>(seconds); }

}  // namespace

Liveness::Liveness(NodeId ranks, NodeId self, Seconds limit, Time now)
    : limit_(limit), heard_(ranks, now), watched_(ranks, true), last_tick_(now), next_beat_(now) {
  watched_[self] = false;
}

void Liveness::tick(Time now) {
  const Time::duration gap = now - last_tick_;
  last_tick_ = now;
  if (gap < kLongGap) return;
  for (Time& heard : heard_) heard = std::min(heard + gap, now);
}

bool Liveness::beat(Time now) {
  if (now < next_beat_) return false;
  next_beat_ = now + ticks(kBeat);
  return true;
}

std::vector<NodeId> Liveness::silent(Time now, bool hurried) const {
  const Seconds limit = hurried ? std::min(limit_, kHurried) : limit_;
  std::vector<NodeId> lost;
  for (NodeId rank = 0; rank < heard_.size(); ++rank) {
    if (watched_[rank] && now - heard_[rank] > limit) lost.push_back(rank);
  }
  return lost;
}

}  // namespace orrery::dist
