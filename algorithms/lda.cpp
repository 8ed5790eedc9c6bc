#include "algorithms/lda.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "algorithms/lda_data_parallel.h"
#include "algorithms/lda_hybrid.h"
#include "algorithms/lda_model.h"
#include "algorithms/lda_rotation.h"
#include "engine/data/corpus.h"
#include "engine/data/corpus_filter.h"
#include "engine/data/packed_corpus.h"
#include "engine/engine.h"
#include "engine/error.h"

namespace orrery {
namespace lda {
namespace {

AlgorithmInfo make_info() {
  AlgorithmInfo info;
  info.name = "lda";
  info.title = "topic models: latent Dirichlet allocation of documents";
  info.objective =
      "-log p(words, topics of tokens) per token with mixtures and topics integrated out: theta_d ~ Dirichlet(alpha), "
      "phi_k ~ Dirichlet(beta), topic ~ theta_d, word ~ phi_topic";
  info.method =
      "collapsed Gibbs sampling, p(k) ~ (n_dk + alpha_k)(n_kw + beta)/(n_k + sum of beta): documents stay with their "
      "worker, blocks of words rotate; units that run together share no document and no word, and the totals n_k are "
      "brought up to date between iterations. With schedule data, counts of words are rows of a table that workers "
      "read "
      "and add to under any consistency, once for each block of documents. With --groups each group of workers rotates "
      "a "
      "replica of the counts, and takes in the others' moves once for each block of documents";
  info.reference =
      "Griffiths, Steyvers, PNAS 2004 (sampler); Yao et al., KDD 2009 (sparse); Yuan et al., WWW 2015 (mh); Yu et al., "
      "WWW 2015 (rotation); Newman et al., JMLR 2009 (schedules data and hybrid); Minka 2000, Wallach 2008 "
      "(fit-priors)";
  info.data =
      "corpora (UCI docword, text with a document a line, svmlight with counts, any of them packed by `orrery data "
      "pack`)";
  info.metric = "perplexity";
  info.smaller_is_better = true;
  info.schedules = {"rotation", "data", "hybrid"};
  return info;
}

/// Everything a training holds once the corpus is laid out. Parts refer to each other: never moved.
struct Prepared {
  Prepared(TokenGrid&& grid, const Topology& topology, const WorkerMap& map, std::size_t topics, Priors&& priors,
           const Streaming* streaming)
      : state(std::move(grid), topology, map, topics, std::move(priors), streaming) {}
  LdaState state;
  std::unique_ptr<Schedule> schedule;
  std::unique_ptr<LdaTrainee> trainee;
};

class TopicModel final : public Algorithm {
 public:
  TopicModel() : info_(make_info()), param_set_("lda") {
    param_set_.add("topics", params_.topics, "number of topics K", between(1, 16777216))
        .add(
            "alpha", params_.alpha,
            "prior of a topic in a document: a number, or a file with one for each topic; small: few topics a document")
        .add("beta", params_.beta,
             "prior of a word in a topic: a number, or a file with one for each word; small: few words a topic")
        .add_choice(
            "sampler", params_.sampler,
            "dense: exact, looks at all topics; sparse: exact, at those of the document; mh: "
            "Metropolis-Hastings, the same cost for any number of topics; auto: whichever the counts make quicker, mh "
            "where documents have thousands of topics",
            {{"auto", SamplerChoice::by_counts},
             {"dense", SamplerChoice::dense},
             {"sparse", SamplerChoice::sparse},
             {"mh", SamplerChoice::mh}})
        .add("mh-steps", params_.mh_steps, "sampler mh: pairs of proposals for a token in an iteration", between(1, 64))
        .add_choice("start", params_.start,
                    "first topics of tokens: random, or sequential, each from those before it; auto: sequential above "
                    "256 topics, with schedules data and hybrid random",
                    {{"auto", Start::by_topics}, {"random", Start::random}, {"sequential", Start::sequential}})
        .add("fit-priors", params_.fit_priors,
             "fit alpha (a value for each topic) and a symmetric beta to the counts as training goes on")
        .add("vocab", params_.vocabulary,
             "file with a word a line: names the words of docword and svmlight, fixes those of text")
        .add("stop-words", params_.stop_words, "file with a word a line: these are left out")
        .add("min-documents", params_.least_documents, "words of fewer documents are left out")
        .add("max-documents", params_.largest_share, "words of a larger share of the documents are left out",
             above_to(0, 1))
        .add("keep-case", params_.keep_case, "text: do not lower the letters A to Z")
        .add("keep-documents", params_.keep_documents, "keep the topics of the training documents with the model")
        .add(
            "document-blocks", params_.document_blocks,
            "parts that the documents are visited in, one after the other; a packed corpus that does not fit in memory "
            "is streamed by them; with schedules data and hybrid the clocks of an iteration; auto: one for each 4 "
            "million tokens, at most 16",
            between(1, 4096));
  }

