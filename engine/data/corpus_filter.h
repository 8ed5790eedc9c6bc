// Which words of a corpus a topic model sees: not stop words, not words of too few or too many documents.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/corpus.h"
#include "engine/error.h"

namespace orrery {

struct CorpusFilter {
  std::string stop_words_path;        ///< one word a line, compared as the corpus spells them; empty: none
  std::uint64_t least_documents = 1;  ///< words of fewer documents are left out; 0 keeps words that never occur
  double largest_share = 1;           ///< words of a larger share of the documents are left out
};

/// Which words stay: their numbers, ascending, and how many that occur go.
struct WordChoice {
  std::vector<std::uint32_t> numbers;
  std::uint64_t gone = 0;
};
/// Chooses by how many of the `documents` documents each word is in. Of `corpus` only the words are looked at, their
/// number and their names. Throws usage_error for stop words without a vocabulary.
WordChoice choose_words(const CorpusFilter& filter, const std::string& path, const Corpus& corpus,
                        const std::vector<std::uint64_t>& documents_of_words, std::uint64_t documents);
/// The names of these words; empty when there are none.
std::vector<std::string> names_of(const std::vector<std::uint32_t>& numbers,
                                  const std::vector<std::string>& vocabulary);
/// Warns of words that were left out, if any were.
void warn_of_filter(std::uint64_t words, std::uint64_t tokens, std::vector<std::string>& warnings);
/// The error of a corpus that has no words left.
Error no_words_left(const std::string& path);

/// Leaves words out and numbers the others anew, in their old order. Documents stay, even when nothing is left of them.
/// Returns the old number of each word that stayed. Adds a warning that says how many went. Throws usage_error for stop
/// words without a vocabulary, data_error when no word or no token is left. Cost: two passes.
std::vector<std::uint32_t> filter_corpus(const CorpusFilter& filter, const std::string& path, CorpusData& data);

/// The same corpus with words numbered as in `numbers` (what filter_corpus() returned for another corpus of the same
/// numbering), without those that are not there; returns the tokens left out.
std::uint64_t renumber_corpus(const std::vector<std::uint32_t>& numbers, Corpus& corpus);

}  // namespace orrery
