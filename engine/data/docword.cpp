// The UCI bag-of-words spelling: three header lines D, W, NNZ, then `document word count` with indices from 1.
#include <algorithm>
#include <limits>

#include "engine/data/corpus_parts.h"
#include "engine/data/pieces.h"
#include "engine/data/scan.h"
#include "engine/error.h"

namespace orrery {

namespace {

struct DocwordHeader {
  std::uint64_t documents = 0;
  std::uint64_t words = 0;
  std::uint64_t cells = 0;
  TextStart body;
};

// The header is short; blank lines before and between are allowed.
DocwordHeader read_docword_header(InputFile& file) {
  static constexpr std::string_view kWhat[] = {"the number of documents", "the number of words",
                                               "the number of document-word pairs"};
  static constexpr std::uint64_t kMost[] = {0xFFFFFFFE, 0xFFFFFFFE, ~std::uint64_t{0}};
  std::string head{file.peek(std::size_t{1} << 16)};
  if (head.empty()) throw data_error(file.path(), "expected a corpus, got an empty file");
  if (!head.ends_with('\n')) head += '\n';
  DocwordHeader header;
  std::uint64_t* fields[] = {&header.documents, &header.words, &header.cells};
  std::size_t field = 0;
  const char* const limit = head.data() + head.size();
  for (const char* line = head.data(); line < limit && field < 3;) {
    const char* at = skip_blanks(line);
    if (line_end_at(at) == 0) {
      const char* behind = at;
      const bool number = parse_unsigned(at, limit, kMost[field], *fields[field], behind);
      if (!number || line_end_at(skip_blanks(behind)) == 0) {
        throw data_error(file.path(), header.body.lines + 1, static_cast<std::uint64_t>(at - line) + 1,
                         std::string{kWhat[field]} + " alone in its line", {at, find_newline(at)});
      }
      ++field;
    }
    line = find_newline(at) + 1;
    ++header.body.lines;
    header.body.offset = static_cast<std::uint64_t>(line - head.data());
  }
  if (field < 3) throw data_error(file.path(), header.body.lines + 1, 1, kWhat[field], "");
  return header;
}

struct DocwordPiece : PieceStatus {
  std::vector<CorpusCell> cells;
  std::uint32_t highest_document = 0;
  void clear() {
    cells.clear();
    highest_document = 0;
  }
};

class DocwordParser {
 public:
  DocwordParser(const DocwordHeader& header, TextPiece piece, DocwordPiece& out)
      : header_(header), out_(out), end_(piece.end), at_(piece.begin) {
    out.clear();
  }

  void run() {
    while (at_ < end_) {
      line_ = at_;
      at_ = skip_blanks(at_);
      if (line_end_at(at_) == 0 && !cell()) return;
      const int length = line_end_at(at_);
      out_.crlf_lines += length == 2 ? 1 : 0;
      ++out_.lines;
      at_ += length;
    }
  }

 private:
  bool cell() {
    std::uint64_t document = 0, word = 0, count = 0;
    if (!number("a document", header_.documents, document) || !number("a word", header_.words, word) ||
        !number("a count", std::numeric_limits<std::uint32_t>::max(), count)) {
      return false;
    }
    if (line_end_at(at_) == 0) return fail("the end of the line after 3 columns");
    out_.cells.push_back({static_cast<std::uint32_t>(document - 1), static_cast<std::uint32_t>(word - 1),
                          static_cast<std::uint32_t>(count)});
    out_.highest_document = std::max(out_.highest_document, static_cast<std::uint32_t>(document));
    ++out_.data_lines;
    return true;
  }

  bool number(const char* what, std::uint64_t most, std::uint64_t& value) {
    const char* behind = nullptr;
    const bool good = parse_unsigned(at_, end_, most, value, behind) && value > 0;
    if (!good || !(is_blank(*behind) || line_end_at(behind) != 0)) {
      return fail(std::string{what} + " from 1 to " + std::to_string(most));
    }
    at_ = skip_blanks(behind);
    return true;
  }

  bool fail(std::string expected) {
    out_.fault = ParseFault{out_.lines, static_cast<std::uint64_t>(at_ - line_) + 1, std::move(expected),
                            std::string{word_at(at_)}};
    return false;
  }

  const DocwordHeader& header_;
  DocwordPiece& out_;
  const char* end_;
  const char* at_;
  const char* line_ = nullptr;
};

// Empty documents and unused words are fine, but not so many that the file could not have meant them.
void check_sizes(const InputFile& file, const DocwordHeader& header, std::uint64_t text_bytes, bool words_named) {
  const std::uint64_t most = std::max<std::uint64_t>(text_bytes, 1 << 16);
  if (header.documents > most) {
    throw data_error(file.path(), 1, 1,
                     "a number of documents that the body justifies (at most " + std::to_string(most) + ")",
                     std::to_string(header.documents));
  }
  const std::uint64_t most_words = std::max<std::uint64_t>(text_bytes, 1 << 20);
  if (!words_named && header.words > most_words) {
    throw data_error(file.path(), 2, 1,
                     "a number of words that the body justifies (at most " + std::to_string(most_words) + ")",
                     std::to_string(header.words));
  }
}

}  // namespace

void read_docword(InputFile& file, const CorpusOptions& options, CorpusData& data) {
  const DocwordHeader header = read_docword_header(file);
  std::vector<CorpusCell> cells;
  const TextSummary summary = parse_pieces<DocwordPiece>(
      file, options.read, header.body,
      [&](TextPiece piece, DocwordPiece& out) { DocwordParser(header, piece, out).run(); },
      [&](std::span<DocwordPiece> wave, std::uint64_t) {
        for (const DocwordPiece& piece : wave) cells.insert(cells.end(), piece.cells.begin(), piece.cells.end());
      });
  if (cells.size() != header.cells) {
    throw data_error(file.path(), header.body.lines, 1,
                     "a header that agrees with the body, which has " + std::to_string(cells.size()) + " entries",
                     std::to_string(header.cells) + " entries");
  }
  check_sizes(file, header, summary.bytes, options.vocabulary != nullptr);
  const std::uint64_t doubled = build_corpus(file, cells, static_cast<std::uint32_t>(header.documents), data.corpus);
  data.corpus.word_count = static_cast<std::uint32_t>(header.words);
  data.warnings = summary.warnings();
  if (doubled > 0) {
    data.warnings.push_back(std::to_string(doubled) +
                            " entries repeat a pair of document and word; their counts were added up");
  }
}

}  // namespace orrery
