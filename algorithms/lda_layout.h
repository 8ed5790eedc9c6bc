// The tokens of a corpus as a grid: W stripes of documents (one for each worker) times B blocks of words (which
// rotate). Documents and words are dealt by their numbers of tokens, so units are balanced on Zipfian data (design
// section 4); the layout is a function of the corpus, W and B alone (section 5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/axis.h"
#include "algorithms/lda_kernels.h"
#include "engine/data/corpus.h"
#include "engine/data/parallel_for.h"

namespace orrery::lda {

/// Consecutive tokens of one word in one stripe.
struct Run {
  std::uint32_t word;    ///< number within the block
  std::uint32_t tokens;  ///< > 0
};

/// The tokens of one worker: by block, then by word, then by document. 8 bytes a token and 8 a run.
struct Stripe {
  std::vector<std::uint32_t> documents;  ///< by token: number within the stripe
  std::vector<Topic> topics;             ///< by token: its topic, or kNoTopic
  std::vector<Run> runs;
  std::vector<std::size_t> run_begin, token_begin;  ///< blocks + 1 entries each

  std::span<const Run> runs_of(std::size_t block) const {
    return std::span(runs).subspan(run_begin[block], run_begin[block + 1] - run_begin[block]);
  }
};

class TokenGrid {
 public:
  /// Deals documents into `stripes` and words into `blocks`. @throws Error (data) when a word or a document has 2^31
  /// tokens or more: their counts have 32 bits.
  TokenGrid(const Corpus& corpus, std::size_t stripes, std::size_t blocks, const ParallelFor& parallel);

  const Axis& documents() const noexcept { return documents_; }
  const Axis& words() const noexcept { return words_; }
  std::size_t stripes() const noexcept { return documents_.parts(); }
  std::size_t blocks() const noexcept { return words_.parts(); }
  std::uint64_t tokens() const noexcept { return tokens_; }
  Stripe& stripe(std::size_t s) { return stripes_[s]; }
  const Stripe& stripe(std::size_t s) const { return stripes_[s]; }
  /// The largest number of tokens that one word has in one stripe.
  std::size_t longest_run() const noexcept { return longest_run_; }

 private:
  void fill_stripe(std::size_t s, const Corpus& corpus, std::span<const std::uint32_t> external_documents);

  Axis documents_, words_;
  std::uint64_t tokens_ = 0;
  std::size_t longest_run_ = 0;
  std::vector<Stripe> stripes_;
};

/// The ids of an axis by their internal numbers.
std::vector<std::uint32_t> external_ids(const Axis& axis);

/// Calls visit(block, run, first token) for every run of a stripe, in order.
template <class Visitor>
void for_each_run(const Stripe& stripe, Visitor&& visit) {
  for (std::size_t block = 0; block + 1 < stripe.run_begin.size(); ++block) {
    std::size_t token = stripe.token_begin[block];
    for (const Run& run : stripe.runs_of(block)) {
      visit(block, run, token);
      token += run.tokens;
    }
  }
}

}  // namespace orrery::lda
