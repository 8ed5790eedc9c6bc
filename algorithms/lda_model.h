// A topic model on disk and read back: topics, mixtures of unseen documents, held-out perplexity, count conservation.
//
// Arrays: `word_begin`, `word_topics`, `word_counts`: n_kw by word, only those that are not 0, topics ascending;
// `topic_totals` = n_k, `topic_coherence`, `alpha` by topic, `beta` (one value, or one a word); `word_numbers`: what
// number each word had in the training file; with keep-documents `document_begin`, `document_topics`,
// `document_counts`: n_dk in the same way; `settings` = {keep_case, words have names}. Text: `vocabulary`, if words
// have names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/lda_likelihood.h"
#include "algorithms/lda_state.h"
#include "engine/data/corpus.h"

namespace orrery::lda {

/// What a word is called: in the files that this model reads.
struct WordNames {
  std::vector<std::uint32_t> numbers;   ///< in the training file
  std::vector<std::string> vocabulary;  ///< empty: words have numbers only
  bool by_name = false;                 ///< the training file was a text
  bool keep_case = false;
  /// For people: the word, or its number from 1 as in the files.
  std::string name(std::uint32_t word) const;
};

/// Writes the state, which must be here as a whole, and how coherent its topics are.
void write_lda_model(ModelWriter& writer, LdaState& state, const WordNames& names, bool keep_documents,
                     const std::vector<double>& coherence, const ParallelFor& parallel);
/// Without reading more than the manifest. @throws Error (data) for another kind of model.
std::size_t topics_of_model(const ModelReader& reader);

class LdaModel final : public Model {
 public:
  /// Reads the whole model. @throws Error (data) when arrays are missing or do not fit together.
  explicit LdaModel(const ModelReader& reader);

  std::size_t topics_count() const noexcept { return frozen_.rates.size(); }
  const FrozenTopics& frozen() const noexcept { return frozen_; }

  std::vector<TopicSummary> topics(std::size_t top) const override;
  /// `perplexity` by document completion.
  ValueList evaluate(const std::string& data, const std::string& format, Engine& engine) const override;
  /// `document θ_1 … θ_K` a line; documents are numbered from 1. Words that the model does not know are left out.
  void infer(const std::string& data, const std::string& format, Engine& engine, std::ostream& out) const override;
  std::vector<Check> verify(const Run& run, Engine& engine) const override;

  /// For every word named by `names`, its number here or kUnknownWord.
  static constexpr std::uint32_t kUnknownWord = ~std::uint32_t{0};
  std::vector<std::uint32_t> find_words(const WordNames& names) const;
  /// A corpus in this model's words. Warns of words that it does not know.
  Corpus read(const std::string& data, const std::string& format, Engine& engine) const;

 private:
  struct Counts {
    std::vector<std::int64_t> begin;
    std::vector<std::uint32_t> topics, counts;
    std::size_t rows() const noexcept { return begin.size() - 1; }
  };
  static Counts read_counts(const ModelReader& reader, const std::string& name, std::size_t topics);
  double joint_log_likelihood() const;

  Counts words_, documents_;  ///< documents_ has no rows if they were not kept
  bool has_documents_ = false;
  std::vector<std::int64_t> totals_;
  std::vector<double> coherence_;
  FrozenTopics frozen_;
  WordNames names_;
};

/// A warm start: draws a topic for every token under the topics of a model, given what the tokens of its document
/// before it have got: p ∝ (n_dk + α_k) p(w | k). Words that the model does not know are equally likely in all topics.
/// For the tokens of a document block, which have no topics yet.
void assign_by_model(LdaState& state, std::size_t document_block, const FrozenTopics& model,
                     const std::vector<std::uint32_t>& model_words, std::uint64_t seed, const ParallelFor& parallel);

}  // namespace orrery::lda
