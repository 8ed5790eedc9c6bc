// Plain text with a document a line, cut at white space.
#include <algorithm>

#include "engine/data/corpus_parts.h"
#include "engine/data/pieces.h"
#include "engine/data/scan.h"
#include "engine/data/text_ids.h"
#include "engine/error.h"

namespace orrery {

namespace {

struct TextCorpusPiece : PieceStatus {
  TextIds fresh;                      // words that no earlier wave had, in the order of their appearance
  std::vector<std::uint32_t> tokens;  // numbers of words; kUnknown for words outside a given vocabulary
  std::vector<std::uint64_t> ends;    // of documents
  void clear() {
    fresh.clear();
    tokens.clear();
    ends.clear();
  }
};

constexpr std::uint32_t kUnknown = TextIds::kNone;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The length of the UTF-8 character that begins at `at`; 0 for a NUL and for bytes that are none (RFC 3629: no overlong
// forms, no surrogates, at most U+10FFFF).
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(at), second = byte(at + 1);
  if (first < 0x80) return first == 0 ? 0 : 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(at + 1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool overlong = first == 0xE0 && second < 0xA0, surrogate = first == 0xED && second > 0x9F;
    return continues(at + 1) && continues(at + 2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool overlong = first == 0xF0 && second < 0x90, too_large = first == 0xF4 && second > 0x8F;
    return continues(at + 1) && continues(at + 2) && continues(at + 3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

// Numbers the tokens of a piece: known words by `seen`, others from its size on (or unknown, for a fixed vocabulary).
class Tokeniser {
 public:
  Tokeniser(const TextIds& seen, bool fixed, bool keep_case) : seen_(seen), fixed_(fixed), keep_case_(keep_case) {}

  void run(TextPiece piece, TextCorpusPiece& out) {
    out.clear();
    for (const char* p = piece.begin; p < piece.end; ++p) {
      const char* end = find_newline(p);
      if (end > p && end[-1] == '\r') ++out.crlf_lines;
      const std::string_view text{p, static_cast<std::size_t>(end - p)};
      if (!is_text(text, out)) return;
      line(text, out);
      ++out.lines;
      ++out.data_lines;
      p = end;
    }
  }

 private:
  // Sets the fault of the piece when the line is no text.
  static bool is_text(std::string_view text, TextCorpusPiece& out) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = utf8_length(text, at);
      if (length == 0) {
        constexpr std::string_view kDigits = "0123456789ABCDEF";
        const auto byte = static_cast<unsigned char>(text[at]);
        out.fault = ParseFault{out.lines, at + 1, "text in UTF-8 without NUL",
                               std::string{"byte 0x"} + kDigits[byte / 16] + kDigits[byte % 16]};
        return false;
      }
      at += length;
    }
    return true;
  }

  void line(std::string_view text, TextCorpusPiece& out) {
    for (std::size_t at = 0; at < text.size();) {
      while (at < text.size() && is_space(text[at])) ++at;
      const std::size_t begin = at;
      while (at < text.size() && !is_space(text[at])) ++at;
      if (at > begin) out.tokens.push_back(number(text.substr(begin, at - begin), out));
    }
    out.ends.push_back(out.tokens.size());
  }

  std::uint32_t number(std::string_view token, TextCorpusPiece& out) {
    word_.assign(token);
    if (!keep_case_) {
      for (char& c : word_) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    const std::uint32_t known = seen_.find(word_);
    if (known != TextIds::kNone || fixed_) return known;
    return seen_.size() + out.fresh.insert(word_);
  }

  const TextIds& seen_;
  bool fixed_;
  bool keep_case_;
  std::string word_;
};

class TextCorpusBuilder {
 public:
  TextCorpusBuilder(CorpusData& data, TextIds& words) : data_(data), words_(words) {}

  void take(std::span<TextCorpusPiece> wave) {
    const std::uint32_t seen = words_.size();
    for (TextCorpusPiece& piece : wave) {
      std::vector<std::uint32_t> table(piece.fresh.size());
      for (std::uint32_t i = 0; i < piece.fresh.size(); ++i) table[i] = words_.insert(piece.fresh[i]);
      for (std::uint32_t& token : piece.tokens) {
        if (token >= seen && token != kUnknown) token = table[token - seen];
      }
      std::uint64_t begin = 0;
      for (const std::uint64_t end : piece.ends) {
        document(std::span{piece.tokens}.subspan(begin, end - begin));
        begin = end;
      }
    }
  }

 private:
  void document(std::span<std::uint32_t> tokens) {
    Corpus& corpus = data_.corpus;
    std::sort(tokens.begin(), tokens.end());  // the unknown ones come last
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] == kUnknown) {
        data_.unknown_tokens += tokens.size() - i;
        break;
      }
      if (i > 0 && tokens[i] == tokens[i - 1]) {
        ++corpus.counts.back();
      } else {
        corpus.words.push_back(tokens[i]);
        corpus.counts.push_back(1);
      }
      ++corpus.tokens;
    }
    corpus.starts.push_back(corpus.words.size());
  }

  CorpusData& data_;
  TextIds& words_;
};

}  // namespace

void read_text_corpus(InputFile& file, const CorpusOptions& options, CorpusData& data) {
  TextIds words;
  if (options.vocabulary != nullptr) {
    for (const std::string& word : *options.vocabulary) words.insert(word);
  }
  TextCorpusBuilder builder(data, words);
  const TextSummary summary = parse_pieces<TextCorpusPiece>(
      file, options.read, {},
      [&](TextPiece piece, TextCorpusPiece& out) {
        Tokeniser(words, options.vocabulary != nullptr, options.keep_case).run(piece, out);
      },
      [&](std::span<TextCorpusPiece> wave, std::uint64_t) { builder.take(wave); });
  if (summary.bytes == 0) throw data_error(file.path(), "expected a corpus, got an empty file");
  data.warnings = summary.warnings();
  if (data.unknown_tokens > 0) {
    data.warnings.push_back(std::to_string(data.unknown_tokens) + " of " +
                            std::to_string(data.unknown_tokens + data.corpus.tokens) +
                            " tokens are not in the vocabulary; they were left out");
  }
  data.corpus.word_count = words.size();
  data.corpus.vocabulary.reserve(words.size());
  for (std::uint32_t i = 0; i < words.size(); ++i) data.corpus.vocabulary.emplace_back(words[i]);
}

}  // namespace orrery
