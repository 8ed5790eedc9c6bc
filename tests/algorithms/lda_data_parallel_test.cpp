// Topic models on a table: against a slow serial program, and the promises of tables seen from the algorithm.
#include "algorithms/lda_data_parallel.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/algorithms/lda_test_support.h"

namespace orrery::lda {
namespace {

constexpr std::size_t kTopics = 20;

struct Shape {
  unsigned threads = 1;
  WorkerId workers = 3;
  std::size_t document_blocks = 2;
  Clock staleness = 0;
  const char* topology = "";
  bool plan = true;
  std::optional<SamplerKind> sampler{};
  By by = By::tables;
};

EngineOptions options_of(const Shape& shape) {
  EngineOptions options;
  options.threads = shape.threads;
  options.topology = shape.topology;
  options.plan = shape.plan;
  options.staleness = shape.staleness;
  options.consistency = shape.staleness > 0 ? Consistency::ssp : Consistency::bsp;
  return options;
}

Fixture toy_run(const Shape& shape, const Corpus& corpus = bars(4, 70, 30, 3)) {
  TrainingPlan plan;
  plan.sampler = shape.sampler;
  return Fixture(corpus, kTopics, shape.workers, plan, symmetric_priors(kTopics), options_of(shape),
                 shape.document_blocks, nullptr, shape.by);
}

std::vector<Topic> topics_of(Fixture& run) {
  std::vector<Topic> all;
  for (std::size_t s = 0; s < run.state().grid.stripes(); ++s) {
    const auto& topics = run.state().grid.stripe(s).topics;
    all.insert(all.end(), topics.begin(), topics.end());
  }
  return all;
}

std::vector<Topic> trained(const Shape& shape, Clock iterations = 4) {
  Fixture run = toy_run(shape);
  run.run(iterations);
  return topics_of(run);
}

/// Newman's AD-LDA as one loop over plain arrays: in a clock every worker samples its tokens from its own copy of the
/// counts that the clock began with; then the counts are made anew from the topics of all tokens.
class Oracle {
 public:
  explicit Oracle(Fixture& run)
      : state_(run.state()), topology_(run.engine().topology()), kernels_(kernels(run.engine().simd())) {
    for (std::size_t s = 0; s < state_.grid.stripes(); ++s) topics_.push_back(state_.grid.stripe(s).topics);
  }
  void run_clock(Clock clock) {
    const Counts began = count();
    for (WorkerId w = 0; w < state_.grid.workers(); ++w) {
      sample(state_.grid.stripe_of(static_cast<std::size_t>(clock) % state_.grid.document_blocks(), w), began,
             Random(TrainingPlan{}.seed, Purpose::sampling).stream(clock, w));
    }
  }
  std::vector<Topic> topics() const {
    std::vector<Topic> all;
    for (const auto& stripe : topics_) all.insert(all.end(), stripe.begin(), stripe.end());
    return all;
  }

 private:
  struct Counts {
    std::map<std::uint32_t, std::vector<std::int32_t>> words;
    std::vector<std::int64_t> totals = std::vector<std::int64_t>(padded_topics(kTopics), 0);
  };
  template <class Visitor>
  void for_each_word(std::size_t s, Visitor&& visit) const {
    for_each_run(state_.grid.stripe(s), [&](std::size_t block, const Run& run, std::size_t token) {
      visit(state_.grid.words().begin[block] + run.word, token, run.tokens);
    });
  }
  Counts count() const {
    Counts counts;
    for (std::size_t s = 0; s < topics_.size(); ++s) {
      for_each_word(s, [&](std::uint32_t word, std::size_t token, std::uint32_t tokens) {
        auto& row = counts.words[word];
        row.resize(padded_topics(kTopics));
        for (std::size_t i = token; i < token + tokens; ++i) {
          ++row[topics_[s][i]];
          ++counts.totals[topics_[s][i]];
        }
      });
    }
    return counts;
  }
  void sample(std::size_t s, Counts mine, RandomStream draws) {
    const std::size_t padded = padded_topics(kTopics);
    const auto& documents = state_.grid.stripe(s).documents;
    alignas(64) float alpha[padded_topics(kTopics)] = {}, inverse[padded_topics(kTopics)] = {};
    alignas(64) float phi[padded_topics(kTopics)], running[padded_topics(kTopics)];
    alignas(64) std::int32_t row[padded_topics(kTopics)];
    TopicView view{.topics = kTopics,
                   .padded = padded,
                   .totals = mine.totals.data(),
                   .beta_sum = state_.beta_sum(),
                   .alpha = alpha,
                   .inverse = inverse,
                   .phi = phi,
                   .running = running};
    for (std::size_t k = 0; k < kTopics; ++k) {
      alpha[k] = static_cast<float>(state_.priors.alpha[k]);
      inverse[k] = static_cast<float>(1 / (static_cast<double>(mine.totals[k]) + view.beta_sum));
    }
    Reciprocals reciprocals(padded);
    reciprocals.begin_clock(view);
    DocumentTopics counted(topology_, 0, lengths(s), kTopics, DocumentForm::dense);
    counted.count(documents, topics_[s]);
    for_each_word(s, [&](std::uint32_t word, std::size_t token, std::uint32_t tokens) {
      std::copy_n(mine.words[word].begin(), padded, row);
      std::vector<float> uniforms(tokens);
      fill_uniforms(draws, uniforms);
      Visit visit;
      visit.documents = documents.data() + token;
      visit.topics = topics_[s].data() + token;
      visit.tokens = tokens;
      visit.uniforms = uniforms.data();
      visit.beta = static_cast<float>(state_.priors.beta);
      visit.counts = row;
      kernels_.sample_dense(visit, view, counted.dense());
    });
  }
  std::vector<std::uint32_t> lengths(std::size_t s) const {
    const Axis& axis = state_.grid.documents();
    const auto first = axis.counts.begin() + axis.begin[s];
    return {first, first + axis.part_size(s)};
  }

