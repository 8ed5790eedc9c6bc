// When a node hands units over to another one (work re-assignment, design section 4; after FlexRR: Harlap et al., SoCC
// 2016): numbers only, so that it is tested without nodes. Nothing in here may decide a bit.
//
// Nodes help each other within small groups. A node that has nothing to run says so once a clock, with how far it is
// and what a unit takes there. One that still has units waiting hands over the last of them, if the other is ahead by a
// clock or much quicker, and if the unit would come back before this node got to it: that is measured,
// transfer, waiting and all, with the first unit handed over as a trial. So without stragglers nothing is handed over,
// and where links are too slow for it little more than the trials are.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/types.h"

namespace orrery {

enum class Reassign : std::uint8_t {
  off,
  when_it_pays,
  always  ///< whenever somebody has nothing to run: for tests
};

/// Any thread.
class LendingPolicy {
 public:
  LendingPolicy(NodeId here, NodeId nodes, unsigned threads, Reassign mode);

  bool is_on() const noexcept { return mode_ != Reassign::off && last_ - first_ > 1; }
  /// Who is helped and helps: nodes [first, last), this one among them.
  NodeId first_of_group() const noexcept { return first_; }
  NodeId last_of_group() const noexcept { return last_; }

  /// A unit ran here, in so many seconds. That of another node counts as well.
  void unit_ran(double seconds);
  /// What a unit takes here, lately; 0: none ran.
  double unit_seconds() const;

  /// `helper` has nothing to run; all its workers have finished the clocks below `clock`.
  void offered(NodeId helper, Clock clock, double unit_seconds);
  /// Whom to hand over the last of `waiting` units while this node is in `clock`; nobody if it does not pay. Counts as
  /// under way until came_back().
  std::optional<NodeId> lend(Clock clock, std::size_t waiting);
  /// It came back after so many seconds; as it went, when it was not begun.
  void came_back(NodeId helper, std::optional<double> seconds);

 private:
  struct Helper {
    bool offered = false;
    Clock clock = 0;
    double unit_seconds = 0;
    double round_trip = 0;  ///< 0: not known
    unsigned under_way = 0;
  };
  bool pays(const Helper& helper, Clock clock, std::size_t waiting) const;

  const Reassign mode_;
  const unsigned threads_;
  const NodeId first_, last_;
  mutable std::mutex mutex_;
  double unit_seconds_ = 0;
  std::vector<Helper> helpers_;  ///< of the group
};

}  // namespace orrery
