// Topic models in training and back from the files: conservation, bits, recovery, edges.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

#include "algorithms/algorithm.h"
#include "algorithms/lda.h"
#include "algorithms/lda_fit_priors.h"
#include "algorithms/lda_model.h"
#include "algorithms/lda_topics.h"
#include "engine/checkpoint_store.h"
#include "engine/checksum.h"
#include "engine/data/packed_corpus.h"
#include "engine/error.h"
#include "tests/algorithms/lda_test_support.h"
#include "tests/engine/toy_programs.h"

namespace orrery::lda {
namespace {

namespace fs = std::filesystem;

TEST(LdaTraining, counts_are_those_of_the_assignments_after_every_clock) {
  const Corpus corpus = bars(5, 90, 40, 2);
  for (const Clock staleness : {0, 2}) {
    for (const bool sequential : {false, true}) {
      for (const std::optional<SamplerKind> kind :
           {std::optional<SamplerKind>{}, std::optional(SamplerKind::dense), std::optional(SamplerKind::sparse),
            std::optional(SamplerKind::mh)}) {
        TrainingPlan plan;
        plan.sampler = kind;
        plan.sequential = sequential;
        EngineOptions options;
        options.threads = 4;
        options.staleness = staleness;
        if (staleness > 0) options.consistency = Consistency::ssp;
        Fixture fixture(corpus, 80, 5, plan, symmetric_priors(80), options);
        for (Clock clock = 1; clock <= 4; ++clock) {
          fixture.run(clock);
          EXPECT_EQ(fixture.state().contradiction(serial_for), "") << "clock " << clock;
        }
        fixture.run(12);
        EXPECT_EQ(fixture.state().contradiction(serial_for), "");
      }
    }
  }
}

TEST(LdaTraining, counts_of_words_and_documents_are_those_of_the_assignments_after_every_unit) {
  for (const SamplerKind kind : {SamplerKind::dense, SamplerKind::sparse, SamplerKind::mh}) {
    TrainingPlan plan;
    plan.sampler = kind;
    Fixture fixture(bars(5, 60, 30, 2), 70, 3, plan, symmetric_priors(70), {}, 2);
    RotationSchedule schedule(3, 3, 1);
    for (Clock clock = 0; clock < 4; ++clock) {
      ClockPlan units;
      schedule.plan(clock, units);
      for (std::size_t u = 0; u < units.size(); ++u) {
        UnitContext context{.domain = 0, .worker = units.unit(u).worker, .clock = clock};
        fixture.trainee().run_unit(units.unit(u), context);
        // Totals come together at the end of the clock.
        EXPECT_THAT(fixture.state().contradiction(serial_for), testing::AnyOf("", testing::StartsWith("totals")));
      }
      for (WorkerId w = 0; w < 3; ++w) fixture.trainee().worker_ended(w, clock);
      fixture.trainee().commit(clock, {});
      EXPECT_EQ(fixture.state().contradiction(serial_for), "");
    }
  }
}

TEST(LdaTraining, document_blocks_cover_the_corpus_in_its_order_with_even_shares) {
  const Corpus corpus = bars(5, 90, 40, 2);
  const TokenGrid grid(corpus, {.document_blocks = 4, .workers = 3, .blocks = 3}, serial_for);
  ASSERT_EQ(grid.stripes(), 12U);
  std::uint64_t all = 0;
  for (std::size_t block = 0; block < 4; ++block) {
    std::uint64_t tokens = 0;
    for (std::size_t w = 0; w < 3; ++w) tokens += grid.stripe(grid.stripe_of(block, w)).tokens();
    EXPECT_NEAR(static_cast<double>(tokens), 900, 40);
    all += tokens;
    for (std::uint32_t id = grid.first_document(block); id < grid.first_document(block + 1); ++id) {
      EXPECT_EQ(grid.documents().part[id] / 3, block);
      EXPECT_EQ(grid.documents().counts[grid.documents().internal[id]], 40U);
    }
  }
  EXPECT_EQ(all, corpus.tokens);
  EXPECT_EQ(grid.first_document(4), 90U);
  // More blocks than documents: some are empty, none is lost.
  const TokenGrid few(corpus_of({{0, 1}, {}, {1, 1, 1}}, 2), {.document_blocks = 7, .workers = 2, .blocks = 2},
                      serial_for);
  EXPECT_EQ(few.first_document(7), 3U);
}

TEST(LdaTraining, where_documents_lie_changes_no_bit) {
  const Corpus corpus = bars(5, 90, 40, 2);
  for (const bool sequential : {false, true}) {
    for (const std::optional<SamplerKind> kind : {std::optional<SamplerKind>{}, std::optional(SamplerKind::mh)}) {
      for (const Clock staleness : {0, 2}) {
        TrainingPlan plan;
        plan.sampler = kind;
        plan.sequential = sequential;
        plan.fit_priors = staleness == 0;
        EngineOptions options;
        options.threads = staleness == 0 ? 4 : 1;
        options.staleness = staleness;
        if (staleness > 0) options.consistency = Consistency::ssp;
        std::vector<Topic> expected;
        std::vector<double> likelihoods;
        for (const std::size_t resident : {4U, 0U, 1U, 3U}) {
          const Streaming streaming{fs::temp_directory_path(), resident};
          Fixture fixture(corpus, 80, 3, plan, symmetric_priors(80), options, 4, resident < 4 ? &streaming : nullptr);
          fixture.run(3);
          EXPECT_EQ(fixture.state().contradiction(serial_for), "");
          fixture.run(plan.fit_priors ? 27 : 9);  // priors are fitted late
          EXPECT_EQ(fixture.state().contradiction(serial_for), "");
          if (resident < 4) {
            EXPECT_GT(fixture.state().stream->bytes_written(), 0U);
          }
          const Evaluation now = fixture.trainee().evaluate(fixture.engine(), true);
          EXPECT_DOUBLE_EQ(-now.objective * static_cast<double>(corpus.tokens), fixture.joint());
          std::vector<Topic> topics;
          fixture.state().for_each_document_block(serial_for, [&](std::size_t block) {
            for (std::size_t w = 0; w < 3; ++w) {
              const Stripe& stripe = fixture.state().grid.stripe(fixture.state().grid.stripe_of(block, w));
              topics.insert(topics.end(), stripe.topics.begin(), stripe.topics.end());
            }
          });
          likelihoods.push_back(now.objective);
          if (resident == 4) expected = topics;
          EXPECT_EQ(topics, expected) << resident << " blocks in memory";
        }
        EXPECT_EQ(likelihoods, std::vector<double>(4, likelihoods[0]));
      }
    }
  }
}

TEST(LdaTraining, auto_goes_from_dense_to_sparse_as_documents_lose_topics) {
  TrainingPlan plan;
  Fixture fixture(bars(6, 60, 400, 4), 160, 2, plan, symmetric_priors(160, 0.02));
  fixture.run(1);
  EXPECT_EQ(fixture.state().documents[0]->form(), DocumentForm::dense);
  fixture.run(60);
  EXPECT_EQ(fixture.state().documents[0]->form(), DocumentForm::listed);
  EXPECT_EQ(choose_sampler(128, 1), SamplerKind::dense);
  EXPECT_EQ(choose_sampler(1000, 30), SamplerKind::sparse);
  EXPECT_EQ(choose_sampler(30000, 29000), SamplerKind::dense);
}

TEST(LdaTraining, auto_takes_mh_while_documents_have_thousands_of_topics) {
  EXPECT_EQ(choose_sampler(100000, 7000), SamplerKind::mh);
  EXPECT_EQ(choose_sampler(100000, 3000), SamplerKind::sparse);
  constexpr std::size_t kMany = 50000;
  Fixture fixture(bars(4, 2, 6000, 4), kMany, 1, {}, symmetric_priors(kMany, 0.01));
  EXPECT_EQ(choose_sampler(kMany, fixture.state().documents[0]->topics_per_token()), SamplerKind::mh);
  fixture.run(2);
  EXPECT_EQ(choose_sampler(kMany, fixture.state().documents[0]->topics_per_token()), SamplerKind::sparse);
  EXPECT_EQ(fixture.state().contradiction(serial_for), "");
  fixture.run(3);
  EXPECT_EQ(fixture.state().contradiction(serial_for), "");
}

TEST(LdaTraining, bars_are_recovered) {
  TrainingPlan plan;
  Fixture fixture(bars(5, 300, 50, 6), 10, 4, plan, symmetric_priors(10, 0.3));
  fixture.run(150);
  const auto words = top_words(freeze(fixture.state()), 5);
  std::set<std::vector<std::uint32_t>> found;
  for (auto topic : words) {
    std::sort(topic.begin(), topic.end());
    found.insert(topic);
  }
  for (std::uint32_t b = 0; b < 5; ++b) {
    std::vector<std::uint32_t> row, column;
    for (std::uint32_t i = 0; i < 5; ++i) {
      row.push_back(b * 5 + i);
      column.push_back(i * 5 + b);
    }
    EXPECT_TRUE(found.contains(row)) << "row " << b;
    EXPECT_TRUE(found.contains(column)) << "column " << b;
  }
}

TEST(LdaTraining, fitting_priors_raises_the_likelihood_of_the_assignments) {
  TrainingPlan plan;
  Fixture fixture(bars(5, 200, 50, 8), 20, 4, plan, symmetric_priors(20, 1.0, 0.5));
  fixture.run(30);
  const double before = fixture.joint();
  fit_priors(fixture.state());
  EXPECT_GT(fixture.joint(), before);
  const double once = fixture.joint();
  fit_priors(fixture.state());
  EXPECT_GE(fixture.joint(), once - 1e-6);
}

TEST(LdaCounts, memory_grows_with_tokens_and_not_with_topics_times_words) {
  constexpr std::size_t kMillion = 1000000;
  EXPECT_LE(WordTopics::row_bytes(10, kMillion), 84U);
  EXPECT_EQ(WordTopics::row_bytes(0, kMillion), 4U);
  EXPECT_EQ(WordTopics::row_bytes(2000000, kMillion), 4 * kMillion);
  EXPECT_LE(DocumentTopics::bytes_of_list(7, kMillion), 128U);
}

TEST(LdaCounts, totals_count_beyond_32_bits_and_take_each_move_once) {
  constexpr std::int64_t kMany = (std::int64_t{1} << 31) + 5;
  TopicTotals totals(2, 0, 2);
  totals.reset({kMany, 3});
  totals.hand_over(0, 0, {-1, 1});
  totals.hand_over(0, 1, {-1, 1});  // runs ahead
  std::vector<std::int64_t> seen(2);
  totals.start_clock(0, seen);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{kMany - 2, 5}));
  totals.start_clock(1, seen);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{kMany, 3}));
  totals.hand_over(1, 0, {5, -3});
  totals.commit(0);
  EXPECT_EQ(totals.committed(), (std::vector<std::int64_t>{kMany + 4, 1}));
  totals.start_clock(0, seen);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{kMany + 3, 2}));
}

