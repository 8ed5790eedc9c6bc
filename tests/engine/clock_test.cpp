// The clock algebra: minima along the tree, monotone, whatever the shape.
#include "engine/clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace orrery {
namespace {

TEST(WorkerMap, deals_contiguously_and_evenly) {
  for (const WorkerId workers : {1U, 3U, 8U, 17U, 100U}) {
    for (NodeId nodes = 1; nodes <= std::min<NodeId>(workers, 5); ++nodes) {
      WorkerId seen = 0;
      for (NodeId n = 0; n < nodes; ++n) {
        for (const DomainId domains : {1U, 2U, 4U}) {
          const WorkerMap map(workers, nodes, n, domains);
          DomainId last = 0;
          for (WorkerId w = map.first_worker(n); w < map.first_worker(n + 1); ++w) {
            EXPECT_EQ(map.node_of(w), n);
            EXPECT_GE(map.domain_of(w), last);
            EXPECT_LT(map.domain_of(w), domains);
            last = map.domain_of(w);
          }
        }
        const WorkerMap map(workers, nodes, n, 1);
        const WorkerId size = map.first_worker(n + 1) - map.first_worker(n);
        EXPECT_GE(size, workers / nodes);
        EXPECT_LE(size, workers / nodes + 1);
        seen += size;
      }
      EXPECT_EQ(seen, workers);
    }
  }
}

TEST(ClockTree, every_level_is_the_minimum_of_the_one_below) {
  const WorkerMap map(10, 2, 0, 3);
  ClockTree tree(map, 4);
  std::mt19937 random(1);
  std::vector<Clock> workers(map.first_worker(1), 4);
  Clock other = 4, before = 4;
  for (int i = 0; i < 2000; ++i) {
    const auto w = static_cast<WorkerId>(random() % workers.size());
    tree.tick(w);
    ++workers[w];
    if (random() % 3 == 0) tree.node_reached(1, other += static_cast<Clock>(random() % 3));
    if (random() % 5 == 0) tree.node_reached(1, other - 2);  // a late message
    Clock slowest = *std::min_element(workers.begin(), workers.end());
    EXPECT_EQ(tree.node(0), slowest);
    EXPECT_EQ(tree.node(1), other);
    EXPECT_EQ(tree.cluster(), std::min(slowest, other));
    EXPECT_EQ(tree.fastest(), *std::max_element(workers.begin(), workers.end()));
    for (DomainId d = 0; d < 3; ++d) {
      Clock least = 1 << 30;
      for (WorkerId v = 0; v < workers.size(); ++v) {
        if (map.domain_of(v) == d) least = std::min(least, workers[v]);
      }
      EXPECT_EQ(tree.domain(d), least);
    }
    EXPECT_GE(tree.cluster(), before);
    before = tree.cluster();
  }
}

TEST(ClockTree, a_domain_without_workers_holds_nobody_back) {
  const WorkerMap map(2, 1, 0, 4);
  ClockTree tree(map, 0);
  tree.tick(0);
  tree.tick(1);
  EXPECT_EQ(tree.cluster(), 1);
}

}  // namespace
}  // namespace orrery
