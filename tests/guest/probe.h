// What the parts of guest_probe share: a list of complaints, and where the machine is described.
#pragma once

#include <cstdio>
#include <string>

#include "numa/topology.h"

namespace orrery::guest {

/// Counts what is wrong and says it at once, so that a guest that dies later has told what it knew.
class Checks {
 public:
  void expect(bool good, const std::string& what) {
    ++made_;
    if (good) return;
    ++failed_;
    std::printf("WRONG: %s\n", what.c_str());
    std::fflush(stdout);
  }
  bool good() const noexcept { return failed_ == 0; }
  void print(const char* part) const { std::printf("%s: %d checks, %d failed\n", part, made_, failed_); }

 private:
  int made_ = 0, failed_ = 0;
};

/// What the guest was started with.
struct Expected {
  unsigned domains = 0, memory_only = 0, bare = 0;
};

void check_shape(Checks& checks, const Topology& topology, const Expected& expected);
/// Pages of every kind of buffer are on their nodes, whoever touches them.
void check_placement(Checks& checks, const Topology& topology);
/// A buffer that its node has no room for spills over instead of ending the process. Touches a node's memory whole.
void check_spill(Checks& checks, const Topology& topology);
/// Threads are on their PUs and nodes, and get their masks back.
void check_threads(Checks& checks, const Topology& topology);
/// Narrowed processes: memory policy, control groups, CPUs that go offline. Changes the
/// machine: only in a guest.
void check_narrowing(Checks& checks, const Topology& topology);
/// Reads known numbers of words from every domain on every domain, in marked sections; a count is printed after each.
void read_everywhere(const Topology& topology);

}  // namespace orrery::guest
