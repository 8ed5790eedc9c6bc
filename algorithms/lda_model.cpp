#include "algorithms/lda_model.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <numeric>
#include <unordered_map>

#include "algorithms/lda_alias.h"
#include "algorithms/lda_topics.h"
#include "engine/data/corpus_filter.h"
#include "engine/data/packed_corpus.h"
#include "engine/data/text_ids.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/random.h"

namespace orrery::lda {
namespace {

constexpr std::size_t kSettings = 2;

/// Rows of counts as lists: calls back for every count of every row, and at the end of each row.
struct RowVisitor {
  std::function<void(Topic, std::int32_t)> count;
  std::function<void()> end_row;
};
using Rows = std::function<void(const RowVisitor&)>;

/// One number of every count as an array. Values leave in pieces, so that no copy of the model is made.
void add_counts(ModelWriter& writer, const std::string& name, std::uint64_t size, const Rows& rows,
                std::uint32_t (*value)(Topic, std::int32_t)) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  writer.add_array(name, NpyType::uint32, {size}, [&](const ByteSink& sink) {
    std::vector<std::uint32_t> piece;
    rows({[&](Topic topic, std::int32_t count) {
            piece.push_back(value(topic, count));
            if (piece.size() < kPiece) return;
            sink(std::as_bytes(std::span(piece)));
            piece.clear();
          },
          [] {}});
    sink(std::as_bytes(std::span(piece)));
  });
}

/// NAME_begin, NAME_topics and NAME_counts. Cost: three passes over the rows.
void write_rows(ModelWriter& writer, const std::string& name, const Rows& rows) {
  std::vector<std::int64_t> begin{0};
  std::int64_t size = 0;
  rows({[&](Topic, std::int32_t) { ++size; }, [&] { begin.push_back(size); }});
  writer.add_array<std::int64_t>(name + "_begin", begin);
  add_counts(writer, name + "_topics", static_cast<std::uint64_t>(size), rows,
             [](Topic topic, std::int32_t) { return topic; });
  add_counts(writer, name + "_counts", static_cast<std::uint64_t>(size), rows,
             [](Topic, std::int32_t count) { return static_cast<std::uint32_t>(count); });
}

void visit_words(const LdaState& state, const RowVisitor& visitor) {
  const Axis& words = state.grid.words();
  for (std::uint32_t id = 0; id < words.size(); ++id) {
    const auto block = static_cast<BlockId>(words.part[id]);
    state.words.for_each_topic(block, words.internal[id] - words.begin[block], visitor.count);
    visitor.end_row();
  }
}

// Document blocks are ranges of documents, so their order is that of the documents.
void visit_documents(LdaState& state, const ParallelFor& parallel, const RowVisitor& visitor) {
  const Axis& documents = state.grid.documents();
  state.for_each_document_block(parallel, [&](std::size_t block) {
    for (std::uint32_t id = state.grid.first_document(block); id < state.grid.first_document(block + 1); ++id) {
      const std::uint32_t stripe = documents.part[id];
      state.documents[stripe]->for_each_topic(documents.internal[id] - documents.begin[stripe], visitor.count);
      visitor.end_row();
    }
  });
}

void append_number(std::string& line, double value) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), static_cast<float>(value)).ptr;
  line.append(text.data(), end);
}

}  // namespace

std::string WordNames::name(std::uint32_t word) const {
  return vocabulary.empty() ? std::to_string(std::uint64_t{numbers[word]} + 1) : vocabulary[word];
}

void write_lda_model(ModelWriter& writer, LdaState& state, const WordNames& names, bool keep_documents,
                     const std::vector<double>& coherence, const ParallelFor& parallel) {
  write_rows(writer, "word", [&](const RowVisitor& visitor) { visit_words(state, visitor); });
  if (keep_documents) {
    write_rows(writer, "document", [&](const RowVisitor& visitor) { visit_documents(state, parallel, visitor); });
  }
  const FrozenTopics frozen = freeze(state);
  writer.add_array<std::int64_t>("topic_totals", state.totals.committed());
  writer.add_array<double>("topic_coherence", coherence);
  writer.add_array<double>("alpha", frozen.alpha);
  writer.add_array<double>("beta", frozen.word_beta.empty() ? std::vector<double>{frozen.beta} : frozen.word_beta);
  writer.add_array<std::uint32_t>("word_numbers", names.numbers);
  writer.add_array<std::uint32_t>("settings", std::vector<std::uint32_t>{names.keep_case, names.by_name});
  if (!names.vocabulary.empty()) writer.add_text("vocabulary", names.vocabulary);
}

std::size_t topics_of_model(const ModelReader& reader) {
  const NpyShape& shape = reader.entry("topic_totals").shape;
  if (shape.size() != 1 || shape[0] == 0) throw data_error(reader.path().string(), "topic_totals is not a list");
  return shape[0];
}