  const AlgorithmInfo& info() const override { return info_; }
  ParamSet& params() override { return param_set_; }
  StopRules default_stop() const override {
    StopRules stop;
    stop.iterations = 100;
    return stop;
  }

  void check(const DataRequest& request) const override;
  /// Fitting priors takes the counts of all documents at once.
  bool runs_on_several_nodes(const std::string&) const override { return !params_.fit_priors; }
  void load(const DataRequest& request, Engine& engine) override;
  DataSummary data_summary() const override;
  WorkerId default_workers() const override;
  MemoryEstimate memory(WorkerId workers) const override;
  Training prepare(Engine& engine, WorkerId workers, std::uint64_t seed, const std::string& schedule) override;
  Training prepare_rotation(Engine& engine, const WorkerMap& map, std::uint64_t seed);
  Training prepare_tables(Engine& engine, const WorkerMap& map, std::uint64_t seed);
  void write_model(ModelWriter& writer, Engine& engine) const override;

 private:
  CorpusData read(const std::string& path, const std::string& format, Engine& engine) const;
  CorpusFilter filter() const;
  void load_whole(const DataRequest& request, Engine& engine);
  void load_packed(const DataRequest& request);
  void load_valid(const DataRequest& request, Engine& engine);
  std::size_t document_blocks() const;
  std::size_t blocks_for(WorkerId workers) const;
  void warn_of_hot_word(Engine& engine) const;
  void add_common(WorkerId workers, MemoryEstimate& estimate) const;
  std::uint64_t document_row_bytes() const;
  MemoryEstimate memory_of_all(WorkerId workers) const;
  MemoryEstimate memory_of_stream(WorkerId workers, std::size_t resident) const;
  std::optional<std::size_t> resident_blocks(WorkerId workers) const;
  Priors make_priors() const;
  Priors priors_by_internal_word(const TokenGrid& grid) const;
  bool sequential() const;
  void lay_out(LdaState& state, std::uint64_t seed, Engine& engine) const;
  std::string sampler_text() const;
  TrainingPlan training_plan(std::uint64_t seed, Engine& engine) const;

