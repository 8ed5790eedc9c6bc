// The kernels at every level against masses in double precision: a visit that looks at every topic, for one to many
// vectors of topics, against draws one after the other; and one token drawn from lists with all uniform numbers there
// are, which has to give every topic as often as its mass says.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
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

/// One token, of a document with a list of `length` tokens, and of a word with or without a list.
class ListedToken {
 public:
  ListedToken(std::uint32_t length, bool listed_word)
      : documents_(topology_, 0, std::vector<std::uint32_t>{length}, kTopics, DocumentForm::listed),
        memory_(Buffer::local(6 * kPadded * sizeof(float), 0, topology_)),
        listed_(listed_word),
        totals_(kPadded, 40) {
    for (std::uint32_t i = 0; i < length; ++i) {
      const auto topic = static_cast<Topic>((i * i + 3) % 41);
      topics_.push_back(topic);
      documents_.add(0, topic);
      if (i % 3 == 0 || i + 1 == length) ++counts()[topic];
    }
    for (std::size_t k = 0; k < kTopics; ++k) alpha()[k] = 0.1F + 0.02F * static_cast<float>(k % 4);
  }

  /// Of so many draws with evenly spaced numbers, how many gave each topic. The token is put back after each.
  std::vector<int> draw(const Kernels& kernels, int draws) {
    SamplerOptions options{.topics = kTopics, .longest_run = 1, .kernels = &kernels};
    const std::unique_ptr<Sampler> sampler = make_sampler(SamplerKind::sparse, options);
    TopicView view{.topics = kTopics, .padded = kPadded, .totals = totals_.data(), .beta_sum = kBetaSum};
    view.alpha = alpha();
    view.inverse = floats(1);
    view.phi = floats(2);
    view.running = floats(3);
    view.chunks = &chunk_;
    std::vector<int> drawn(kTopics, 0);
    const Topic home = topics_.back();
    for (int i = 0; i < draws; ++i) {
      for (std::size_t k = 0; k < kTopics; ++k) {
        view.inverse[k] = static_cast<float>(1 / (static_cast<double>(totals_[k]) + kBetaSum));
      }
      sampler->begin_clock(view);
      const float uniform = (static_cast<float>(i) + 0.5F) / static_cast<float>(draws);
      Visit visit = visit_of(topics_.back());
      visit.uniforms = &uniform;
      kernels.sample_sparse(visit, view, documents_.listed());
      ++drawn[topics_.back()];
      if (i % 16 == 0) expect_list_of_the_tokens();
      put_back(home);
    }
    return drawn;
  }

  std::vector<double> shares() const {
    std::vector<double> masses(kTopics);
    std::vector<double> in_document(kTopics, 0);
    documents_.for_each_topic(0, [&](Topic topic, std::int32_t count) { in_document[topic] = count; });
    double sum = 0;
    for (std::size_t k = 0; k < kTopics; ++k) {
      const int own = k == topics_.back() ? 1 : 0;
      masses[k] = (in_document[k] - own + double{alpha()[k]}) * (counts()[k] - own + double{kBeta}) /
                  (static_cast<double>(totals_[k]) - own + kBetaSum);
      sum += masses[k];
    }
    for (double& mass : masses) mass /= sum;
    return masses;
  }

  static constexpr std::size_t kTopics = 90, kPadded = 96;

 private:
  Visit visit_of(Topic& topic) {
    static constexpr std::uint32_t kDocument = 0;
    Visit visit;
    visit.documents = &kDocument;
    visit.topics = &topic;
    visit.tokens = visit.known = 1;
    visit.beta = kBeta;
    visit.counts = counts();
    visit.listed = listed_;
    row_.clear();
    present_.assign(kPadded, 0);
    for (Topic k = 0; k < kTopics; ++k) {
      if (counts()[k] == 0) continue;
      row_.push_back(k);
      present_[k] = 1;
    }
    visit.row = row_.data();
    visit.row_size = row_.size();
    visit.present = present_.data();
    visit.added = &added_;
    return visit;
  }
  /// The list that the kernel has left.
  void expect_list_of_the_tokens() const {
    std::vector<std::int32_t> expected(kTopics, 0), found(kTopics, 0);
    for (const Topic topic : topics_) ++expected[topic];
    Topic last = kNoTopic;
    documents_.for_each_topic(0, [&](Topic topic, std::int32_t count) {
      EXPECT_TRUE(last == kNoTopic || last < topic);
      found[last = topic] = count;
    });
    EXPECT_EQ(found, expected);
  }
  void put_back(Topic home) {
    Topic& topic = topics_.back();
    if (topic == home) return;
    --counts()[topic];
    --totals_[topic];
    ++counts()[home];
    ++totals_[home];
    topic = home;
    documents_.count(std::vector<std::uint32_t>(topics_.size(), 0), topics_);
  }
  float* floats(std::size_t n) { return memory_.as<float>().data() + n * kPadded; }
  float* alpha() { return floats(0); }
  const float* alpha() const { return memory_.as<const float>().data(); }
  std::int32_t* counts() { return memory_.as<std::int32_t>().data() + 4 * kPadded; }
  const std::int32_t* counts() const { return memory_.as<const std::int32_t>().data() + 4 * kPadded; }

  const Topology topology_ = Topology::synthetic("numa:1 core:1 pu:1");
  DocumentTopics documents_;
  Buffer memory_;  ///< alpha, inverse, phi, running, counts of the word
  bool listed_;
  std::vector<std::int64_t> totals_;
  std::vector<Topic> topics_, row_;
  std::vector<std::uint8_t> present_;
  Topic added_ = 0;
  double chunk_ = 0;
};

TEST(LdaKernels, a_token_drawn_from_lists_gets_every_topic_as_often_as_its_mass_says) {
  constexpr int kDraws = 3000;
  for (int level = 0; level <= static_cast<int>(detect_simd()); ++level) {
    for (const std::uint32_t length : {1U, 2U, 15U, 16U, 17U, 70U}) {
      for (const bool listed_word : {false, true}) {
        SCOPED_TRACE(std::to_string(length) + " tokens, level " + std::to_string(level));
        ListedToken token(length, listed_word);
        const std::vector<double> shares = token.shares();
        const std::vector<int> drawn = token.draw(kernels(static_cast<SimdLevel>(level)), kDraws);
        // A topic has three intervals of the numbers at most: of the document, of the word, and of all topics alike.
        for (std::size_t k = 0; k < ListedToken::kTopics; ++k) EXPECT_NEAR(drawn[k], shares[k] * kDraws, 3.1) << k;
      }
    }
  }
}

}  // namespace
}  // namespace orrery::lda