TEST(LdaCounts, rows_keep_their_counts_from_one_form_to_the_other) {
  const Topology topology = Topology::synthetic("numa:1 core:1 pu:1");  // documents keep a reference
  const std::vector<std::uint32_t> lengths{5, 0, 40};
  DocumentTopics documents(topology, 0, lengths, 30, DocumentForm::listed);
  for (const Topic topic : {7U, 3U, 7U, 29U, 0U}) documents.add(0, topic);
  for (std::uint32_t i = 0; i < 40; ++i) documents.add(2, i % 30);
  const auto all = [&] {
    std::map<std::pair<std::size_t, Topic>, std::int32_t> counts;
    for (std::size_t d = 0; d < 3; ++d) {
      documents.for_each_topic(d, [&](Topic topic, std::int32_t count) { counts[{d, topic}] = count; });
    }
    return counts;
  };
  const auto before = all();
  EXPECT_EQ(before.size(), 34U);
  EXPECT_EQ(before.at({0, 7}), 2);
  documents.convert(DocumentForm::dense);
  EXPECT_EQ(all(), before);
  documents.convert(DocumentForm::listed);
  EXPECT_EQ(all(), before);
}

TEST(LdaCounts, memory_of_other_documents_holds_nothing_of_them) {
  const Topology topology = Topology::synthetic("numa:1 core:1 pu:1");
  const auto counted = [](DocumentTopics& documents, const std::vector<Topic>& topics) {
    std::vector<std::uint32_t> of_tokens;
    for (std::uint32_t d = 0; d < documents.documents(); ++d) of_tokens.insert(of_tokens.end(), documents.length(d), d);
    documents.count(of_tokens, topics);
    documents.list_tokens(of_tokens);
    return documents.pack();
  };
  const std::vector<std::uint32_t> many{9, 3, 50}, few{2, 0, 4};
  const std::vector<Topic> of_few{7, 3, 28, 28, 1, kNoTopic};
  for (const DocumentForm form : {DocumentForm::dense, DocumentForm::listed}) {
    DocumentTopics used(topology, 0, many, 30, form), fresh(topology, 0, few, 30, form);
    std::vector<Topic> of_many(62);
    std::iota(of_many.begin(), of_many.end(), Topic{0});
    for (Topic& topic : of_many) topic %= 30;
    static_cast<void>(counted(used, of_many));
    used.reuse(few);
    EXPECT_EQ(counted(used, of_few), counted(fresh, of_few));
    EXPECT_EQ(used.form(), form);
    EXPECT_EQ(used.tokens_of(2).size(), 4U);
    EXPECT_EQ(used.tokens_of(2).front(), 2U);
  }
}

