// Documents as bags of words: UCI docword files, plain text with a document a line, svmlight with word counts, and what
// was packed from one of these.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/format.h"
#include "engine/data/parallel_for.h"

namespace orrery {

/// Document d holds the cells [starts[d], starts[d + 1]): a word (0-based, ascending within a document) and how often
/// it occurs. A document may be empty.
struct Corpus {
  std::vector<std::uint64_t> starts{0};
  std::vector<std::uint32_t> words;
  std::vector<std::uint32_t> counts;
  std::uint32_t word_count = 0;         ///< size of the vocabulary
  std::vector<std::string> vocabulary;  ///< empty when no words are known, only their numbers
  std::uint64_t tokens = 0;             ///< sum of counts

  std::uint64_t documents() const { return starts.size() - 1; }
  std::uint64_t cells() const { return words.size(); }
};

struct CorpusOptions {
  ReadOptions read;
  std::optional<DataFormat> format;  ///< docword, text, svmlight or packed instead of what the content says
  std::string vocabulary_path;       ///< one word a line; fixes the words of a text, and must fit a docword's W
  /// A model's vocabulary: as vocabulary_path, but already in memory.
  const std::vector<std::string>* vocabulary = nullptr;
  bool keep_case = false;  ///< text: do not lower the letters A to Z
};

struct CorpusData {
  Corpus corpus;
  std::uint64_t unknown_tokens = 0;  ///< text: tokens that a given vocabulary lacks; they are left out
  bool named = false;                ///< words came as words, not as numbers: a text, or one that was packed
  bool keep_case = false;            ///< and the letters A to Z were not lowered
  std::uint64_t checksum = 0;
  Recognised recognised;
  std::vector<std::string> warnings;
};

/// Reads a corpus. Text is cut at white space; words are numbered in the order of their first appearance (or by the
/// given vocabulary), and line n is document n even when it is empty. Throws data_error with the place for the first
/// bad line, for a docword header that disagrees with its body, for sizes that the file cannot justify, and for no
/// words. A packed corpus takes no vocabulary but a model's, and only if its words have names.
CorpusData read_corpus(const std::string& path, const CorpusOptions& options = {});

/// What can hold a corpus; the order is that in which a content is tried.
const std::vector<DataFormat>& corpus_formats();
bool is_corpus_format(DataFormat format);

/// One word a line. Throws data_error for an empty line, a doubled word or an empty file.
std::vector<std::string> read_vocabulary(const std::string& path);

}  // namespace orrery