  AlgorithmInfo info_;
  LdaParams params_;
  ParamSet param_set_;
  CorpusData data_;                       ///< of a packed corpus only what is said about it
  std::unique_ptr<PackedCorpus> packed_;  ///< read block by block
  bool on_tables_ = false;                ///< schedule data
  std::uint32_t groups_ = 1;              ///< above 1: schedule hybrid
  std::vector<std::uint64_t> lengths_, frequencies_;
  std::uint64_t documents_ = 0, longest_document_ = 0, tokens_ = 0, memory_limit_ = 0, nodes_ = 1;
  std::filesystem::path scratch_;
  WordNames names_;
  Completion held_out_;
  std::optional<std::string> init_;
  std::uint64_t word_row_bytes_ = 0, frozen_bytes_ = 0, document_list_bytes_ = 0;
  std::unique_ptr<Prepared> prepared_;
};

void TopicModel::check(const DataRequest& request) const {
  if (!request.format.empty() && !is_corpus_format(parse_format(request.format))) {
    throw usage_error("--format: lda reads docword, text, svmlight or packed, not " + request.format);
  }
  if (param_set_.was_set("mh-steps") && params_.sampler != SamplerChoice::mh) {
    throw usage_error("--mh-steps needs --sampler mh");
  }
  if (params_.start == Start::sequential && (request.schedule == "data" || request.groups > 1)) {
    throw usage_error(std::string("--start sequential: ") +
                      (request.groups > 1 ? "every group" : "by schedule data every worker") +
                      " would number its topics by itself, for none sees the others' first tokens; expected random, or "
                      "--schedule rotation");
  }
  if (!request.init) return;
  if (param_set_.was_set("start")) throw usage_error("--start: with --init the model gives the first topics");
  const std::size_t topics_before = topics_of_model(ModelReader(*request.init));
  if (topics_before == params_.topics) return;
  throw usage_error("--init: the model has " + std::to_string(topics_before) + " topics, this run has " +
                    std::to_string(params_.topics));
}

CorpusData TopicModel::read(const std::string& path, const std::string& format, Engine& engine) const {
  CorpusOptions options;
  options.read.parallel = engine.parallel_for_function();
  options.vocabulary_path = params_.vocabulary;
  options.keep_case = params_.keep_case;
  if (!format.empty()) options.format = parse_format(format);
  return read_corpus(path, options);
}

CorpusFilter TopicModel::filter() const {
  CorpusFilter filter;
  filter.stop_words_path = params_.stop_words;
  filter.least_documents = params_.least_documents;
  filter.largest_share = params_.largest_share;
  return filter;
}

void TopicModel::load_whole(const DataRequest& request, Engine& engine) {
  data_ = read(request.path, request.format, engine);
  names_.numbers = filter_corpus(filter(), request.path, data_);
  names_.vocabulary = data_.corpus.vocabulary;
  lengths_ = document_lengths(data_.corpus);
  frequencies_ = word_frequencies(data_.corpus);
  tokens_ = data_.corpus.tokens;
}

// Two passes over the file: which words stay, and how many tokens that gives to every document and word.
void TopicModel::load_packed(const DataRequest& request) {
  if (!params_.vocabulary.empty()) {
    throw usage_error("--vocab: " + request.path + " is packed and keeps the words that it was packed with");
  }
  packed_ = std::make_unique<PackedCorpus>(request.path);
  data_.recognised.format = DataFormat::packed;
  data_.checksum = packed_->checksum();
  data_.named = packed_->named();
  data_.keep_case = packed_->keep_case();
  Corpus words;
  words.word_count = packed_->word_count();
  words.vocabulary = packed_->vocabulary();
  std::vector<std::uint64_t> documents_of_words(words.word_count, 0);
  packed_->visit([&](std::uint64_t, const Corpus& piece) {
    for (const std::uint32_t word : piece.words) ++documents_of_words[word];
  });
  WordChoice choice = choose_words(filter(), request.path, words, documents_of_words, packed_->documents());
  names_.numbers = std::move(choice.numbers);
  names_.vocabulary = names_of(names_.numbers, words.vocabulary);
  frequencies_.assign(names_.numbers.size(), 0);
  packed_->visit([&](std::uint64_t, Corpus& piece) {
    renumber_corpus(names_.numbers, piece);
    for (const std::uint64_t length : document_lengths(piece)) lengths_.push_back(length);
    for (std::size_t c = 0; c < piece.words.size(); ++c) frequencies_[piece.words[c]] += piece.counts[c];
    tokens_ += piece.tokens;
  });
  if (tokens_ == 0) throw no_words_left(request.path);
  warn_of_filter(choice.gone, packed_->tokens() - tokens_, data_.warnings);
}

void TopicModel::load(const DataRequest& request, Engine& engine) {
  check(request);
  on_tables_ = request.schedule == "data";
  groups_ = request.groups;
  memory_limit_ = request.memory_limit;
  nodes_ = engine.transport().nodes();
  scratch_ = request.scratch;
  const bool may_be_packed = request.format.empty() || parse_format(request.format) == DataFormat::packed;
  if (may_be_packed && is_packed_corpus(request.path)) {
    load_packed(request);
  } else {
    load_whole(request, engine);
  }
  names_.by_name = data_.named;
  names_.keep_case = data_.keep_case;
  for (const std::string& warning : data_.warnings) engine.warn(warning);
  documents_ = lengths_.size();
  init_ = request.init;
  if (request.valid) load_valid(request, engine);
  if (params_.topics > tokens_) {
    engine.warn(std::to_string(params_.topics) + " topics for " + std::to_string(tokens_) +
                " tokens: most will stay empty");
  }
  for (const std::uint64_t f : frequencies_) {
    word_row_bytes_ += WordTopics::row_bytes(static_cast<std::uint32_t>(f), params_.topics);
    frozen_bytes_ += std::min<std::uint64_t>(f, params_.topics) * (sizeof(Topic) + sizeof(float));
  }
  for (const std::uint64_t length : lengths_) {
    longest_document_ = std::max(longest_document_, length);
    document_list_bytes_ += DocumentTopics::bytes_of_list(static_cast<std::uint32_t>(length), params_.topics);
  }
}

void TopicModel::load_valid(const DataRequest& request, Engine& engine) {
  CorpusOptions options;
  options.read.parallel = engine.parallel_for_function();
  options.keep_case = names_.keep_case;
  // Held-out documents need not be packed because those of the training are.
  if (!request.format.empty() && parse_format(request.format) != DataFormat::packed) {
    options.format = parse_format(request.format);
  }
  if (names_.by_name) options.vocabulary = &names_.vocabulary;
  CorpusData valid = read_corpus(*request.valid, options);
  if (valid.named != names_.by_name) {
    throw data_error(*request.valid,
                     "expected a corpus in the format of the training data, got " + valid.recognised.describe());
  }
  std::uint64_t unknown = valid.unknown_tokens;
  if (!names_.by_name) unknown = renumber_corpus(names_.numbers, valid.corpus);
  if (unknown > 0) {
    engine.warn(*request.valid + ": " + std::to_string(unknown) +
                " tokens are of words that no training document has; they are not scored");
  }
  held_out_ = Completion(valid.corpus);
  if (held_out_.tokens() == 0) throw data_error(*request.valid, "no document has two known words: nothing to score");
}

DataSummary TopicModel::data_summary() const {
  DataSummary summary;
  summary.format = data_.recognised.describe();
  summary.checksum = data_.checksum;
  summary.shape = {{"documents", std::to_string(documents_)},
                   {"words", std::to_string(names_.numbers.size())},
                   {"tokens", std::to_string(tokens_)}};
  return summary;
}

WorkerId TopicModel::default_workers() const {
  constexpr std::uint64_t kTinyTokens = 2000, kTokensEach = std::uint64_t{1} << 22, kLeast = 16, kMost = 256;
  const std::uint64_t by_size = std::clamp(tokens_ / kTokensEach, kLeast, kMost);
  return static_cast<WorkerId>(std::clamp<std::uint64_t>(tokens_ / kTinyTokens, 1, by_size));
}

// A function of the data alone: small enough that a few of them are a small part of a corpus that is worth streaming,
// large enough that a word's tokens in a stripe pay for the visit.
std::size_t TopicModel::document_blocks() const {
  constexpr std::uint64_t kTokensEach = std::uint64_t{1} << 22, kMost = 16;
  if (params_.document_blocks) return static_cast<std::size_t>(*params_.document_blocks);
  return std::clamp<std::uint64_t>(tokens_ / kTokensEach, 1, kMost);
}

// One block of words for each worker: shorter visits of a word would cost more than smaller blocks save.
std::size_t TopicModel::blocks_for(WorkerId workers) const {
  constexpr std::uint64_t kAlwaysFine = std::uint64_t{1} << 20;
  const std::uint64_t units = std::uint64_t{workers} * workers * document_blocks();
  if (units <= std::max(kAlwaysFine, tokens_)) return workers;
  throw usage_error("--workers: " + std::to_string(workers) + " workers, as many blocks of words and " +
                    std::to_string(document_blocks()) + " of documents make " + std::to_string(units) +
                    " units of work in an iteration, for " + std::to_string(tokens_) + " tokens");
}

// Dense rows only where documents have an eighth of the topics, or topics are few. With mh each document knows
// its tokens.
std::uint64_t TopicModel::document_row_bytes() const {
  const bool may_be_dense = params_.sampler == SamplerChoice::dense || params_.sampler == SamplerChoice::by_counts;
  const std::uint64_t dense = documents_ * padded_topics(params_.topics) * sizeof(std::int32_t);
  const std::uint64_t rows = params_.sampler == SamplerChoice::dense ? dense
                             : may_be_dense                          ? std::min(dense, 4 * document_list_bytes_)
                                                                     : 0;
  const bool may_be_mh =
      params_.sampler == SamplerChoice::mh || (params_.sampler == SamplerChoice::by_counts &&
                                               may_choose_mh(params_.topics, static_cast<double>(longest_document_)));
  const std::uint64_t tokens = may_be_mh ? tokens_ * sizeof(std::uint32_t) : 0;
  return (document_list_bytes_ + rows + tokens) / nodes_ + 1;
}

void TopicModel::add_common(WorkerId workers, MemoryEstimate& estimate) const {
  // Totals, their reciprocals, scratch, an open row; moves under way.
  // Of a group its replica, the base and the moves; a node may have a part of one group more than its share of them.
  const std::uint64_t groups_here = std::min<std::uint64_t>(groups_, groups_ / nodes_ + 1);
  estimate.add("topics of words", word_row_bytes_)
      .add("replicas of the groups", groups_ > 1 ? groups_here : 0, 3 * word_row_bytes_)
      .add("views of the workers", workers * padded_topics(params_.topics), 80)
      .add("ids of words and documents", names_.numbers.size() + documents_, 48);
}

MemoryEstimate TopicModel::memory_of_all(WorkerId workers) const {
  const std::uint64_t cells = packed_ ? packed_->cells() / document_blocks() : data_.corpus.cells();
  MemoryEstimate estimate;
  estimate.add("corpus while it is laid out", cells, 3 * sizeof(std::uint32_t))
      .add("tokens and their topics", tokens_ / nodes_ + 1, sizeof(std::uint32_t) + sizeof(Topic))
      .add("runs of words",
           std::min<std::uint64_t>(tokens_, workers * document_blocks() * names_.numbers.size()) / nodes_ + 1,
           sizeof(Run))
      .add("topics of documents", document_row_bytes());
  add_common(workers, estimate);
  if (!on_tables_) return estimate;
  // A worker's updates of a clock: whole rows, however few topics of a word move.
  const std::uint64_t row = params_.topics * sizeof(std::int32_t);
  const std::uint64_t touched = std::min<std::uint64_t>(tokens_ / document_blocks() / nodes_ + 1,
                                                        std::uint64_t{workers} * names_.numbers.size() / nodes_);
  estimate.add("table of words", names_.numbers.size(), row).add("updates of the workers", touched, 2 * row);
  return estimate;
}

// Of the documents that do not stay there are three blocks at a time: sampled, read ahead, written behind. Topics of
// words are copied for an evaluation and for the model, when one block less is there.
MemoryEstimate TopicModel::memory_of_stream(WorkerId workers, std::size_t resident) const {
  constexpr std::uint64_t kProgram = std::uint64_t{16} << 20, kMoving = 3;
  const std::uint64_t blocks = document_blocks(), tokens = tokens_ / blocks + 1;
  const std::uint64_t runs = std::min<std::uint64_t>(tokens, workers * names_.numbers.size());
  const std::uint64_t block = tokens * (sizeof(std::uint32_t) + sizeof(Topic)) + runs * sizeof(Run);
  MemoryEstimate estimate;
  estimate.add("the program itself", kProgram)
      .add("document blocks that stay, of " + std::to_string(blocks), resident, block)
      .add("document blocks under way", kMoving, block)
      .add("topics of their documents", resident + 1, document_row_bytes() / blocks)
      .add("topics of words as they are evaluated", frozen_bytes_ > block ? frozen_bytes_ - block : 0);
  add_common(workers, estimate);
  return estimate;
}

// How many document blocks stay in memory when not all of them fit; nothing when all do, or none of this would help.
// Several nodes have room for theirs or not: they do not stream, nor does schedule data, whose table is larger.
std::optional<std::size_t> TopicModel::resident_blocks(WorkerId workers) const {
  const std::size_t blocks = document_blocks();
  if (!packed_ || nodes_ > 1 || on_tables_ || memory_limit_ == 0 || blocks < 2 ||
      memory_of_all(workers).total() <= memory_limit_)
    return {};
  const std::uint64_t none = memory_of_stream(workers, 0).total();
  const std::uint64_t each = memory_of_stream(workers, 1).total() - none;
  const std::uint64_t room = memory_limit_ > none ? memory_limit_ - none : 0;
  return std::min<std::size_t>(room / each, blocks - 2);
}

MemoryEstimate TopicModel::memory(WorkerId workers) const {
  const std::optional<std::size_t> resident = resident_blocks(workers);
  return resident ? memory_of_stream(workers, *resident) : memory_of_all(workers);
}

Priors TopicModel::make_priors() const {
  Priors priors;
  priors.alpha = parse_prior("--alpha", params_.alpha, params_.topics);
  if (priors.alpha.size() != params_.topics) priors.alpha.assign(params_.topics, priors.alpha[0]);
  std::vector<double> beta = parse_prior("--beta", params_.beta, names_.numbers.size());
  priors.beta = beta[0];
  if (beta.size() > 1) priors.word_beta = std::move(beta);
  return priors;
}

Priors TopicModel::priors_by_internal_word(const TokenGrid& grid) const {
  Priors priors = make_priors();
  std::vector<double> by_internal(priors.word_beta.size());
  for (std::size_t w = 0; w < by_internal.size(); ++w) by_internal[grid.words().internal[w]] = priors.word_beta[w];
  priors.word_beta = std::move(by_internal);
  return priors;
}

bool TopicModel::sequential() const {
  constexpr std::uint32_t kManyTopics = 256;
  if (init_ || on_tables_ || groups_ > 1) return false;
  return params_.start == Start::sequential || (params_.start == Start::by_topics && params_.topics > kManyTopics);
}

// Brings the documents in, block by block, each with its first topics.
void TopicModel::lay_out(LdaState& state, std::uint64_t seed, Engine& engine) const {
  const ParallelFor parallel = engine.parallel_for_function();
  std::optional<LdaModel> model;
  std::vector<std::uint32_t> words;
  if (init_) {
    model.emplace(ModelReader(*init_));
    words = model->find_words(names_);
    const auto unknown = std::count(words.begin(), words.end(), LdaModel::kUnknownWord);
    if (unknown > 0)
      engine.warn(std::to_string(unknown) + " of " + std::to_string(words.size()) +
                  " words are new to the model of --init");
  }
  TokenGrid& grid = state.grid;
  for (std::size_t block = 0; block < grid.document_blocks(); ++block) {
    const std::uint32_t first = grid.first_document(block);
    if (packed_) {
      Corpus piece = packed_->read(first, grid.first_document(block + 1));
      renumber_corpus(names_.numbers, piece);
      grid.fill(block, piece, first, parallel);
    } else {
      grid.fill(block, data_.corpus, 0, parallel);
    }
    state.admit(block);
    if (model) {
      assign_by_model(state, block, model->frozen(), words, seed, parallel);
    } else if (!sequential()) {
      assign_at_random(state, block, seed, parallel);
    }
    state.store(block);
  }
  state.count(parallel);
}

std::string TopicModel::sampler_text() const {
  if (params_.sampler != SamplerChoice::by_counts) return "sampler " + param_set_.get("sampler") + " as asked for";
  return sampler_reason(params_.topics, static_cast<double>(longest_document_));
}

TrainingPlan TopicModel::training_plan(std::uint64_t seed, Engine& engine) const {
  TrainingPlan plan;
  if (params_.sampler == SamplerChoice::dense) plan.sampler = SamplerKind::dense;
  if (params_.sampler == SamplerChoice::sparse) plan.sampler = SamplerKind::sparse;
  if (params_.sampler == SamplerChoice::mh) plan.sampler = SamplerKind::mh;
  plan.mh_steps = params_.mh_steps;
  plan.sequential = sequential();
  plan.fit_priors = params_.fit_priors;
  plan.keep_documents = params_.keep_documents;
  plan.seed = seed;
  plan.kernels = &kernels(engine.simd());
  plan.scratch = scratch_;
  return plan;
}

Training TopicModel::prepare(Engine& engine, WorkerId workers, std::uint64_t seed, const std::string& schedule) {
  on_tables_ = schedule == "data";
  if (params_.fit_priors && engine.clock_bound() > 0) {
    throw usage_error("--fit-priors needs --consistency bsp: priors change when no worker samples");
  }
  const std::optional<std::size_t> resident = resident_blocks(workers);
  const Streaming streaming{scratch_, resident.value_or(0)};
  const WorkerMap map(workers, engine.transport().nodes(), engine.transport().node(), engine.domains());
  TokenGrid grid(lengths_, frequencies_,
                 {.document_blocks = document_blocks(),
                  .workers = workers,
                  .blocks = blocks_for(workers),
                  .first_here = map.first_worker(map.this_node()),
                  .end_here = map.first_worker(map.this_node() + 1)});
  lengths_ = std::vector<std::uint64_t>{};
  Priors priors = priors_by_internal_word(grid);
  prepared_ = std::make_unique<Prepared>(std::move(grid), engine.topology(), map, params_.topics, std::move(priors),
                                         resident ? &streaming : nullptr);
  lay_out(prepared_->state, seed, engine);
  data_.corpus = {};
  packed_.reset();
  Training training = on_tables_ ? prepare_tables(engine, map, seed) : prepare_rotation(engine, map, seed);
  training.schedule_reason += "; " + sampler_text();
  training.clocks_per_iteration = static_cast<Clock>(prepared_->state.grid.document_blocks());
  training.items_per_iteration = tokens_;
  training.item_name = "tokens";
  if (resident) {
    training.schedule_reason += "; " + std::to_string(document_blocks() - *resident) + " of " +
                                std::to_string(document_blocks()) + " document blocks are streamed from disk";
  }
  return training;
}

// A block of words is with one worker of a group at a time, and a word is in one block: nobody can help with its
// tokens.
void TopicModel::warn_of_hot_word(Engine& engine) const {
  constexpr std::uint64_t kWorthWaitingFor = 100000;
  if (tokens_ < kWorthWaitingFor) return;
  const auto hottest = std::max_element(frequencies_.begin(), frequencies_.end());
  const std::uint64_t threads = std::uint64_t{engine.threads()} * nodes_;
  const std::uint64_t busy = groups_ * tokens_ / *hottest;
  if (busy >= threads) return;
  const auto word = static_cast<std::uint32_t>(hottest - frequencies_.begin());
  engine.warn("word '" + names_.name(word) + "' is " + std::to_string(*hottest * 100 / tokens_) +
              " % of all tokens, and one thread at a time has it: " + std::to_string(busy) + " of " +
              std::to_string(threads) +
              " threads can be busy; --stop-words or --max-documents leave such words out, --groups and --schedule "
              "data let several threads have it");
}

Training TopicModel::prepare_rotation(Engine& engine, const WorkerMap& map, std::uint64_t seed) {
  warn_of_hot_word(engine);
  LdaState& state = prepared_->state;
  const auto blocks = static_cast<BlockId>(state.grid.blocks());
  if (groups_ > 1) {
    prepared_->schedule = std::make_unique<HybridSchedule>(map.workers(), groups_, blocks, seed);
    prepared_->trainee = std::make_unique<HybridTrainee>(state, engine.topology(), map, groups_, engine.clock_bound(),
                                                         held_out_, training_plan(seed, engine));
  } else {
    prepared_->schedule = std::make_unique<RotationSchedule>(map.workers(), blocks, seed);
    prepared_->trainee =
        std::make_unique<RotatingTrainee>(state, engine.topology(), map, held_out_, training_plan(seed, engine));
  }
  Training training;
  training.schedule = prepared_->schedule.get();
  training.trainee = prepared_->trainee.get();
  training.sections_on_disk = prepared_->trainee->sections_on_disk();
  training.schedule_reason =
      groups_ > 1 ? "as asked for: blocks of words rotate within " + std::to_string(groups_) +
                        " groups of workers, which tell each other how tokens moved"
                  : "a token touches one document and one word, so blocks of words can rotate without a conflict";
  return training;
}

Training TopicModel::prepare_tables(Engine& engine, const WorkerMap& map, std::uint64_t seed) {
  prepared_->schedule = std::make_unique<DataParallelSchedule>(std::vector<std::uint32_t>(map.workers(), 1));
  prepared_->trainee =
      std::make_unique<DataParallelTrainee>(engine, prepared_->state, map, held_out_, training_plan(seed, engine));
  Training training;
  training.schedule = prepared_->schedule.get();
  training.trainee = prepared_->trainee.get();
  training.schedule_reason =
      "documents stay with their worker, and the counts of words are on a table that keeps the consistency";
  return training;
}

void TopicModel::write_model(ModelWriter& writer, Engine& engine) const {
  write_lda_model(writer, prepared_->state, names_, params_.keep_documents, prepared_->trainee->topic_coherence(),
                  engine.parallel_for_function());
}

}  // namespace
}  // namespace lda

std::unique_ptr<Algorithm> make_lda() { return std::make_unique<lda::TopicModel>(); }

std::unique_ptr<Model> open_lda(const ModelReader& reader) { return std::make_unique<lda::LdaModel>(reader); }

}  // namespace orrery
