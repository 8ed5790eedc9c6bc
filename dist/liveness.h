// Who is still there (design section 11): Open MPI waits for ever for a rank that has died or hangs, so ranks send each
// other signs of life and keep deadlines of their own. Only times and numbers: no MPI, no clock of its own.
#pragma once

#include <chrono>
#include <vector>

#include "engine/types.h"

namespace orrery::dist {

using Time = std::chrono::steady_clock::time_point;
using Seconds = std::chrono::duration<double>;

/// One thread.
class Liveness {
 public:
  /// A peer that is silent for `limit` is lost.
  Liveness(NodeId ranks, NodeId self, Seconds limit, Time now);

  static constexpr Seconds kBeat{0.2};     ///< between two signs of life
  static constexpr Seconds kHurried{0.8};  ///< the limit once this process was told to end

  /// Something came from the rank.
  void heard(NodeId rank, Time now) { heard_[rank] = now; }
  /// The rank has left or is lost: nothing is expected of it any more.
  void leave(NodeId rank) { watched_[rank] = false; }
  bool watches(NodeId rank) const { return watched_[rank]; }

  /// To be called all the time. A time in which it was not called (the process was stopped, the machine slept) is
  /// nobody's silence but this process's own.
  void tick(Time now);
  /// True when signs of life are due; the next ones are then due kBeat later.
  bool beat(Time now);
  /// Watched ranks that are silent for too long.
  std::vector<NodeId> silent(Time now, bool hurried) const;

 private:
  const Seconds limit_;
  std::vector<Time> heard_;
  std::vector<bool> watched_;
  Time last_tick_, next_beat_;
};

}  // namespace orrery::dist