LdaModel::Counts LdaModel::read_counts(const ModelReader& reader, const std::string& name, std::size_t topics) {
  Counts out;
  out.begin = reader.read<std::int64_t>(name + "_begin");
  out.topics = reader.read<std::uint32_t>(name + "_topics");
  out.counts = reader.read<std::uint32_t>(name + "_counts");
  const bool fits =
      !out.begin.empty() && out.begin.front() == 0 && std::is_sorted(out.begin.begin(), out.begin.end()) &&
      out.begin.back() == static_cast<std::int64_t>(out.topics.size()) && out.topics.size() == out.counts.size() &&
      std::all_of(out.topics.begin(), out.topics.end(), [&](Topic k) { return k < topics; });
  if (!fits) throw data_error(reader.path().string(), name + " counts do not fit together");
  return out;
}

LdaModel::LdaModel(const ModelReader& reader) {
  const std::string where = reader.path().string();
  totals_ = reader.read<std::int64_t>("topic_totals");
  coherence_ = reader.read<double>("topic_coherence");
  frozen_.alpha = reader.read<double>("alpha");
  words_ = read_counts(reader, "word", totals_.size());
  has_documents_ = reader.has("document_begin");
  if (has_documents_) documents_ = read_counts(reader, "document", totals_.size());
  names_.numbers = reader.read<std::uint32_t>("word_numbers");
  if (reader.has("vocabulary")) names_.vocabulary = reader.read_text("vocabulary");
  const auto settings = reader.read<std::uint32_t>("settings");
  auto beta = reader.read<double>("beta");
  const bool fits = !totals_.empty() && coherence_.size() == totals_.size() && frozen_.alpha.size() == totals_.size() &&
                    names_.numbers.size() == words_.rows() && settings.size() == kSettings &&
                    (names_.vocabulary.empty() || names_.vocabulary.size() == words_.rows()) &&
                    (beta.size() == 1 || beta.size() == words_.rows());
  if (!fits) throw data_error(where, "topics, words, priors and vocabulary are not of fitting lengths");
  names_.keep_case = settings[0] != 0;
  names_.by_name = settings[1] != 0;
  double beta_sum = beta[0] * static_cast<double>(words_.rows());
  frozen_.beta = beta[0];
  if (beta.size() > 1) {
    beta_sum = std::accumulate(beta.begin(), beta.end(), 0.0);
    frozen_.word_beta = std::move(beta);
  }
  for (const std::int64_t total : totals_) frozen_.rates.push_back(1 / (static_cast<double>(total) + beta_sum));
  frozen_.begin.assign(words_.begin.begin(), words_.begin.end());
  frozen_.topics = words_.topics;
  for (std::size_t j = 0; j < words_.topics.size(); ++j) {
    frozen_.shares.push_back(static_cast<float>(words_.counts[j] * frozen_.rates[words_.topics[j]]));
  }
}

std::vector<TopicSummary> LdaModel::topics(std::size_t top) const {
  const auto tokens = static_cast<double>(std::accumulate(totals_.begin(), totals_.end(), std::int64_t{0}));
  const auto words = top_words(frozen_, top);
  std::vector<TopicSummary> out;
  for (std::size_t k = 0; k < words.size(); ++k) {
    TopicSummary topic{
        .id = k, .share = static_cast<double>(totals_[k]) / tokens, .coherence = coherence_[k], .words = {}};
    for (const std::uint32_t word : words[k]) {
      double probability = frozen_.beta_of(word) * frozen_.rates[k];
      for (auto j = words_.begin[word]; j < words_.begin[word + 1]; ++j) {
        const auto at = static_cast<std::size_t>(j);
        if (words_.topics[at] == k) probability += words_.counts[at] * frozen_.rates[k];
      }
      topic.words.emplace_back(names_.name(word), probability);
    }
    out.push_back(std::move(topic));
  }
  return out;
}

std::vector<std::uint32_t> LdaModel::find_words(const WordNames& names) const {
  std::vector<std::uint32_t> found(names.numbers.size(), kUnknownWord);
  if (!names.vocabulary.empty() && !names_.vocabulary.empty()) {
    TextIds mine;
    for (const std::string& word : names_.vocabulary) mine.insert(word);
    for (std::size_t w = 0; w < found.size(); ++w) found[w] = mine.find(names.vocabulary[w]);
    return found;
  }
  std::unordered_map<std::uint32_t, std::uint32_t> mine;
  for (std::uint32_t w = 0; w < names_.numbers.size(); ++w) mine.emplace(names_.numbers[w], w);
  for (std::size_t w = 0; w < found.size(); ++w) {
    const auto at = mine.find(names.numbers[w]);
    if (at != mine.end()) found[w] = at->second;
  }
  return found;
}

