#include "engine/data/corpus.h"

#include <algorithm>
#include <limits>

#include "engine/checksum.h"
#include "engine/data/corpus_parts.h"
#include "engine/data/id_map.h"
#include "engine/data/packed_corpus.h"
#include "engine/data/sparse_rows.h"
#include "engine/data/text_ids.h"
#include "engine/error.h"

namespace orrery {

const std::vector<DataFormat>& corpus_formats() {
  static const std::vector<DataFormat> kFormats = {DataFormat::packed, DataFormat::docword, DataFormat::svmlight,
                                                   DataFormat::text};
  return kFormats;
}

bool is_corpus_format(DataFormat format) {
  return std::find(corpus_formats().begin(), corpus_formats().end(), format) != corpus_formats().end();
}

namespace {

// Counting sort by document, then each document by word.
std::vector<CorpusCell> by_document(const std::vector<CorpusCell>& cells, std::uint32_t documents,
                                    std::vector<std::uint64_t>& begins) {
  begins.assign(static_cast<std::size_t>(documents) + 1, 0);
  for (const CorpusCell& cell : cells) ++begins[cell.document + 1];
  for (std::size_t d = 0; d < documents; ++d) begins[d + 1] += begins[d];
  std::vector<std::uint64_t> cursor(begins.begin(), begins.end() - 1);
  std::vector<CorpusCell> sorted(cells.size());
  for (const CorpusCell& cell : cells) sorted[static_cast<std::size_t>(cursor[cell.document]++)] = cell;
  for (std::size_t d = 0; d < documents; ++d) {
    const auto begin = sorted.begin() + static_cast<std::ptrdiff_t>(begins[d]);
    const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(begins[d + 1]);
    const auto by_word = [](const CorpusCell& a, const CorpusCell& b) { return a.word < b.word; };
    if (!std::is_sorted(begin, end, by_word)) std::sort(begin, end, by_word);
  }
  return sorted;
}

}  // namespace

std::uint64_t build_corpus(const InputFile& file, const std::vector<CorpusCell>& cells, std::uint32_t documents,
                           Corpus& corpus) {
  std::vector<std::uint64_t> begins;
  const std::vector<CorpusCell> sorted = by_document(cells, documents, begins);
  std::uint64_t doubled = 0;
  corpus.starts.reserve(static_cast<std::size_t>(documents) + 1);
  for (std::uint32_t d = 0; d < documents; ++d) {
    for (std::uint64_t c = begins[d]; c < begins[d + 1]; ++c) {
      const CorpusCell& cell = sorted[static_cast<std::size_t>(c)];
      corpus.tokens += cell.count;
      if (corpus.words.size() > corpus.starts.back() && corpus.words.back() == cell.word) {
        ++doubled;
        if (cell.count > std::numeric_limits<std::uint32_t>::max() - corpus.counts.back()) {
          throw data_error(file.path(), "the counts of word " + std::to_string(cell.word + 1) + " in document " +
                                            std::to_string(d + 1) + " add up to more than 2^32 - 1");
        }
        corpus.counts.back() += cell.count;
      } else {
        corpus.words.push_back(cell.word);
        corpus.counts.push_back(cell.count);
      }
    }
    corpus.starts.push_back(corpus.words.size());
  }
  return doubled;
}

void read_svmlight_corpus(InputFile& file, const CorpusOptions& options, CorpusData& data) {
  const SparseRows rows = read_sparse_rows(file, options.read, data.warnings);
  Corpus& corpus = data.corpus;
  for (std::uint64_t r = 0; r < rows.rows(); ++r) {
    for (std::uint64_t e = rows.starts[r]; e < rows.starts[r + 1]; ++e) {
      const float value = rows.values[e];
      const bool whole =
          value >= 0 && value < 0x1p32F && value == static_cast<float>(static_cast<std::uint32_t>(value));
      if (!whole) {
        throw data_error(file.path(), "row " + std::to_string(r + 1) + ", word " + std::to_string(rows.columns[e] + 1) +
                                          ": expected a count of words, got " + std::to_string(value));
      }
      if (value == 0) continue;
      corpus.words.push_back(rows.columns[e]);
      corpus.counts.push_back(static_cast<std::uint32_t>(value));
      corpus.tokens += corpus.counts.back();
    }
    corpus.starts.push_back(corpus.words.size());
  }
  corpus.word_count = rows.column_count;
}

std::vector<std::string> read_vocabulary(const std::string& path) {
  std::vector<std::string> words = IdMap::load(path).texts();
  if (words.empty()) throw data_error(path, "expected a vocabulary, got an empty file");
  for (std::string& word : words) {
    if (word.ends_with('\r')) word.pop_back();
  }
  return words;
}

namespace {

DataFormat corpus_format(InputFile& file, const CorpusOptions& options) {
  if (!options.format) return detect_format(file, corpus_formats()).format;
  if (!is_corpus_format(*options.format)) {
    throw usage_error("a corpus can be read from the formats docword, text, svmlight and packed, not from " +
                      std::string{format_name(*options.format)});
  }
  return *options.format;
}

// The words of a corpus that knows them by name, numbered as another vocabulary does; the others are left out.
void translate(const InputFile& file, const std::vector<std::string>& vocabulary, CorpusData& data) {
  TextIds known;
  for (const std::string& word : vocabulary) known.insert(word);
  std::vector<std::uint32_t> numbers;
  for (const std::string& word : data.corpus.vocabulary) numbers.push_back(known.find(word));
  std::vector<CorpusCell> cells;
  for (std::size_t d = 0; d < data.corpus.documents(); ++d) {
    for (std::uint64_t c = data.corpus.starts[d]; c < data.corpus.starts[d + 1]; ++c) {
      const std::uint32_t number = numbers[data.corpus.words[c]];
      if (number == TextIds::kNone) {
        data.unknown_tokens += data.corpus.counts[c];
      } else {
        cells.push_back({static_cast<std::uint32_t>(d), number, data.corpus.counts[c]});
      }
    }
  }
  Corpus translated;
  build_corpus(file, cells, static_cast<std::uint32_t>(data.corpus.documents()), translated);
  translated.word_count = static_cast<std::uint32_t>(vocabulary.size());
  if (data.unknown_tokens > 0) {
    data.warnings.push_back(std::to_string(data.unknown_tokens) + " of " + std::to_string(data.corpus.tokens) +
                            " tokens are not in the vocabulary; they were left out");
  }
  data.corpus = std::move(translated);
}

void read_packed(const InputFile& file, const CorpusOptions& options, CorpusData& data) {
  if (!options.vocabulary_path.empty()) {
    throw usage_error("--vocab: " + file.path() + " is packed and keeps the words that it was packed with");
  }
  const Recognised recognised = data.recognised;
  data = read_packed_corpus(file.path());
  data.recognised = recognised;
  if (options.vocabulary != nullptr && data.named) translate(file, *options.vocabulary, data);
}

// A vocabulary names the words; without one they have numbers only.
void name_words(const std::string& path, const CorpusOptions& options, CorpusData& data) {
  if (options.vocabulary == nullptr) return;
  Corpus& corpus = data.corpus;
  if (corpus.word_count > options.vocabulary->size()) {
    throw data_error(path, "the corpus has " + std::to_string(corpus.word_count) + " words, the vocabulary only " +
                               std::to_string(options.vocabulary->size()));
  }
  if (data.recognised.format == DataFormat::docword && corpus.word_count < options.vocabulary->size()) {
    data.warnings.push_back("the header promises " + std::to_string(corpus.word_count) + " words, the vocabulary has " +
                            std::to_string(options.vocabulary->size()) + "; the last ones never occur");
  }
  corpus.word_count = static_cast<std::uint32_t>(options.vocabulary->size());
  corpus.vocabulary = *options.vocabulary;
}

}  // namespace

CorpusData read_corpus(const std::string& path, const CorpusOptions& given) {
  CorpusOptions options = given;
  std::vector<std::string> vocabulary;
  if (!options.vocabulary_path.empty() && options.vocabulary == nullptr) {
    vocabulary = read_vocabulary(options.vocabulary_path);
    options.vocabulary = &vocabulary;
  }
  InputFile file(path);
  CorpusData data;
  data.recognised = {.format = corpus_format(file, options), .gzip = file.gzip()};
  switch (data.recognised.format) {
    case DataFormat::docword:
      read_docword(file, options, data);
      break;
    case DataFormat::svmlight:
      read_svmlight_corpus(file, options, data);
      break;
    case DataFormat::packed:
      read_packed(file, options, data);
      break;
    default:
      read_text_corpus(file, options, data);
      data.named = true;
      data.keep_case = options.keep_case;
  }
  if (data.corpus.tokens == 0) throw data_error(path, "expected a corpus, got a file without any word");
  name_words(path, options, data);
  Checksum sum;
  sum.update(std::as_bytes(std::span{data.corpus.starts}))
      .update(std::as_bytes(std::span{data.corpus.words}))
      .update(std::as_bytes(std::span{data.corpus.counts}));
  for (const std::string& word : data.corpus.vocabulary) sum.update(word).update("\n");
  data.checksum = sum.value();
  return data;
}

}  // namespace orrery
