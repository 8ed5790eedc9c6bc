#include "engine/data/corpus_filter.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/data/text_ids.h"
#include "engine/error.h"

namespace orrery {

namespace {

constexpr std::uint32_t kGone = TextIds::kNone;

std::vector<std::uint64_t> documents_of_words(const Corpus& corpus) {
  std::vector<std::uint64_t> documents(corpus.word_count, 0);
  for (const std::uint32_t word : corpus.words) ++documents[word];  // a cell is a document's only one for its word
  return documents;
}

// Keeps the cells whose word has a new number, with that number. Returns the tokens of the others.
std::uint64_t take_words(const std::vector<std::uint32_t>& new_numbers, std::uint32_t words, Corpus& corpus) {
  std::uint64_t gone = 0, kept = 0, first = 0;
  for (std::size_t d = 0; d < corpus.documents(); ++d) {
    const std::uint64_t last = corpus.starts[d + 1];
    for (std::uint64_t c = first; c < last; ++c) {
      const std::uint32_t word = corpus.words[c];
      const std::uint32_t number = word < new_numbers.size() ? new_numbers[word] : kGone;
      if (number == kGone) {
        gone += corpus.counts[c];
        continue;
      }
      corpus.words[kept] = number;
      corpus.counts[kept++] = corpus.counts[c];
    }
    first = last;
    corpus.starts[d + 1] = kept;
  }
  corpus.words.resize(kept);
  corpus.counts.resize(kept);
  corpus.tokens -= gone;
  corpus.word_count = words;
  return gone;
}

std::vector<bool> stop_words(const CorpusFilter& filter, const std::string& path, const Corpus& corpus) {
  std::vector<bool> stopped(corpus.word_count, false);
  if (filter.stop_words_path.empty()) return stopped;
  if (corpus.vocabulary.empty()) {
    throw usage_error("--stop-words: " + path + " has numbers instead of words; --vocab FILE names them");
  }
  TextIds stops;
  for (const std::string& word : read_vocabulary(filter.stop_words_path)) stops.insert(word);
  for (std::uint32_t w = 0; w < corpus.word_count; ++w) stopped[w] = stops.find(corpus.vocabulary[w]) != kGone;
  return stopped;
}

}  // namespace

WordChoice choose_words(const CorpusFilter& filter, const std::string& path, const Corpus& corpus,
                        const std::vector<std::uint64_t>& documents_of_words, std::uint64_t documents) {
  const std::vector<bool> stopped = stop_words(filter, path, corpus);
  const double most = filter.largest_share * static_cast<double>(documents);
  WordChoice choice;
  for (std::uint32_t w = 0; w < corpus.word_count; ++w) {
    const std::uint64_t in = documents_of_words[w];
    const bool stays = !stopped[w] && in >= filter.least_documents && static_cast<double>(in) <= most;
    choice.gone += !stays && in > 0 ? 1 : 0;
    if (stays) choice.numbers.push_back(w);
  }
  return choice;
}

std::vector<std::string> names_of(const std::vector<std::uint32_t>& numbers,
                                  const std::vector<std::string>& vocabulary) {
  std::vector<std::string> names;
  if (vocabulary.empty()) return names;
  for (const std::uint32_t number : numbers) names.push_back(vocabulary[number]);
  return names;
}

void warn_of_filter(std::uint64_t words, std::uint64_t tokens, std::vector<std::string>& warnings) {
  if (words == 0) return;
  warnings.push_back(std::to_string(words) + " words with " + std::to_string(tokens) +
                     " tokens were left out (stop words and document frequencies)");
}

Error no_words_left(const std::string& path) {
  return data_error(path, "no word is left after stop words and document frequencies");
}

std::vector<std::uint32_t> filter_corpus(const CorpusFilter& filter, const std::string& path, CorpusData& data) {
  Corpus& corpus = data.corpus;
  WordChoice choice = choose_words(filter, path, corpus, documents_of_words(corpus), corpus.documents());
  const std::uint64_t tokens_gone = renumber_corpus(choice.numbers, corpus);
  if (corpus.tokens == 0) throw no_words_left(path);
  corpus.vocabulary = names_of(choice.numbers, corpus.vocabulary);
  warn_of_filter(choice.gone, tokens_gone, data.warnings);
  return std::move(choice.numbers);
}

std::uint64_t renumber_corpus(const std::vector<std::uint32_t>& numbers, Corpus& corpus) {
  std::vector<std::uint32_t> new_numbers;
  for (std::uint32_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] >= new_numbers.size()) new_numbers.resize(std::size_t{numbers[i]} + 1, kGone);
    new_numbers[numbers[i]] = i;
  }
  return take_words(new_numbers, static_cast<std::uint32_t>(numbers.size()), corpus);
}

}  // namespace orrery
