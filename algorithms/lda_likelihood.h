// How good a topic model is: the joint likelihood of its assignments, and what a frozen model makes of documents that
// it has not seen.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/lda_state.h"
#include "engine/collective.h"
#include "engine/data/corpus.h"
#include "engine/data/parallel_for.h"

namespace orrery::lda {

/// log p(w, z) with θ and φ integrated out (Griffiths, Steyvers 2004), of words and of documents:
///   Σ_k [ln Γ(β̄) − ln Γ(n_k + β̄)] + Σ_(k,w) [ln Γ(n_kw + β_w) − ln Γ(β_w)]
/// + Σ_d [ln Γ(ᾱ) − ln Γ(L_d + ᾱ)] + Σ_(d,k) [ln Γ(n_dk + α_k) − ln Γ(α_k)].
/// Summed by block and stripe, then along the fixed tree. Cost: the counts that are not 0.
double joint_log_likelihood(LdaState& state, const ParallelFor& parallel);
/// The same, where the parts of words are known block by block and those of documents stripe by stripe.
double joint_log_likelihood(const LdaState& state, std::span<const double> word_parts,
                            std::span<const double> document_parts);
/// The parts of these blocks of words.
std::vector<double> word_parts(const LdaState& state, std::span<const BlockId> blocks, const ParallelFor& parallel);

/// What the documents of a stripe contribute. Safe from several threads.
class DocumentLogs {
 public:
  explicit DocumentLogs(const Priors& priors);
  double operator()(const DocumentTopics& documents) const;

 private:
  Priors priors_;
  RisingLogs all_alpha_, alpha_;
  bool symmetric_;
};

/// The topics of words as they are at one moment, ready to be asked: p(w | k) = share + β_w rate_k, where share =
/// n_kw / (n_k + β̄) is listed for the topics of the word and rate_k = 1 / (n_k + β̄).
struct FrozenTopics {
  std::vector<std::uint64_t> begin;  ///< by word, words + 1
  std::vector<Topic> topics;
  std::vector<float> shares;
  std::vector<double> rates, alpha;  ///< by topic
  double beta = 0;
  std::vector<double> word_beta;  ///< empty: beta for all

  std::size_t words() const noexcept { return begin.size() - 1; }
  double beta_of(std::uint32_t word) const { return word_beta.empty() ? beta : word_beta[word]; }
};
/// Words by their external ids.
FrozenTopics freeze(const LdaState& state);

/// A word of a document and how often it occurs in it.
struct WordCount {
  std::uint32_t word, count;
};

/// Topic mixtures of documents under frozen topics.
class Inference {
 public:
  explicit Inference(const FrozenTopics& model);

  /// θ of a document: 40 steps of expectation-maximisation from the prior, θ_k ∝ α_k + Σ_w c_w p(k | w, θ). The result
  /// is kept until the next call. Cost a step: the topics of the words, and K.
  std::span<const double> infer(std::span<const WordCount> document);
  /// Σ_w c_w ln Σ_k θ_k p(w | k) under the mixture that infer() found.
  double log_likelihood(std::span<const WordCount> document) const;

 private:
  double background() const;

  const FrozenTopics& model_;
  std::vector<double> theta_, next_;
};

/// Held-out documents, cut into halves for document completion: the mixture is inferred from one half, the other is
/// scored. Tokens go to the halves in turn, in the order of the words' numbers, so that it is the same for everybody.
class Completion {
 public:
  Completion() = default;
  explicit Completion(const Corpus& corpus);

  /// Tokens that are scored.
  std::uint64_t tokens() const noexcept { return tokens_; }
  /// Log-likelihood of the scored tokens. Collective: every node has all documents and the same model, and infers its
  /// share.
  double log_likelihood(const FrozenTopics& model, const ParallelFor& parallel, const Collective& nodes = {}) const;

 private:
  struct Half {
    std::vector<std::uint64_t> begin{0};
    std::vector<WordCount> cells;
    std::span<const WordCount> document(std::size_t d) const {
      return std::span(cells).subspan(begin[d], begin[d + 1] - begin[d]);
    }
  };
  Half observed_, scored_;
  std::uint64_t tokens_ = 0;
};

}  // namespace orrery::lda