TEST(LdaHeldOut, tokens_go_to_the_halves_in_turn) {
  // Document 0: a a a b; observed a, a; scored a, b. One token: nothing to score. None: nothing at all.
  const Completion completion(corpus_of({{0, 0, 0, 1}, {1}, {}}, 2));
  EXPECT_EQ(completion.tokens(), 2U);
  FrozenTopics model;  // one topic, φ = (3/4, 1/4) up to smoothing
  model.begin = {0, 1, 2};
  model.topics = {0, 0};
  model.shares = {0.74F, 0.24F};
  model.rates = {1.0};
  model.alpha = {0.1};
  model.beta = 0.01;
  EXPECT_NEAR(completion.log_likelihood(model, serial_for), std::log(0.75) + std::log(0.25), 1e-6);
}

class LdaFiles : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("orrery-lda-" + std::to_string(getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  /// Bars as text: words are w0, w1, …; with `offset` the documents differ.
  std::string write_bars(const std::string& name, std::size_t documents, std::uint64_t seed) const {
    const Corpus corpus = bars(5, documents, 40, seed);
    std::ofstream out(path(name));
    for (std::size_t d = 0; d < corpus.documents(); ++d) {
      for (auto c = corpus.starts[d]; c < corpus.starts[d + 1]; ++c) {
        for (std::uint32_t i = 0; i < corpus.counts[c]; ++i) out << 'w' << corpus.words[c] << ' ';
      }
      out << '\n';
    }
    return path(name);
  }

  struct Outcome {
    std::uint64_t checksum = 0;  ///< of the assignments and the priors
    TrainResult result;
    std::vector<std::string> warnings;
    bool streamed = false;
  };
  struct Setting {
    std::map<std::string, std::string> params{{"topics", "10"}};
    EngineOptions options{};
    WorkerId workers = 6;
    Clock iterations = 6;
    std::string valid{}, init{}, schedule = "auto";
    std::string out{};  ///< where a model is written; empty: none is
    std::uint64_t memory_limit = 0;
    Clock patience = 0;
    const std::vector<StateSection>* resume = nullptr;
  };
  /// Keeps what a checkpoint after every third iteration holds.
  class Keeper : public TrainingObserver {
   public:
    void checkpoint(Clock iteration, std::vector<StateSection>&& state) override {
      for (StateSection& section : state) {
        if (!section.source) continue;
        section.source([&](std::span<const std::byte> piece) {
          section.bytes.insert(section.bytes.end(), piece.begin(), piece.end());
        });
        section.source = nullptr;
      }
      kept[iteration] = std::move(state);
    }
    std::map<Clock, std::vector<StateSection>> kept;
  };

  Outcome train_model(const std::string& data, const Setting& setting, Keeper* keeper = nullptr) const {
    Engine engine(setting.options);
    return train_on(engine, data, setting, keeper);
  }
  /// The same on several nodes, each a thread of one process: what the first of them comes to.
  Outcome train_on_cluster(NodeId nodes, const std::string& data, const Setting& setting, Keeper* keeper) const {
    Outcome first;
    toy::on_cluster(nodes, setting.options, [&](NodeId node, Engine& engine) {
      Keeper others;
      Outcome outcome = train_on(engine, data, setting, node == 0 ? keeper : &others);
      if (node == 0) first = std::move(outcome);
    });
    return first;
  }
  Outcome train_on(Engine& engine, const std::string& data, const Setting& setting, Keeper* keeper) const {
    const auto algorithm = make_lda();
    for (const auto& [name, value] : setting.params) algorithm->params().set(name, value);
    DataRequest request;
    request.path = path(data);
    if (!setting.valid.empty()) request.valid = path(setting.valid);
    if (!setting.init.empty()) request.init = path(setting.init);
    request.memory_limit = setting.memory_limit;
    request.schedule = setting.schedule;
    request.scratch = directory_;
    algorithm->load(request, engine);
    const Training training = algorithm->prepare(engine, setting.workers, 1, setting.schedule);
    TrainOptions options;
    options.workers = setting.workers;
    options.stop.iterations = setting.iterations;
    options.has_valid = !setting.valid.empty();
    options.clocks_per_iteration = training.clocks_per_iteration;
    options.stop.patience = setting.patience;
    options.checkpoint_every = keeper != nullptr ? 3 : 0;
    Keeper silent;
    const std::atomic<bool> interrupted{false};
    Outcome outcome;
    outcome.result = train(engine, *training.schedule, *training.trainee, options, keeper != nullptr ? *keeper : silent,
                           interrupted, setting.resume);
    outcome.warnings = engine.warnings();
    outcome.streamed = !training.sections_on_disk.empty();
    if (engine.transport().nodes() == 1) {
      Checksum state;
      for (const StateSection& section : training.trainee->save_state()) {
        section.read([&](std::span<const std::byte> bytes) { state.update(bytes); });
      }
      outcome.checksum = state.value();
    }
    if (setting.out.empty() || engine.transport().node() != 0) return outcome;
    fs::create_directories(path(setting.out));
    ModelWriter writer(path(setting.out));
    algorithm->write_model(writer, engine);
    writer.finish("{\"algorithm\":\"lda\"}");
    return outcome;
  }

  fs::path directory_;
};

TEST_F(LdaFiles, the_same_workers_give_the_same_bits_on_any_threads_and_domains) {
  write_bars("b.txt", 100, 1);
  for (const char* sampler : {"auto", "sparse", "mh"}) {
    Setting setting;
    setting.params = {{"topics", "70"}, {"sampler", sampler}};
    setting.options.threads = 1;
    const std::uint64_t expected = train_model("b.txt", setting).checksum;
    for (const unsigned threads : {2U, 4U, 8U}) {
      setting.options.threads = threads;
      EXPECT_EQ(train_model("b.txt", setting).checksum, expected) << threads;
    }
    setting.options.topology = "numa:2 core:2 pu:1";
    EXPECT_EQ(train_model("b.txt", setting).checksum, expected);
    setting.workers = 3;
    EXPECT_NE(train_model("b.txt", setting).checksum, expected) << "other workers, other grid";
  }
}

TEST_F(LdaFiles, a_resumed_training_ends_with_the_same_bits) {
  write_bars("b.txt", 100, 1);
  for (const char* sampler : {"auto", "sparse", "mh"}) {
    Setting setting;
    setting.params = {{"topics", "70"}, {"sampler", sampler}, {"start", "sequential"}, {"fit-priors", "true"}};
    setting.iterations = 24;
    Keeper keeper;
    const std::uint64_t expected = train_model("b.txt", setting, &keeper).checksum;
    for (const Clock from : {3, 21}) {
      setting.resume = &keeper.kept.at(from);
      setting.options.threads = 3;
      EXPECT_EQ(train_model("b.txt", setting).checksum, expected) << sampler << " from " << from;
    }
  }
}

TEST_F(LdaFiles, nodes_change_no_bit_and_a_run_goes_on_on_others) {
  write_bars("b.txt", 120, 1);
  write_bars("t.txt", 40, 2);
  pack_corpus(read_corpus(path("b.txt")), path("b.pack"));
  for (const std::map<std::string, std::string>& more :
       {std::map<std::string, std::string>{{"sampler", "auto"}},
        std::map<std::string, std::string>{{"sampler", "mh"}, {"document-blocks", "3"}, {"start", "sequential"}},
        std::map<std::string, std::string>{{"sampler", "sparse"}, {"keep-documents", "false"}},
        std::map<std::string, std::string>{{"sampler", "auto"}, {"document-blocks", "2"}}}) {
    Setting setting;
    setting.schedule = more.contains("document-blocks") && !more.contains("start") ? "data" : "auto";
    setting.params = more;
    setting.params.insert({"topics", "40"});
    setting.valid = "t.txt";
    setting.iterations = 9;
    setting.patience = 1;
    setting.out = "one";
    Keeper of_one, of_three, of_two;
    const Outcome one = train_model("b.txt", setting, &of_one);
    setting.out = "three";
    setting.options.threads = 1;
    const Outcome three = train_on_cluster(3, "b.pack", setting, &of_three);
    EXPECT_EQ(three.result.iterations, one.result.iterations);
    EXPECT_EQ(three.result.final.extra, one.result.final.extra);
    EXPECT_EQ(ModelReader(path("three")).model_checksum(), ModelReader(path("one")).model_checksum());
    for (std::size_t i = 0; i < of_one.kept.at(3).size(); ++i) {
      const StateSection& expected = of_one.kept.at(3)[i];
      if (expected.name == "training") continue;  // has seconds
      EXPECT_TRUE(of_three.kept.at(3)[i].bytes == expected.bytes) << expected.name;
    }
    setting.resume = &of_three.kept.at(3);
    setting.out = "two";
    train_on_cluster(2, "b.txt", setting, &of_two);
    EXPECT_EQ(ModelReader(path("two")).model_checksum(), ModelReader(path("one")).model_checksum());
  }
}

TEST_F(LdaFiles, a_streamed_corpus_gives_the_model_of_one_in_memory) {
  write_bars("b.txt", 120, 1);
  write_bars("t.txt", 40, 2);
  pack_corpus(read_corpus(path("b.txt")), path("b.pack"));
  struct Case {
    const char* sampler;
    std::map<std::string, std::string> more;
    std::string init;
    Clock patience;
  };
  Setting first;
  first.params = {{"topics", "20"}};
  first.out = "before";
  train_model("b.txt", first);
  for (const Case& c :
       {Case{"auto", {{"fit-priors", "true"}, {"alpha", "1"}}, "", 0},
        Case{"mh", {{"start", "sequential"}, {"min-documents", "20"}}, "", 2}, Case{"sparse", {}, "before", 0}}) {
    Setting setting;
    setting.params = c.more;
    setting.params.insert({{"topics", "20"}, {"sampler", c.sampler}, {"document-blocks", "5"}});
    setting.iterations = 22;
    setting.valid = "t.txt";
    setting.init = c.init;
    setting.patience = c.patience;
    setting.out = "memory";
    const Outcome expected = train_model("b.txt", setting);
    EXPECT_FALSE(expected.streamed);
    setting.memory_limit = 1;
    setting.out = "stream";
    setting.options.threads = 2;
    const Outcome streamed = train_model("b.pack", setting);
    EXPECT_TRUE(streamed.streamed);
    EXPECT_EQ(streamed.checksum, expected.checksum) << c.sampler;
    EXPECT_EQ(streamed.result.iterations, expected.result.iterations);
    EXPECT_EQ(streamed.result.final.objective, expected.result.final.objective);
    EXPECT_EQ(streamed.result.final.valid, expected.result.final.valid);
    EXPECT_EQ(streamed.result.final.extra, expected.result.final.extra);
    EXPECT_EQ(ModelReader(path("stream")).model_checksum(), ModelReader(path("memory")).model_checksum()) << c.sampler;
  }
}

TEST_F(LdaFiles, a_training_goes_on_from_a_checkpoint_in_memory_and_streamed) {
  write_bars("b.txt", 120, 1);
  write_bars("t.txt", 40, 2);
  pack_corpus(read_corpus(path("b.txt")), path("b.pack"));
  Setting setting;
  setting.params = {{"topics", "20"}, {"document-blocks", "5"}};
  setting.iterations = 9;
  setting.valid = "t.txt";
  setting.patience = 50;
  Keeper keeper, stream_keeper;
  const std::uint64_t expected = train_model("b.pack", setting, &keeper).checksum;
  setting.memory_limit = 1;
  EXPECT_EQ(train_model("b.pack", setting, &stream_keeper).checksum, expected);
  for (const Keeper* from : {&keeper, &stream_keeper}) {
    const Checkpoint checkpoint{.clock = 6, .sections = from->kept.at(6)};
    write_checkpoint(path("c"), {}, checkpoint);
    for (const std::uint64_t limit : {0U, 1U}) {
      setting.memory_limit = limit;
      const Checkpoint read = read_checkpoint(
          path("c"), {},
          limit == 1 ? std::vector<std::string>{"assignments", "best-assignments"} : std::vector<std::string>{});
      setting.resume = &read.sections;
      EXPECT_EQ(train_model("b.pack", setting).checksum, expected) << limit;
    }
  }
}

TEST_F(LdaFiles, a_limit_is_kept_as_blocks_in_memory_allow) {
  write_bars("b.txt", 120, 1);
  pack_corpus(read_corpus(path("b.txt")), path("b.pack"));
  const auto algorithm = make_lda();
  algorithm->params().set("topics", "10");
  algorithm->params().set("document-blocks", "5");
  Engine engine{EngineOptions{}};
  DataRequest request;
  request.path = path("b.pack");
  algorithm->load(request, engine);
  const std::uint64_t all = algorithm->memory(4).total();
  request.memory_limit = all;
  const auto fits = make_lda();
  fits->params().set("topics", "10");
  fits->params().set("document-blocks", "5");
  fits->load(request, engine);
  EXPECT_FALSE(fits->prepare(engine, 4, 1, "auto").schedule_reason.ends_with("streamed from disk"));
  request.memory_limit = all - 1;
  const auto streams = make_lda();
  streams->params().set("topics", "10");
  streams->params().set("document-blocks", "5");
  streams->load(request, engine);
  EXPECT_TRUE(streams->prepare(engine, 4, 1, "auto").schedule_reason.ends_with("streamed from disk"));
}

TEST_F(LdaFiles, held_out_perplexity_falls_and_evaluate_says_the_same) {
  write_bars("b.txt", 200, 1);
  write_bars("t.txt", 50, 2);
  Setting setting;
  setting.valid = "t.txt";
  setting.iterations = 1;
  const double early = *train_model("b.txt", setting).result.final.valid;
  setting.iterations = 60;
  setting.out = "run";
  const double late = *train_model("b.txt", setting).result.final.valid;
  EXPECT_LT(late, 0.8 * early);
  Engine engine{EngineOptions{}};
  const LdaModel model{ModelReader(path("run"))};
  EXPECT_NEAR(number_in(model.evaluate(path("t.txt"), "", engine), "perplexity"), late, 1e-9 * late);
}

TEST_F(LdaFiles, inferred_mixtures_of_training_documents_are_those_of_training) {
  write_bars("b.txt", 200, 1);
  Setting setting;
  setting.iterations = 80;
  setting.out = "run";
  train_model("b.txt", setting);
  Engine engine{EngineOptions{}};
  const ModelReader reader(path("run"));
  const LdaModel model(reader);
  std::ostringstream lines;
  model.infer(path("b.txt"), "", engine, lines);
  const auto begin = reader.read<std::int64_t>("document_begin");
  const auto topics = reader.read<std::uint32_t>("document_topics"),
             counts = reader.read<std::uint32_t>("document_counts");
  std::istringstream in(lines.str());
  double distance = 0;
  for (std::size_t d = 0; d + 1 < begin.size(); ++d) {
    std::size_t number = 0;
    in >> number;
    ASSERT_EQ(number, d + 1);
    std::vector<double> mixture(10), trained(10, 0.1 / 41);
    for (double& share : mixture) in >> share;
    EXPECT_NEAR(std::accumulate(mixture.begin(), mixture.end(), 0.0), 1, 1e-5);
    for (auto j = begin[d]; j < begin[d + 1]; ++j) {
      trained[topics[static_cast<std::size_t>(j)]] += counts[static_cast<std::size_t>(j)] / 41.0;
    }
    for (std::size_t k = 0; k < 10; ++k) distance += 0.5 * std::abs(mixture[k] - trained[k]) / 200;
  }
  EXPECT_LT(distance, 0.1);
}

TEST_F(LdaFiles, a_model_verifies_and_a_changed_corpus_does_not) {
  write_bars("b.txt", 60, 1);
  Setting setting;
  setting.out = "run";
  const Outcome outcome = train_model("b.txt", setting);
  Engine engine{EngineOptions{}};
  const LdaModel model{ModelReader(path("run"))};
  Model::Run run;
  run.data = path("b.txt");
  run.value = outcome.result.final.objective;
  const auto checks = model.verify(run, engine);
  EXPECT_EQ(checks.size(), 5U);
  for (const Check& check : checks) EXPECT_TRUE(check.passed) << check.what << ": " << check.detail;
  std::ofstream(path("b.txt"), std::ios::app) << "w1 w1 w2\n";
  const auto after = model.verify(run, engine);
  EXPECT_FALSE(std::all_of(after.begin(), after.end(), [](const Check& check) { return check.passed; }));
}

TEST_F(LdaFiles, a_warm_start_on_a_grown_corpus_begins_where_the_model_is) {
  write_bars("b.txt", 200, 1);
  Setting setting;
  setting.iterations = 60;
  setting.out = "run";
  const double trained = train_model("b.txt", setting).result.final.objective;
  std::ofstream(path("b.txt"), std::ios::app) << "w1 w2 w3 novel words\nnovel w6 w7 w8\n";
  setting.iterations = 0;
  setting.out = "";
  const double cold = train_model("b.txt", setting).result.final.objective;
  setting.init = "run";
  const Outcome warm = train_model("b.txt", setting);
  EXPECT_LT(warm.result.final.objective, trained + 0.25 * (cold - trained));
  EXPECT_TRUE(std::any_of(warm.warnings.begin(), warm.warnings.end(), [](const std::string& text) {
    return text.find("2 of 27 words are new") != std::string::npos;
  }));
}

TEST_F(LdaFiles, edges_of_corpora_are_no_errors) {
  write("edges.txt", "a\n\na b c\n\na a a a\nb a\n");
  for (const char* sampler : {"auto", "sparse", "mh"}) {
    for (const char* topics : {"1", "3", "500"}) {
      Setting setting;
      setting.params = {{"topics", topics}, {"sampler", sampler}};
      for (const WorkerId workers : {1U, 4U}) {
        setting.workers = workers;
        const Outcome outcome = train_model("edges.txt", setting);
        EXPECT_TRUE(std::isfinite(outcome.result.final.objective));
        const bool warned = std::any_of(outcome.warnings.begin(), outcome.warnings.end(), [](const std::string& text) {
          return text.find("most will stay empty") != std::string::npos;
        });
        EXPECT_EQ(warned, std::string(topics) == "500");
      }
    }
  }
}

TEST_F(LdaFiles, words_are_left_out_by_list_and_by_documents) {
  write("c.txt", "the cat sat\nthe dog sat\nthe bird flew\n");
  write("stop.txt", "bird\n");
  Setting setting;
  setting.out = "run";
  setting.params = {{"topics", "2"}, {"stop-words", path("stop.txt")}, {"max-documents", "0.9"}};
  train_model("c.txt", setting);
  EXPECT_EQ(ModelReader(path("run")).read_text("vocabulary"), (std::vector<std::string>{"cat", "sat", "dog", "flew"}));
  setting.params["min-documents"] = "2";
  train_model("c.txt", setting);
  EXPECT_EQ(ModelReader(path("run")).read_text("vocabulary"), (std::vector<std::string>{"sat"}));
  setting.params["min-documents"] = "3";
  EXPECT_THROW(train_model("c.txt", setting), Error);
}

TEST_F(LdaFiles, priors_may_come_from_files) {
  write_bars("b.txt", 60, 1);
  write("alpha.txt", "1\n0.5\n0.25\n");
  Setting setting;
  setting.out = "run";
  setting.params = {{"topics", "3"}, {"alpha", path("alpha.txt")}};
  train_model("b.txt", setting);
  EXPECT_EQ(ModelReader(path("run")).read<double>("alpha"), (std::vector<double>{1, 0.5, 0.25}));
  write("alpha.txt", "1\n0\n0.25\n");
  EXPECT_THROW(train_model("b.txt", setting), Error);
  write("alpha.txt", "1\n1\n");
  EXPECT_THROW(train_model("b.txt", setting), Error);
  setting.params = {{"topics", "3"}, {"beta", "-1"}};
  EXPECT_THROW(train_model("b.txt", setting), Error);
}

}  // namespace
}  // namespace orrery::lda
