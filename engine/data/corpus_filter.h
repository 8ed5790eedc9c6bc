// Which words of a corpus a topic model sees: not stop words, not words of too few or too many documents.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/corpus.h"

namespace orrery {

struct CorpusFilter {
  std::string stop_words_path;        ///< one word a line, compared as the corpus spells them; empty: none
  std::uint64_t least_documents = 1;  ///< words of fewer documents are left out; 0 keeps words that never occur
  double largest_share = 1;           ///< words of a larger share of the documents are left out
};

/// Leaves words out and numbers the others anew, in their old order. Documents stay, even when nothing is left of them.
/// Returns the old number of each word that stayed. Adds a warning that says how many went. Throws usage_error for stop
/// words without a vocabulary, data_error when no word or no token is left. Cost: two passes.
std::vector<std::uint32_t> filter_corpus(const CorpusFilter& filter, const std::string& path, CorpusData& data);

/// The same corpus with words numbered as in `numbers` (what filter_corpus() returned for another corpus of the same
/// numbering), without those that are not there; returns the tokens left out.
std::uint64_t renumber_corpus(const std::vector<std::uint32_t>& numbers, Corpus& corpus);

}  // namespace orrery
