#include "algorithms/lda_layout.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "engine/assert.h"
#include "engine/error.h"

namespace orrery::lda {
namespace {

constexpr std::uint64_t kMostTokens = std::numeric_limits<std::int32_t>::max();

std::vector<std::uint32_t> checked_counts(std::span<const std::uint64_t> counts, const char* what) {
  std::vector<std::uint32_t> out(counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > kMostTokens) {
      throw data_error("corpus", std::string(what) + " " + std::to_string(i + 1) + " has " + std::to_string(counts[i]) +
                                     " tokens; expected fewer than 2^31");
    }
    out[i] = static_cast<std::uint32_t>(counts[i]);
  }
  return out;
}

std::vector<std::uint32_t> document_lengths(const Corpus& corpus) {
  std::vector<std::uint64_t> lengths(corpus.documents(), 0);
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    for (std::uint64_t c = corpus.starts[d]; c < corpus.starts[d + 1]; ++c) lengths[d] += corpus.counts[c];
  }
  return checked_counts(lengths, "document");
}

std::vector<std::uint32_t> word_frequencies(const Corpus& corpus) {
  std::vector<std::uint64_t> frequencies(corpus.word_count, 0);
  for (std::size_t c = 0; c < corpus.words.size(); ++c) frequencies[corpus.words[c]] += corpus.counts[c];
  return checked_counts(frequencies, "word");
}

}  // namespace

std::vector<std::uint32_t> external_ids(const Axis& axis) {
  std::vector<std::uint32_t> external(axis.size());
  for (std::uint32_t id = 0; id < axis.size(); ++id) external[axis.internal[id]] = id;
  return external;
}

TokenGrid::TokenGrid(const Corpus& corpus, std::size_t stripes, std::size_t blocks, const ParallelFor& parallel)
    : documents_(deal_axis(document_lengths(corpus), stripes, corpus.documents())),
      words_(deal_axis(word_frequencies(corpus), blocks, corpus.word_count)),
      tokens_(corpus.tokens),
      stripes_(stripes) {
  const std::vector<std::uint32_t> external = external_ids(documents_);
  parallel(stripes, [&](std::size_t s) { fill_stripe(s, corpus, external); });
  for (const Stripe& stripe : stripes_) {
    for (const Run& run : stripe.runs) longest_run_ = std::max<std::size_t>(longest_run_, run.tokens);
  }
}

// A counting sort of the stripe's tokens by word; documents come in order, so they ascend within a run.
void TokenGrid::fill_stripe(std::size_t s, const Corpus& corpus, std::span<const std::uint32_t> external_documents) {
  const std::uint32_t first = documents_.begin[s], last = documents_.begin[s + 1];
  const auto for_each_cell = [&](const auto& visit) {
    for (std::uint32_t d = first; d < last; ++d) {
      const std::uint32_t external = external_documents[d];
      for (std::uint64_t c = corpus.starts[external]; c < corpus.starts[external + 1]; ++c) {
        visit(d - first, words_.internal[corpus.words[c]], corpus.counts[c]);
      }
    }
  };
  std::vector<std::size_t> next(std::size_t{corpus.word_count} + 1, 0);
  for_each_cell([&](std::uint32_t, std::uint32_t word, std::uint32_t count) { next[word + 1] += count; });
  Stripe& stripe = stripes_[s];
  stripe.run_begin.push_back(0);
  for (std::size_t block = 0; block < blocks(); ++block) {
    for (std::uint32_t word = words_.begin[block]; word < words_.begin[block + 1]; ++word) {
      if (next[word + 1] == 0) continue;
      stripe.runs.push_back({word - words_.begin[block], static_cast<std::uint32_t>(next[word + 1])});
    }
    stripe.run_begin.push_back(stripe.runs.size());
  }
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (const std::uint32_t begin : words_.begin) stripe.token_begin.push_back(next[begin]);
  stripe.documents.resize(next.back());
  stripe.topics.assign(next.back(), kNoTopic);
  for_each_cell([&](std::uint32_t document, std::uint32_t word, std::uint32_t count) {
    std::fill_n(stripe.documents.begin() + static_cast<std::ptrdiff_t>(next[word]), count, document);
    next[word] += count;
  });
}

}  // namespace orrery::lda