Corpus LdaModel::read(const std::string& data, const std::string& format, Engine& engine) const {
  CorpusOptions options;
  options.read.parallel = engine.parallel_for_function();
  options.keep_case = names_.keep_case;
  if (format.empty()) {
    InputFile file(data);
    options.format = detect_format(file, corpus_formats()).format;
  } else {
    options.format = parse_format(format);
  }
  const bool text =
      *options.format == DataFormat::packed ? PackedCorpus(data).named() : *options.format == DataFormat::text;
  if (text && names_.vocabulary.empty()) {
    throw data_error(data, "holds text, but the model knows words by number only");
  }
  if (!text && names_.by_name) {
    throw data_error(data, "numbers its words, but the model was trained on text and knows them by name");
  }
  if (text) options.vocabulary = &names_.vocabulary;
  CorpusData read = read_corpus(data, options);
  if (!text) {
    const std::uint64_t unknown = renumber_corpus(names_.numbers, read.corpus);
    if (unknown > 0) {
      read.warnings.push_back(std::to_string(unknown) +
                              " tokens are of words that the model does not know; they were left out");
    }
  }
  for (const std::string& warning : read.warnings) engine.warn(data + ": " + warning);
  return std::move(read.corpus);
}

ValueList LdaModel::evaluate(const std::string& data, const std::string& format, Engine& engine) const {
  const Corpus corpus = read(data, format, engine);
  const Completion completion(corpus);
  if (completion.tokens() == 0)
    throw data_error(data, "no document has two words that the model knows: nothing to score");
  const double mean =
      completion.log_likelihood(frozen_, engine.parallel_for_function()) / static_cast<double>(completion.tokens());
  return {{"perplexity", std::exp(-mean)},
          {"held_out_log_likelihood", mean},
          {"tokens_scored", static_cast<std::int64_t>(completion.tokens())},
          {"documents", static_cast<std::int64_t>(corpus.documents())}};
}

void LdaModel::infer(const std::string& data, const std::string& format, Engine& engine, std::ostream& out) const {
  const Corpus corpus = read(data, format, engine);
  constexpr std::size_t kDocumentsEach = 64, kPartsAtOnce = 256;
  const std::size_t parts = (corpus.documents() + kDocumentsEach - 1) / kDocumentsEach;
  for (std::size_t first = 0; first < parts; first += kPartsAtOnce) {
    std::vector<std::string> lines(std::min(kPartsAtOnce, parts - first));
    engine.parallel_for(lines.size(), [&](std::size_t p) {
      Inference inference(frozen_);
      const std::size_t begin = (first + p) * kDocumentsEach;
      for (std::size_t d = begin; d < std::min<std::size_t>(corpus.documents(), begin + kDocumentsEach); ++d) {
        std::vector<WordCount> document;
        for (std::uint64_t c = corpus.starts[d]; c < corpus.starts[d + 1]; ++c) {
          document.push_back({corpus.words[c], corpus.counts[c]});
        }
        lines[p] += std::to_string(d + 1);
        for (const double share : inference.infer(document)) {
          lines[p] += ' ';
          append_number(lines[p], share);
        }
        lines[p] += '\n';
      }
    });
    for (const std::string& text : lines) out.write(text.data(), static_cast<std::streamsize>(text.size()));
  }
}

double LdaModel::joint_log_likelihood() const {
  const double beta_sum = frozen_.word_beta.empty()
                              ? frozen_.beta * static_cast<double>(words_.rows())
                              : std::accumulate(frozen_.word_beta.begin(), frozen_.word_beta.end(), 0.0);
  const double alpha_sum = std::accumulate(frozen_.alpha.begin(), frozen_.alpha.end(), 0.0);
  double sum = 0;
  for (const std::int64_t total : totals_) sum -= log_rising(beta_sum, total);
  const auto add_rows = [&sum](const Counts& counts, const auto& prior, const auto& end_row) {
    for (std::uint32_t row = 0; row < counts.rows(); ++row) {
      std::int64_t length = 0;
      for (auto j = counts.begin[row]; j < counts.begin[row + 1]; ++j) {
        const auto at = static_cast<std::size_t>(j);
        length += counts.counts[at];
        sum += log_rising(prior(row, counts.topics[at]), counts.counts[at]);
      }
      end_row(length);
    }
  };
  add_rows(
      words_, [&](std::uint32_t word, Topic) { return frozen_.beta_of(word); }, [](std::int64_t) {});
  add_rows(
      documents_, [&](std::uint32_t, Topic topic) { return frozen_.alpha[topic]; },
      [&](std::int64_t length) { sum -= log_rising(alpha_sum, length); });
  return sum;
}

