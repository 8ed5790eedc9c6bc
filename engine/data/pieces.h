// Text cut into pieces at line ends, parsed by many threads, and put together in the order of the file. Keeps two
// promises of the readers: what comes out is the same for every piece size and thread count, and the error that is
// reported is the first one of the file, with its true line.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/data/input_file.h"
#include "engine/data/parallel_for.h"

namespace orrery {

/// Whole lines. Never empty; the last byte is a newline, so a scan that stops at newlines needs no other bound.
struct TextPiece {
  const char* begin = nullptr;
  const char* end = nullptr;
};

/// A line that cannot be parsed. The line counts from 0 within its piece, the column from 1.
struct ParseFault {
  std::uint64_t line = 0;
  std::uint64_t column = 0;
  std::string expected;
  std::string got;
};

/// What every parser of a piece reports beside its result.
struct PieceStatus {
  std::uint64_t lines = 0;       ///< lines of the piece (of a piece with a fault: not used)
  std::uint64_t data_lines = 0;  ///< lines that were neither blank nor comments
  std::uint64_t crlf_lines = 0;
  std::optional<ParseFault> fault;
};

/// What was seen of the text as a whole.
struct TextSummary {
  std::uint64_t lines = 0;
  std::uint64_t data_lines = 0;
  std::uint64_t crlf_lines = 0;
  std::uint64_t bytes = 0;
  bool final_newline = true;

  /// One warning for each oddity that was accepted.
  std::vector<std::string> warnings() const;
};

/// Where parsing starts: behind header lines that the reader has taken from InputFile::peek().
struct TextStart {
  std::uint64_t offset = 0;
  std::uint64_t lines = 0;
};

/// Hands the text of a file out in waves of pieces. A wave is `piece_count` calls of piece(), from any threads.
class PieceSource {
 public:
  virtual ~PieceSource() = default;
  /// Gets the next wave ready; 0 at the end of the text.
  virtual std::size_t next_wave() = 0;
  /// Calls `parse` with piece i of the wave; not at all when no line begins in it.
  virtual void piece(std::size_t i, const std::function<void(TextPiece)>& parse) = 0;
  /// Runs while the pieces of a wave are parsed: work that only one thread can do (undoing gzip).
  virtual void read_ahead() {}
  /// An error of the input behind the last piece that was handed out.
  virtual void rethrow_fault() {}

  std::uint64_t bytes() const { return bytes_; }
  bool final_newline() const { return final_newline_; }

 protected:
  std::uint64_t bytes_ = 0;
  bool final_newline_ = true;
};

std::unique_ptr<PieceSource> make_piece_source(InputFile& file, const ReadOptions& options, TextStart start);

/// Throws the fault of a piece as an Error of the file; `lines_before` lines precede the piece.
[[noreturn]] void throw_fault(const InputFile& file, const ParseFault& fault, std::uint64_t lines_before);

/// Parses the rest of `file` behind `start`. `parse(TextPiece, Result&)` is called in parallel, on a Result that may
/// have been used for an earlier piece and must be cleared; Result derives from PieceStatus. `take(std::span<Result>,
/// lines)` is called from this thread with the pieces in the order of the file, a wave at a time, `lines` lines behind
/// the start of the file. Throws the first fault of the file, after the pieces before it were taken.
template <class Result, class Parse, class Take>
TextSummary parse_pieces(InputFile& file, const ReadOptions& options, TextStart start, const Parse& parse,
                         const Take& take) {
  const auto source = make_piece_source(file, options, start);
  TextSummary summary{.lines = start.lines};
  std::vector<Result> results(options.wave_pieces);
  while (const std::size_t count = source->next_wave()) {
    options.parallel(count + 1, [&](std::size_t i) {
      if (i == 0) {
        source->read_ahead();
        return;
      }
      Result& result = results[i - 1];
      static_cast<PieceStatus&>(result) = PieceStatus{};
      bool any = false;
      source->piece(i - 1, [&](TextPiece piece) {
        any = true;
        parse(piece, result);
      });
      if (!any) result.clear();
    });
    const std::span<Result> wave{results.data(), count};
    std::size_t good = 0;
    const std::uint64_t lines_before_wave = summary.lines;
    while (good < count && !wave[good].fault) {
      summary.lines += wave[good].lines;
      summary.data_lines += wave[good].data_lines;
      summary.crlf_lines += wave[good].crlf_lines;
      ++good;
    }
    take(wave.first(good), lines_before_wave);
    if (good < count) throw_fault(file, *wave[good].fault, summary.lines);
  }
  source->rethrow_fault();
  summary.bytes = source->bytes();
  summary.final_newline = source->final_newline();
  return summary;
}

}  // namespace orrery
