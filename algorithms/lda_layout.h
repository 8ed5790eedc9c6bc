// The tokens of a corpus as a grid: D document blocks of W stripes (one for each worker) times B blocks of words (which
// rotate). A document block is a range of documents as they came, about as many tokens in each, and takes one clock;
// within it documents are dealt to the stripes, and words to their blocks, by their numbers of tokens, so units are
// balanced on Zipfian data (design section 4). The layout is a function of the corpus, D, W and B alone (section 5). Of
// several nodes each has the tokens of its own workers only.
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

/// The tokens of one worker in one document block: by block of words, then by word, then by document. 8 bytes a token
/// and 8 a run. The first three are empty while they lie on disk.
struct Stripe {
  std::vector<std::uint32_t> documents;  ///< by token: number within the stripe
  std::vector<Topic> topics;             ///< by token: its topic, or kNoTopic
  std::vector<Run> runs;
  std::vector<std::size_t> run_begin, token_begin;  ///< blocks + 1 entries each

  std::size_t tokens() const { return token_begin.back(); }
  std::span<const Run> runs_of(std::size_t block) const {
    return std::span(runs).subspan(run_begin[block], run_begin[block + 1] - run_begin[block]);
  }
};

class TokenGrid {
 public:
  struct Shape {
    std::size_t document_blocks = 1, workers = 1, blocks = 1;
    /// Workers [first, end) are on this node.
    std::size_t first_here = 0, end_here = static_cast<std::size_t>(-1);
  };
  /// Deals documents of so many tokens and words of so many; the stripes are yet to be filled. @throws Error (data)
  /// when a word or a document has 2^31 tokens or more: their counts have 32 bits.
  TokenGrid(std::span<const std::uint64_t> lengths, std::span<const std::uint64_t> frequencies, const Shape& shape);
  /// The same for a corpus in memory, and fills all stripes.
  TokenGrid(const Corpus& corpus, const Shape& shape, const ParallelFor& parallel);

  /// Fills the stripes of a document block that are here from a corpus whose first document is number `first` of all.
  void fill(std::size_t document_block, const Corpus& corpus, std::uint32_t first, const ParallelFor& parallel);

  /// Parts of this axis are the stripes: stripe_of(document block, worker).
  const Axis& documents() const noexcept { return documents_; }
  const Axis& words() const noexcept { return words_; }
  std::size_t stripes() const noexcept { return documents_.parts(); }
  std::size_t blocks() const noexcept { return words_.parts(); }
  std::size_t workers() const noexcept { return workers_; }
  std::size_t document_blocks() const noexcept { return stripes() / workers_; }
  std::size_t first_here() const noexcept { return first_here_; }
  std::size_t end_here() const noexcept { return end_here_; }
  bool is_here(std::size_t stripe) const { return first_here_ <= stripe % workers_ && stripe % workers_ < end_here_; }
  /// Tokens of a stripe, wherever it is.
  std::uint64_t tokens_of(std::size_t stripe) const;
  std::size_t stripe_of(std::size_t document_block, std::size_t worker) const {
    return document_block * workers_ + worker;
  }
  /// The first document of a block, by its number in the corpus; of the block behind the last, the number of all.
  std::uint32_t first_document(std::size_t document_block) const { return documents_.begin[document_block * workers_]; }
  std::uint64_t tokens() const noexcept { return tokens_; }
  Stripe& stripe(std::size_t s) { return stripes_[s]; }
  const Stripe& stripe(std::size_t s) const { return stripes_[s]; }
  /// The largest number of tokens that one word has in one stripe that is here.
  std::size_t longest_run() const noexcept { return longest_run_; }

 private:
  void fill_stripe(std::size_t s, const Corpus& corpus, std::span<const std::uint32_t> corpus_documents);

  std::size_t workers_, first_here_, end_here_;
  Axis documents_, words_;
  std::uint64_t tokens_ = 0;
  std::size_t longest_run_ = 0;
  std::vector<Stripe> stripes_;
};

/// How many tokens each document has, and each word.
std::vector<std::uint64_t> document_lengths(const Corpus& corpus);
std::vector<std::uint64_t> word_frequencies(const Corpus& corpus);

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