namespace {

/// Sums of a model's lists by row and by topic.
struct Sums {
  std::vector<std::uint64_t> rows;
  std::vector<std::int64_t> topics;
};

template <class Counts>
Sums sums_of(const Counts& counts, std::size_t topics) {
  Sums sums{std::vector<std::uint64_t>(counts.rows(), 0), std::vector<std::int64_t>(topics, 0)};
  for (std::size_t row = 0; row < counts.rows(); ++row) {
    for (auto j = counts.begin[row]; j < counts.begin[row + 1]; ++j) {
      const auto at = static_cast<std::size_t>(j);
      sums.rows[row] += counts.counts[at];
      sums.topics[counts.topics[at]] += counts.counts[at];
    }
  }
  return sums;
}

template <class T>
Check equal_sums(const std::string& what, const std::vector<T>& expected, const std::vector<T>& found) {
  if (expected.size() != found.size()) {
    return {what, false,
            "expected " + std::to_string(expected.size()) + " sums, found " + std::to_string(found.size())};
  }
  std::size_t differing = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) differing += expected[i] != found[i] ? 1 : 0;
  return {what, differing == 0, std::to_string(differing) + " of " + std::to_string(expected.size()) + " sums differ"};
}

}  // namespace

std::vector<Check> LdaModel::verify(const Run& run, Engine& engine) const {
  const Corpus corpus = read(run.data, run.format, engine);
  std::vector<std::uint64_t> frequencies(words_.rows(), 0), lengths(corpus.documents(), 0);
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    for (std::uint64_t c = corpus.starts[d]; c < corpus.starts[d + 1]; ++c) {
      frequencies[corpus.words[c]] += corpus.counts[c];
      lengths[d] += corpus.counts[c];
    }
  }
  const Sums words = sums_of(words_, totals_.size());
  std::vector<Check> checks{
      equal_sums("topics of each word add up to its frequency in the data", frequencies, words.rows),
      equal_sums("words of each topic add up to its total", totals_, words.topics)};
  if (!has_documents_) return checks;
  const Sums documents = sums_of(documents_, totals_.size());
  checks.push_back(equal_sums("topics of each document add up to its length", lengths, documents.rows));
  checks.push_back(equal_sums("documents of each topic add up to its total", totals_, documents.topics));
  if (run.valid || !run.value) return checks;
  const double value = -joint_log_likelihood() / static_cast<double>(corpus.tokens);
  checks.push_back({"joint log-likelihood per token is that of run.json",
                    std::abs(value - *run.value) <= 1e-9 * std::abs(value),
                    "expected " + std::to_string(-*run.value) + ", found " + std::to_string(-value)});
  return checks;
}

void assign_by_model(LdaState& state, std::size_t document_block, const FrozenTopics& model,
                     const std::vector<std::uint32_t>& model_words, std::uint64_t seed, const ParallelFor& parallel) {
  const std::vector<std::uint32_t> external = external_ids(state.grid.words());
  const Random random(seed, Purpose::initial_model);
  parallel(state.grid.end_here() - state.grid.first_here(), [&](std::size_t i_here) {
    const std::size_t s = state.grid.stripe_of(document_block, state.grid.first_here() + i_here);
    Stripe& stripe = state.grid.stripe(s);
    DocumentTopics& documents = *state.documents[s];
    RandomStream draws = random.stream(1, s);
    std::vector<double> phi(state.topics());
    std::vector<float> weights(state.topics());
    AliasTable by_prior;
    for_each_run(stripe, [&](std::size_t block, const Run& run, std::size_t first) {
      const std::uint32_t word = model_words[external[state.grid.words().begin[block] + run.word]];
      const bool known = word != LdaModel::kUnknownWord;
      for (std::size_t k = 0; k < phi.size(); ++k) phi[k] = known ? model.beta_of(word) * model.rates[k] : 1.0;
      for (std::uint64_t j = known ? model.begin[word] : 0; known && j < model.begin[word + 1]; ++j) {
        phi[model.topics[j]] += double{model.shares[j]};
      }
      double prior_mass = 0;
      for (std::size_t k = 0; k < phi.size(); ++k) {
        weights[k] = static_cast<float>(state.priors.alpha[k] * phi[k]);
        prior_mass += double{weights[k]};
      }
      by_prior.build(weights);
      for (std::size_t i = first; i < first + run.tokens; ++i) {
        double mass = prior_mass;
        documents.for_each_topic(stripe.documents[i], [&](Topic k, std::int32_t count) { mass += count * phi[k]; });
        double target = draws.uniform() * mass - prior_mass;
        Topic drawn = kNoTopic;
        if (target >= 0) {
          documents.for_each_topic(stripe.documents[i], [&](Topic k, std::int32_t count) {
            if (target < 0) return;
            target -= count * phi[k];
            drawn = k;
          });
        }
        stripe.topics[i] = drawn == kNoTopic ? by_prior.draw(draws) : drawn;
        documents.add(stripe.documents[i], stripe.topics[i]);
      }
    });
  });
}

}  // namespace orrery::lda
