// Samplers against what they should sample from: a posterior that can be enumerated, and a textbook sampler.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "algorithms/lda_alias.h"
#include "algorithms/lda_sampler.h"
#include "tests/algorithms/lda_test_support.h"

namespace orrery::lda {
namespace {

/// log p(w, z) as the paper has it, from assignments alone.
double textbook_joint(const LdaState& state) {
  const std::size_t topics = state.topics();
  std::map<std::pair<std::size_t, Topic>, double> words, documents;
  std::map<std::size_t, double> lengths;
  std::vector<double> totals(topics, 0);
  for (std::size_t s = 0; s < state.grid.stripes(); ++s) {
    const Stripe& stripe = state.grid.stripe(s);
    for_each_run(stripe, [&](std::size_t block, const Run& run, std::size_t first) {
      for (std::size_t i = first; i < first + run.tokens; ++i) {
        const std::size_t document = state.grid.documents().begin[s] + stripe.documents[i];
        ++words[{state.grid.words().begin[block] + run.word, stripe.topics[i]}];
        ++documents[{document, stripe.topics[i]}];
        ++lengths[document];
        ++totals[stripe.topics[i]];
      }
    });
  }
  const double beta_sum = state.beta_sum(), alpha_sum = state.priors.alpha_sum();
  double sum = 0;
  for (const double total : totals) sum += std::lgamma(beta_sum) - std::lgamma(total + beta_sum);
  for (const auto& [at, count] : words) {
    const double beta = state.priors.beta_of(static_cast<std::uint32_t>(at.first));
    sum += std::lgamma(count + beta) - std::lgamma(beta);
  }
  for (const auto& [document, length] : lengths) sum += std::lgamma(alpha_sum) - std::lgamma(length + alpha_sum);
  for (const auto& [at, count] : documents) {
    const double alpha = state.priors.alpha[at.second];
    sum += std::lgamma(count + alpha) - std::lgamma(alpha);
  }
  return sum;
}

Priors uneven_priors() {
  Priors priors;
  priors.alpha = {0.6, 1.1, 0.4};
  priors.word_beta = {0.7, 0.3};
  return priors;
}

/// Total variation between where `sweeps` sweeps of a sampler on four tokens were and the enumerated posterior.
double distance_from_posterior(SamplerKind kind, const Kernels& level, int sweeps) {
  TrainingPlan plan;
  plan.sampler = kind;
  plan.kernels = &level;
  EngineOptions options;
  options.threads = 1;
  Fixture fixture(corpus_of({{0, 0, 1}, {1}}, 2), 3, 1, plan, uneven_priors(), options);
  std::vector<Topic>& topics = fixture.state().grid.stripe(0).topics;
  const auto state_number = [&] {
    return std::accumulate(topics.begin(), topics.end(), std::size_t{0},
                           [](std::size_t n, Topic z) { return 3 * n + z; });
  };
  std::vector<double> visits(81, 0), posterior(81, 0);
  for (Clock clock = 0; clock < sweeps; ++clock) {
    const BlockId block = 0;
    WorkUnit unit;
    unit.clock = clock;
    unit.blocks = {&block, 1};
    UnitContext context{.clock = clock};
    fixture.trainee().run_unit(unit, context);
    fixture.trainee().worker_ended(0, clock);
    fixture.trainee().commit(clock, {});
    visits[state_number()] += 1.0 / sweeps;
  }
  double sum = 0;
  for (std::size_t n = 0; n < 81; ++n) {
    std::size_t rest = n;
    for (std::size_t i = 4; i > 0; --i, rest /= 3) topics[i - 1] = static_cast<Topic>(rest % 3);
    sum += posterior[n] = std::exp(textbook_joint(fixture.state()));
  }
  double distance = 0;
  for (std::size_t n = 0; n < 81; ++n) distance += 0.5 * std::abs(visits[n] - posterior[n] / sum);
  return distance;
}

TEST(LdaSampler, every_sampler_at_every_level_samples_the_enumerated_posterior) {
  constexpr int kSweeps = 150000;
  for (int level = 0; level <= static_cast<int>(detect_simd()); ++level) {
    const Kernels& kernels_of_level = kernels(static_cast<SimdLevel>(level));
    for (const SamplerKind kind : {SamplerKind::dense, SamplerKind::sparse}) {
      EXPECT_LT(distance_from_posterior(kind, kernels_of_level, kSweeps), 0.01)
          << to_string(kind) << " level " << level;
    }
  }
  EXPECT_LT(distance_from_posterior(SamplerKind::mh, portable_kernels(), kSweeps), 0.01);
}

TEST(LdaSampler, the_joint_likelihood_is_the_papers) {
  TrainingPlan plan;
  for (const bool even : {true, false}) {
    Priors priors = symmetric_priors(5);
    if (!even) {
      for (std::size_t k = 0; k < 5; ++k) priors.alpha[k] = 0.1 * static_cast<double>(k + 1);
      for (std::size_t w = 0; w < 16; ++w) priors.word_beta.push_back(0.01 * static_cast<double>(w + 1));
    }
    Fixture fixture(bars(4, 60, 30, 1), 5, 4, plan, std::move(priors));
    EXPECT_NEAR(fixture.joint(), textbook_joint(fixture.state()), 1e-8);
    fixture.run(5);
    EXPECT_NEAR(fixture.joint(), textbook_joint(fixture.state()), 1e-8);
  }
}

/// A sweep of collapsed Gibbs sampling over tables of plain counts, in order, with the standard library's randomness.
class TextbookSampler {
 public:
  TextbookSampler(const Corpus& corpus, std::size_t topics, double alpha, double beta)
      : topics_(topics), alpha_(alpha), beta_(beta), words_(corpus.word_count * topics), totals_(topics) {
    documents_.resize(corpus.documents() * topics);
    for (std::size_t d = 0; d < corpus.documents(); ++d) {
      for (auto c = corpus.starts[d]; c < corpus.starts[d + 1]; ++c) {
        for (std::uint32_t i = 0; i < corpus.counts[c]; ++i) {
          tokens_.push_back({d, corpus.words[c], draws_.below(topics)});
          move(tokens_.back(), 1);
        }
      }
    }
  }
  void sweep() {
    std::vector<double> mass(topics_);
    for (Token& token : tokens_) {
      move(token, -1);
      const double beta_sum = beta_ * static_cast<double>(words_.size()) / static_cast<double>(topics_);
      for (std::size_t k = 0; k < topics_; ++k) {
        mass[k] = (documents_[token.document * topics_ + k] + alpha_) * (words_[token.word * topics_ + k] + beta_) /
                  (totals_[k] + beta_sum);
      }
      double target = draws_.uniform() * std::accumulate(mass.begin(), mass.end(), 0.0);
      token.topic = 0;
      while (token.topic + 1 < topics_ && target >= mass[token.topic]) target -= mass[token.topic++];
      move(token, 1);
    }
  }
  double joint() const {
    const double words = static_cast<double>(words_.size()) / static_cast<double>(topics_);
    const auto k = static_cast<double>(topics_);
    double sum = 0;
    for (const double n : totals_) sum += std::lgamma(words * beta_) - std::lgamma(n + words * beta_);
    for (const double n : words_) sum += std::lgamma(n + beta_) - std::lgamma(beta_);
    for (std::size_t d = 0; d < documents_.size(); d += topics_) {
      double length = 0;
      for (std::size_t t = d; t < d + topics_; ++t) {
        sum += std::lgamma(documents_[t] + alpha_) - std::lgamma(alpha_);
        length += documents_[t];
      }
      sum += std::lgamma(k * alpha_) - std::lgamma(length + k * alpha_);
    }
    return sum;
  }