  LdaState& state_;
  const Topology& topology_;
  const Kernels& kernels_;
  std::vector<std::vector<Topic>> topics_;  ///< by stripe
};

TEST(LdaDataParallel, follows_a_serial_program_over_plain_arrays) {
  const Shape shape{.threads = 2, .sampler = SamplerKind::dense};
  Fixture run = toy_run(shape);
  Oracle slow(run);
  run.run(3);
  for (Clock clock = 0; clock < 6; ++clock) slow.run_clock(clock);
  EXPECT_EQ(topics_of(run), slow.topics());
}

TEST(LdaDataParallel, one_worker_is_the_exact_sampler) {
  const Shape tables{.threads = 1, .workers = 1, .document_blocks = 1, .sampler = SamplerKind::dense};
  Shape rotation = tables;
  rotation.by = By::rotation;
  EXPECT_EQ(trained(tables), trained(rotation));
}

TEST(LdaDataParallel, bits_do_not_depend_on_threads_domains_and_plans) {
  for (const auto sampler : {std::optional<SamplerKind>{}, std::optional(SamplerKind::mh)}) {
    const std::vector<Topic> expected = trained({.threads = 1, .workers = 6, .sampler = sampler});
    for (const unsigned threads : {2U, 4U}) {
      EXPECT_EQ(trained({.threads = threads, .workers = 6, .sampler = sampler}), expected);
    }
    EXPECT_EQ(trained({.threads = 2, .workers = 6, .plan = false, .sampler = sampler}), expected);
    EXPECT_EQ(trained({.threads = 4, .workers = 6, .topology = "numa:2 core:2 pu:1", .sampler = sampler}), expected);
    EXPECT_NE(trained({.threads = 1, .workers = 5, .sampler = sampler}), expected) << "workers do change it";
  }
}

TEST(LdaDataParallel, counts_are_those_of_the_assignments_at_every_staleness) {
  for (const SamplerKind sampler : {SamplerKind::dense, SamplerKind::sparse, SamplerKind::mh}) {
    for (const Clock staleness : {0, 1, 4}) {
      Fixture run = toy_run({.threads = 4, .workers = 7, .staleness = staleness, .sampler = sampler});
      for (const Clock iterations : {1, 2, 12}) {
        run.run(iterations);
        static_cast<void>(run.trainee().evaluate(run.engine(), true));  // brings the counts of the table into the state
        EXPECT_EQ(run.state().contradiction(serial_for), "") << "staleness " << staleness;
      }
    }
  }
}

TEST(LdaDataParallel, goes_on_from_a_saved_state_to_the_same_bits) {
  Fixture first = toy_run({.threads = 2}), second = toy_run({.threads = 1});
  first.run(2);
  second.trainee().load_state(first.trainee().save_state());
  second.start(4);
  second.run(4);
  EXPECT_EQ(topics_of(second), trained({.threads = 1}));
}

TEST(LdaDataParallel, the_best_state_comes_back) {
  Fixture run = toy_run({.threads = 1});
  run.run(2);
  run.trainee().keep_best();
  const std::vector<Topic> best = topics_of(run);
  run.run(4);
  EXPECT_NE(topics_of(run), best);
  run.trainee().restore_best();
  EXPECT_EQ(topics_of(run), best);
  static_cast<void>(run.trainee().evaluate(run.engine(), true));
  EXPECT_EQ(run.state().contradiction(serial_for), "");
}

TEST(LdaDataParallel, learns_as_much_as_rotation_at_every_staleness) {
  const Corpus corpus = bars(5, 300, 50, 6);
  const auto likelihood = [&](const Shape& shape) {
    Fixture run = toy_run(shape, corpus);
    run.run(60);
    return -run.trainee().evaluate(run.engine(), true).objective;
  };
  const double exact = likelihood({.threads = 2, .by = By::rotation});
  for (const Clock staleness : {0, 1, 4}) {
    EXPECT_GT(likelihood({.threads = 4, .workers = 4, .staleness = staleness}), exact - 0.1) << staleness;
  }
}

TEST(LdaDataParallel, workers_without_documents_do_no_harm) {
  Fixture run = toy_run({.threads = 2, .workers = 8}, corpus_of({{0, 1}, {}, {1, 1, 1}}, 2));
  run.run(3);
  static_cast<void>(run.trainee().evaluate(run.engine(), true));
  EXPECT_EQ(run.state().contradiction(serial_for), "");
}

}  // namespace
}  // namespace orrery::lda
