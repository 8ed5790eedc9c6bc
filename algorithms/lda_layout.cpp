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

/// Where blocks of about as many tokens begin: parts + 1 numbers of documents.
std::vector<std::uint32_t> even_ranges(std::span<const std::uint32_t> lengths, std::size_t parts) {
  const std::uint64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0});
  std::vector<std::uint32_t> begin(parts + 1, static_cast<std::uint32_t>(lengths.size()));
  begin[0] = 0;
  std::uint64_t seen = 0;
  std::size_t part = 1;
  for (std::uint32_t d = 0; d < lengths.size() && part < parts; ++d) {
    seen += lengths[d];
    while (part < parts && seen * parts >= tokens * part) begin[part++] = d + 1;
  }
  return begin;
}

/// An axis of parts.size() - 1 ranges that are dealt by themselves, each into `stripes` stripes.
Axis deal_ranges(std::span<const std::uint32_t> lengths, std::span<const std::uint32_t> ranges, std::size_t stripes) {
  Axis all;
  all.begin.push_back(0);
  for (std::size_t r = 0; r + 1 < ranges.size(); ++r) {
    const std::uint32_t first = ranges[r];
    const Axis one = deal_axis(lengths.subspan(first, ranges[r + 1] - first), stripes, lengths.size());
    for (std::size_t p = 1; p < one.begin.size(); ++p) all.begin.push_back(first + one.begin[p]);
    for (const std::uint32_t internal : one.internal) all.internal.push_back(first + internal);
    for (const std::uint32_t part : one.part) all.part.push_back(static_cast<std::uint32_t>(r * stripes) + part);
    all.counts.insert(all.counts.end(), one.counts.begin(), one.counts.end());
  }
  return all;
}

Axis deal_documents(std::span<const std::uint32_t> lengths, const TokenGrid::Shape& shape) {
  return deal_ranges(lengths, even_ranges(lengths, shape.document_blocks), shape.workers);
}

}  // namespace

std::vector<std::uint64_t> document_lengths(const Corpus& corpus) {
  std::vector<std::uint64_t> lengths(corpus.documents(), 0);
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    for (std::uint64_t c = corpus.starts[d]; c < corpus.starts[d + 1]; ++c) lengths[d] += corpus.counts[c];
  }
  return lengths;
}

std::vector<std::uint64_t> word_frequencies(const Corpus& corpus) {
  std::vector<std::uint64_t> frequencies(corpus.word_count, 0);
  for (std::size_t c = 0; c < corpus.words.size(); ++c) frequencies[corpus.words[c]] += corpus.counts[c];
  return frequencies;
}

std::vector<std::uint32_t> external_ids(const Axis& axis) {
  std::vector<std::uint32_t> external(axis.size());
  for (std::uint32_t id = 0; id < axis.size(); ++id) external[axis.internal[id]] = id;
  return external;
}

TokenGrid::TokenGrid(std::span<const std::uint64_t> lengths, std::span<const std::uint64_t> frequencies,
                     const Shape& shape)
    : workers_(shape.workers),
      first_here_(shape.first_here),
      end_here_(std::min(shape.end_here, shape.workers)),
      documents_(deal_documents(checked_counts(lengths, "document"), shape)),
      words_(deal_axis(checked_counts(frequencies, "word"), shape.blocks, frequencies.size())),
      tokens_(std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0})),
      stripes_(shape.document_blocks * shape.workers) {}

TokenGrid::TokenGrid(const Corpus& corpus, const Shape& shape, const ParallelFor& parallel)
    : TokenGrid(document_lengths(corpus), word_frequencies(corpus), shape) {
  for (std::size_t block = 0; block < document_blocks(); ++block) fill(block, corpus, 0, parallel);
}

std::uint64_t TokenGrid::tokens_of(std::size_t stripe) const {
  return std::accumulate(documents_.counts.begin() + documents_.begin[stripe],
                         documents_.counts.begin() + documents_.begin[stripe + 1], std::uint64_t{0});
}

void TokenGrid::fill(std::size_t document_block, const Corpus& corpus, std::uint32_t first,
                     const ParallelFor& parallel) {
  const std::uint32_t begin = first_document(document_block), end = first_document(document_block + 1);
  std::vector<std::uint32_t> corpus_documents(end - begin);  // by internal number
  for (std::uint32_t id = begin; id < end; ++id) corpus_documents[documents_.internal[id] - begin] = id - first;
  parallel(end_here_ - first_here_,
           [&](std::size_t i) { fill_stripe(stripe_of(document_block, first_here_ + i), corpus, corpus_documents); });
  for (std::size_t w = first_here_; w < end_here_; ++w) {
    for (const Run& run : stripe(stripe_of(document_block, w)).runs) {
      longest_run_ = std::max<std::size_t>(longest_run_, run.tokens);
    }
  }
}

// A counting sort of the stripe's tokens by word; documents come in order, so they ascend within a run.
void TokenGrid::fill_stripe(std::size_t s, const Corpus& corpus, std::span<const std::uint32_t> corpus_documents) {
  const std::uint32_t first = documents_.begin[s], last = documents_.begin[s + 1];
  const std::uint32_t base = first_document(s / workers_);
  const auto for_each_cell = [&](const auto& visit) {
    for (std::uint32_t d = first; d < last; ++d) {
      const std::uint32_t at = corpus_documents[d - base];
      for (std::uint64_t c = corpus.starts[at]; c < corpus.starts[at + 1]; ++c) {
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
