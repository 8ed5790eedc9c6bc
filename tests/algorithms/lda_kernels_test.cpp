// The kernel that looks at every topic, at every level and for one to many vectors of topics, against draws that are
// made one after the other from masses in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "algorithms/lda_sampler.h"
#include "numa/memory.h"

namespace orrery::lda {
namespace {

constexpr double kBetaSum = 3;
constexpr float kBeta = 0.02F;
constexpr std::size_t kDocuments = 7;

/// The tokens of one word, some without a topic yet, and all counts that a kernel works on.
class OneVisit {
 public:
  OneVisit(std::size_t topics, std::size_t tokens)
      : topics_(topics),
        padded_(padded_topics(topics)),
        memory_(Buffer::local((5 + kDocuments) * padded_ * sizeof(float), 0, topology_)),
        reciprocals_(padded_),
        totals(padded_, 0) {
    RandomStream draws = Random(topics, Purpose::test).stream(0, 0);
    for (std::size_t d = 0; d < kDocuments; ++d) {
      for (std::size_t i = 0; i < 20; ++i) add(d, static_cast<Topic>(draws.below(topics_)), i % 2 == 0);
    }
    for (std::size_t i = 0; i < tokens; ++i) documents.push_back(static_cast<std::uint32_t>(draws.below(kDocuments)));
    std::sort(documents.begin(), documents.end());
    for (std::size_t i = 0; i < tokens; ++i) {
      uniforms.push_back(draws.uniform_float());
      assigned.push_back(i % 9 == 8 ? kNoTopic : static_cast<Topic>(draws.below(topics_)));
      if (assigned.back() != kNoTopic) add(documents[i], assigned.back(), true);
    }
    for (std::size_t k = 0; k < topics_; ++k) alpha()[k] = 0.1F + 0.01F * static_cast<float>(k % 3);
  }

  void sample(const Kernels& kernels) {
    TopicView view{.topics = topics_, .padded = padded_, .totals = totals.data(), .beta_sum = kBetaSum};
    view.alpha = alpha();
    view.inverse = floats(1);
    view.phi = floats(2);
    view.running = floats(3);
    for (std::size_t k = 0; k < topics_; ++k) view.inverse[k] = inverse_of(totals[k]);
    reciprocals_.begin_clock(view);
    Visit visit;
    visit.documents = documents.data();
    visit.topics = assigned.data();
    visit.tokens = documents.size();
    visit.known = visit.tokens;
    visit.uniforms = uniforms.data();
    visit.beta = kBeta;
    visit.counts = counts();
    kernels.sample_dense(visit, view, {row(0), padded_});
    for (std::size_t k = 0; k < topics_; ++k) {
      EXPECT_EQ(view.inverse[k], inverse_of(totals[k]));
      EXPECT_EQ(view.less[k], inverse_of(totals[k] - 1));
      EXPECT_EQ(view.more[k], inverse_of(totals[k] + 1));
    }
  }

  /// Kernels add up lane by lane, so topics stand in the order of their lanes.
  void sample_one_by_one(std::size_t lanes) {
    for (std::size_t i = 0; i < documents.size(); ++i) {
      if (assigned[i] != kNoTopic) change(documents[i], assigned[i], -1);
      const auto mass = [&](std::size_t k) {
        return (row(documents[i])[k] + double{alpha()[k]}) * (counts()[k] + double{kBeta}) /
               (static_cast<double>(totals[k]) + kBetaSum);
      };
      double sum = 0;
      for (std::size_t k = 0; k < topics_; ++k) sum += mass(k);
      double left = double{uniforms[i]} * sum;
      Topic drawn = kNoTopic;
      for (std::size_t lane = 0; lane < lanes && drawn == kNoTopic; ++lane) {
        for (std::size_t k = lane; k < topics_ && drawn == kNoTopic; k += lanes) {
          left -= mass(k);
          if (left < 0) drawn = static_cast<Topic>(k);
        }
      }
      assigned[i] = drawn;
      change(documents[i], drawn, 1);
    }
  }

  std::vector<std::int32_t> all_counts() const {
    const auto all = memory_.as<const std::int32_t>().subspan(4 * padded_);
    return {all.begin(), all.end()};
  }

 private:
  static float inverse_of(std::int64_t total) {
    return static_cast<float>(1.0 / (static_cast<double>(total) + kBetaSum));
  }
  float* floats(std::size_t n) { return memory_.as<float>().data() + n * padded_; }
  float* alpha() { return floats(0); }
  std::int32_t* counts() { return memory_.as<std::int32_t>().data() + 4 * padded_; }
  std::int32_t* row(std::size_t document) { return counts() + (document + 1) * padded_; }
  void change(std::size_t document, Topic topic, int by) {
    row(document)[topic] += by;
    counts()[topic] += by;
    totals[topic] += by;
  }
  /// A token of this word, or of another one.
  void add(std::size_t document, Topic topic, bool of_word) {
    change(document, topic, 1);
    if (!of_word) --counts()[topic];
  }

  std::size_t topics_, padded_;
  const Topology topology_ = Topology::synthetic("numa:1 core:1 pu:1");
  Buffer memory_;  ///< alpha, inverse, phi, running, counts of the word, rows of the documents
  Reciprocals reciprocals_;

 public:
  std::vector<std::int64_t> totals;
  std::vector<std::uint32_t> documents;
  std::vector<Topic> assigned;
  std::vector<float> uniforms;
};

TEST(LdaKernels, a_visit_gives_what_draws_one_after_the_other_give) {
  constexpr std::size_t kLanes[] = {4, 8, 16};
  for (int level = 0; level <= static_cast<int>(detect_simd()); ++level) {
    for (const std::size_t topics : {2U, 16U, 31U, 45U, 64U, 77U, 93U, 100U, 128U, 129U, 300U, 1000U}) {
      SCOPED_TRACE(std::to_string(topics) + " topics, level " + std::to_string(level));
      OneVisit visit(topics, 60), expected(topics, 60);
      visit.sample(kernels(static_cast<SimdLevel>(level)));
      expected.sample_one_by_one(kLanes[level]);
      EXPECT_EQ(visit.assigned, expected.assigned);
      EXPECT_EQ(visit.all_counts(), expected.all_counts());
      EXPECT_EQ(visit.totals, expected.totals);
    }
  }
}

}  // namespace
}  // namespace orrery::lda