 private:
  struct Token {
    std::size_t document, word, topic;
  };
  void move(const Token& token, int by) {
    documents_[token.document * topics_ + token.topic] += by;
    words_[token.word * topics_ + token.topic] += by;
    totals_[token.topic] += by;
  }
  std::size_t topics_;
  double alpha_, beta_;
  std::vector<double> words_, documents_, totals_;
  std::vector<Token> tokens_;
  RandomStream draws_ = Random(9, Purpose::test).stream(0, 0);
};

TEST(LdaSampler, all_samplers_come_to_the_likelihood_of_a_textbook_sampler) {
  const Corpus corpus = bars(5, 120, 60, 3);
  const auto tokens = static_cast<double>(corpus.tokens);
  constexpr Clock kBurnIn = 80, kSweeps = 40;
  TextbookSampler textbook(corpus, 20, 0.1, 0.05);
  for (Clock c = 0; c < kBurnIn; ++c) textbook.sweep();
  double expected = 0;
  for (Clock c = 0; c < kSweeps; ++c, textbook.sweep()) expected += textbook.joint() / tokens / kSweeps;
  for (const SamplerKind kind : {SamplerKind::dense, SamplerKind::sparse, SamplerKind::mh}) {
    for (const WorkerId workers : {1U, 16U}) {
      TrainingPlan plan;
      plan.sampler = kind;
      Fixture fixture(corpus, 20, workers, plan, symmetric_priors(20));
      fixture.run(kBurnIn);
      double mean = 0;
      for (Clock c = 1; c <= kSweeps; ++c) {
        fixture.run(kBurnIn + c);
        mean += fixture.joint() / tokens / kSweeps;
      }
      EXPECT_NEAR(mean, expected, 0.05) << to_string(kind) << ", workers " << workers;
    }
  }
}

TEST(LdaSampler, alias_tables_are_exact) {
  const std::vector<float> weights{3, 0, 1, 0.5F, 7, 1e-9F, 2.5F};
  AliasTable table;
  table.build(weights);
  const auto cases = table.cases();
  const double all = static_cast<double>(weights.size()) * static_cast<double>(AliasTable::kColumn);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  EXPECT_EQ(std::accumulate(cases.begin(), cases.end(), std::uint64_t{0}), weights.size() * AliasTable::kColumn);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(cases[i]), double{weights[i]} / sum * all, static_cast<double>(weights.size()));
  }
  RandomStream draws = Random(1, Purpose::test).stream(0, 0);
  constexpr int kDraws = 100000;
  std::vector<double> seen(weights.size(), 0);
  for (int i = 0; i < kDraws; ++i) ++seen[table.draw(draws)];
  double chi_square = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double expected = static_cast<double>(cases[i]) / all * kDraws;
    if (expected > 5) chi_square += (seen[i] - expected) * (seen[i] - expected) / expected;
  }
  EXPECT_LT(chi_square, 18.5);  // 4 degrees of freedom, p = 0.001
  EXPECT_EQ(seen[1], 0);
}

