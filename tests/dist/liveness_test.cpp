// When a silent rank counts as lost. Time is a number here.
#include "dist/liveness.h"

#include <gtest/gtest.h>

namespace orrery::dist {
namespace {

using std::chrono::milliseconds;

struct Watch {
  Time now{};
  Liveness liveness{3, 1, Seconds(10), Time{}};
  /// Lets time pass; the ranks in `heard` are heard all the while.
  void pass(milliseconds time, const std::vector<NodeId>& heard) {
    for (const Time end = now + time; now < end; now += milliseconds(100)) {
      liveness.tick(now);
      for (const NodeId rank : heard) liveness.heard(rank, now);
    }
  }
};

TEST(Liveness, only_who_is_silent_beyond_the_limit_is_lost) {
  Watch watch;
  watch.pass(milliseconds(9000), {0});
  EXPECT_TRUE(watch.liveness.silent(watch.now, false).empty());
  watch.pass(milliseconds(2000), {0});
  EXPECT_EQ(watch.liveness.silent(watch.now, false), std::vector<NodeId>{2});
}

TEST(Liveness, the_limit_is_short_once_the_job_is_being_ended) {
  Watch watch;
  watch.pass(milliseconds(1500), {0});
  EXPECT_TRUE(watch.liveness.silent(watch.now, false).empty());
  EXPECT_EQ(watch.liveness.silent(watch.now, true), std::vector<NodeId>{2});
}

TEST(Liveness, nothing_is_expected_of_who_has_left) {
  Watch watch;
  watch.liveness.leave(2);
  watch.pass(milliseconds(20'000), {0});
  EXPECT_TRUE(watch.liveness.silent(watch.now, true).empty());
}

TEST(Liveness, a_process_that_was_stopped_blames_nobody) {
  Watch watch;
  watch.pass(milliseconds(1000), {0, 2});
  watch.now += std::chrono::seconds(60);
  watch.liveness.tick(watch.now);
  EXPECT_TRUE(watch.liveness.silent(watch.now, false).empty());
  watch.pass(milliseconds(11'000), {0});
  EXPECT_EQ(watch.liveness.silent(watch.now, false), std::vector<NodeId>{2}) << "but goes on watching";
}

TEST(Liveness, signs_of_life_are_due_regularly) {
  Watch watch;
  int beats = 0;
  for (int i = 0; i < 1000; ++i) {
    beats += watch.liveness.beat(watch.now) ? 1 : 0;
    watch.now += milliseconds(10);
  }
  EXPECT_EQ(beats, 50);
}

}  // namespace
}  // namespace orrery::dist
