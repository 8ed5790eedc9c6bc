// Topic models by groups that rotate replicas of the counts: conservation, and bits.
#include "algorithms/lda_hybrid.h"

#include <gtest/gtest.h>

#include "tests/algorithms/lda_test_support.h"

namespace orrery::lda {
namespace {

constexpr std::size_t kHybridTopics = 20;

struct GroupsShape {
  unsigned threads = 2;
  std::uint32_t groups = 2;
  Clock staleness = 0;
  const char* topology = "";
  std::optional<SamplerKind> sampler{};
};

Fixture groups_run(const GroupsShape& shape, const Corpus& corpus = bars(4, 70, 30, 3)) {
  EngineOptions options;
  options.threads = shape.threads;
  options.topology = shape.topology;
  options.staleness = shape.staleness;
  options.consistency = shape.staleness > 0 ? Consistency::ssp : Consistency::bsp;
  TrainingPlan plan;
  plan.sampler = shape.sampler;
  return Fixture(corpus, kHybridTopics, 6, plan, symmetric_priors(kHybridTopics), options, 2, nullptr, By::rotation,
                 shape.groups);
}

std::vector<Topic> topics_after(Fixture& run, Clock iterations) {
  run.run(iterations);
  std::vector<Topic> all;
  for (std::size_t s = 0; s < run.state().grid.stripes(); ++s) {
    const auto& topics = run.state().grid.stripe(s).topics;
    all.insert(all.end(), topics.begin(), topics.end());
  }
  return all;
}

std::vector<Topic> topics_of_groups(const GroupsShape& shape, Clock iterations = 4) {
  Fixture run = groups_run(shape);
  return topics_after(run, iterations);
}

TEST(LdaHybrid, counts_are_those_of_the_assignments_at_every_cut) {
  for (const SamplerKind sampler : {SamplerKind::dense, SamplerKind::sparse, SamplerKind::mh}) {
    for (const std::uint32_t groups : {2U, 3U, 6U}) {
      for (const Clock staleness : {0, 1, 3}) {
        Fixture run = groups_run({.threads = 4, .groups = groups, .staleness = staleness, .sampler = sampler});
        for (const Clock iterations : {1, 2, 6}) {
          run.run(iterations);
          EXPECT_EQ(run.state().contradiction(serial_for), "") << groups << " groups, staleness " << staleness;
        }
      }
    }
  }
}

TEST(LdaHybrid, bits_depend_on_groups_and_staleness_and_not_on_threads_and_domains) {
  const std::vector<Topic> expected = topics_of_groups({.threads = 1});
  EXPECT_EQ(topics_of_groups({.threads = 4}), expected);
  EXPECT_EQ(topics_of_groups({.threads = 4, .topology = "numa:2 core:2 pu:1"}), expected);
  EXPECT_NE(topics_of_groups({.threads = 1, .groups = 3}), expected);
  EXPECT_NE(topics_of_groups({.threads = 1, .staleness = 1}), expected);
}

TEST(LdaHybrid, goes_on_from_a_saved_state_to_the_same_bits) {
  Fixture first = groups_run({.threads = 2}), second = groups_run({.threads = 1});
  first.run(2);
  second.trainee().load_state(first.trainee().save_state());
  second.start(4);
  EXPECT_EQ(topics_after(second, 4), topics_of_groups({.threads = 1}));
}

TEST(LdaHybrid, learns_what_rotation_learns) {
  const Corpus corpus = bars(4, 300, 40, 7);
  Fixture rotation = groups_run({.groups = 1}, corpus), hybrid = groups_run({.groups = 3, .staleness = 1}, corpus);
  const double start = rotation.joint();
  rotation.run(40);
  hybrid.run(40);
  EXPECT_GT(hybrid.joint() - start, 0.93 * (rotation.joint() - start));
}

}  // namespace
}  // namespace orrery::lda