/// One word over 40 topics and one document of one token, in which all topics are equally likely a priori.
class LoneToken {
 public:
  /// n_k of all topics but the last third, which have `others`. A word of the token alone proposes all topics alike.
  LoneToken(std::int64_t total, std::int64_t others, bool word_of_many)
      : documents_(topology_, 0, std::vector<std::uint32_t>{1}, kTopics, DocumentForm::listed),
        totals_(kPadded, 0),
        counts_(kPadded, 0),
        memory_(Buffer::local(3 * kPadded * sizeof(float), 0, topology_)) {
    for (std::size_t k = 0; k < kTopics; ++k) {
      counts_[k] = word_of_many ? static_cast<std::int32_t>((k * 7) % 11) : k == topic_ ? 1 : 0;
      totals_[k] = 3 * k < 2 * kTopics ? total : others;
    }
    view_.topics = kTopics;
    view_.padded = kPadded;
    view_.totals = totals_.data();
    view_.beta_sum = 5;
    float* const alpha = memory_.as<float>().data();
    view_.inverse = alpha + kPadded;
    view_.alpha = alpha;
    for (std::size_t k = 0; k < kTopics; ++k) {
      alpha[k] = 0.1F;
      view_.inverse[k] = static_cast<float>(1 / (static_cast<double>(totals_[k]) + view_.beta_sum));
    }
    documents_.add(0, topic_);
    documents_.list_tokens(std::vector<std::uint32_t>{0});
  }
  double acceptance(int steps) {
    const auto sampler = make_sampler(SamplerKind::mh, {.topics = kTopics, .longest_run = 1, .mh_steps = 1});
    sampler->begin_clock(view_);
    RandomStream draws = Random(3, Purpose::test).stream(0, 0);
    const std::uint32_t document = 0;
    for (int i = 0; i < steps; ++i) {
      Visit visit;
      visit.documents = &document;
      visit.topics = &topic_;
      visit.all_topics = &topic_;
      visit.tokens = 1;
      visit.beta = 0.05F;
      visit.counts = counts_.data();
      sampler->sample(visit, view_, documents_, draws);
    }
    return sampler->word_acceptance();
  }

 private:
  static constexpr std::size_t kTopics = 40, kPadded = 48;
  const Topology topology_ = Topology::synthetic("numa:1 core:1 pu:1");
  DocumentTopics documents_;
  std::vector<std::int64_t> totals_;
  std::vector<std::int32_t> counts_;
  Buffer memory_;
  TopicView view_;
  Topic topic_ = 3;
};

TEST(LdaSampler, mh_accepts_always_where_a_word_proposes_the_posterior_and_not_elsewhere) {
  constexpr std::int64_t kLarge = 1000000000;  // beside which the token itself does not count
  EXPECT_EQ(LoneToken(kLarge, kLarge, true).acceptance(20000), 1);
  // Two thirds of the proposals go where p is a twentieth, and are accepted as often.
  EXPECT_NEAR(LoneToken(kLarge, kLarge / 20, false).acceptance(20000), 0.42, 0.05);
}

TEST(LdaSampler, gamma_and_its_differences_agree_with_the_standard_library) {
  for (const double x : {0.01, 0.1, 0.9, 1.0, 2.5, 15.9, 16.0, 100.0, 76050.0}) {
    EXPECT_NEAR(log_gamma(x), std::lgamma(x), 1e-12 * (1 + std::abs(std::lgamma(x)))) << x;
    const RisingLogs rising(x);
    double reciprocals = 0;
    for (const std::int64_t n : {0, 1, 2, 8, 9, 500, 5000}) {
      const double expected = std::lgamma(x + static_cast<double>(n)) - std::lgamma(x);
      EXPECT_NEAR(rising(n), expected, 1e-9 * (1 + std::abs(expected)));
      EXPECT_NEAR(log_rising(x, n), expected, 1e-9 * (1 + std::abs(expected)));
    }
    for (int j = 0; j < 300; ++j) reciprocals += 1 / (x + j);
    EXPECT_NEAR(reciprocal_sum(x, 300), reciprocals, 1e-12 * (1 + reciprocals));
  }
}

}  // namespace
}  // namespace orrery::lda
