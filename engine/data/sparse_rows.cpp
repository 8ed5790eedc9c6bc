#include "engine/data/sparse_rows.h"

#include <limits>

#include "engine/checksum.h"
#include "engine/data/input_file.h"
#include "engine/data/pieces.h"
#include "engine/data/scan.h"
#include "engine/error.h"

namespace orrery {

namespace {

constexpr std::uint64_t kMostIndex = std::numeric_limits<std::uint32_t>::max() - 1;

struct SparsePiece : PieceStatus {
  std::vector<double> labels;
  std::vector<std::uint64_t> ends;  // of rows, within the piece
  std::vector<std::uint32_t> columns;
  std::vector<float> values;
  std::uint32_t column_count = 0;

  void clear() {
    labels.clear();
    ends.clear();
    columns.clear();
    values.clear();
    column_count = 0;
  }
};

class SparseParser {
 public:
  SparseParser(TextPiece piece, SparsePiece& out) : out_(out), end_(piece.end), at_(piece.begin) { out.clear(); }

  void run() {
    while (at_ < end_) {
      line_ = at_;
      at_ = skip_blanks(at_);
      if (line_end_at(at_) == 0 && *at_ != '#' && !row()) return;
      end_line();
    }
  }

 private:
  bool row() {
    double label = 0;
    const NumberFault fault = parse_double(at_, end_, label, at_);
    if (fault != NumberFault::none) return fail(expected_number(fault, "a label"));
    if (!at_word_end()) return fail("a blank behind the label");
    std::uint64_t last = 0;
    while (true) {
      at_ = skip_blanks(at_);
      if (line_end_at(at_) != 0 || *at_ == '#') break;
      if (!feature(last)) return false;
    }
    out_.labels.push_back(label);
    out_.ends.push_back(out_.columns.size());
    ++out_.data_lines;
    return true;
  }

  bool feature(std::uint64_t& last) {
    std::uint64_t index = 0;
    const char* behind = nullptr;
    if (at_[0] == 'q' && at_[1] == 'i' && at_[2] == 'd' && at_[3] == ':') {
      if (!parse_unsigned(at_ + 4, end_, ~std::uint64_t{0}, index, behind)) return fail("qid and a number");
      at_ = behind;
      return at_word_end() || fail("a blank behind the qid");
    }
    if (!is_digit(*at_)) return fail("a feature as index:value");
    if (!parse_unsigned(at_, end_, kMostIndex, index, behind) || index == 0) {
      return fail("a feature index from 1 to " + std::to_string(kMostIndex));
    }
    if (*behind != ':') return fail("a feature as index:value");
    if (index <= last) return fail("a feature index above " + std::to_string(last) + " (indices must ascend)");
    last = index;
    at_ = behind + 1;
    float value = 0;
    const NumberFault fault = parse_float(at_, end_, value, at_);
    if (fault != NumberFault::none) return fail(expected_number(fault, "a feature value"));
    if (!at_word_end()) return fail("a blank behind the feature value");
    out_.columns.push_back(static_cast<std::uint32_t>(index - 1));
    out_.values.push_back(value);
    out_.column_count = std::max(out_.column_count, static_cast<std::uint32_t>(index));
    return true;
  }

  bool at_word_end() const { return is_blank(*at_) || line_end_at(at_) != 0 || *at_ == '#'; }

  void end_line() {
    if (*at_ == '#') {
      at_ = find_newline(at_);
      if (at_[-1] == '\r') --at_;
    }
    const int length = line_end_at(at_);
    out_.crlf_lines += length == 2 ? 1 : 0;
    ++out_.lines;
    at_ += length;
  }

  bool fail(std::string expected) {
    out_.fault = ParseFault{out_.lines, static_cast<std::uint64_t>(at_ - line_) + 1, std::move(expected),
                            std::string{word_at(at_)}};
    return false;
  }

  SparsePiece& out_;
  const char* end_;
  const char* at_;
  const char* line_ = nullptr;
};

void append(SparseRows& rows, const SparsePiece& piece) {
  const std::uint64_t before = rows.entries();
  rows.labels.insert(rows.labels.end(), piece.labels.begin(), piece.labels.end());
  for (const std::uint64_t end : piece.ends) rows.starts.push_back(before + end);
  rows.columns.insert(rows.columns.end(), piece.columns.begin(), piece.columns.end());
  rows.values.insert(rows.values.end(), piece.values.begin(), piece.values.end());
  rows.column_count = std::max(rows.column_count, piece.column_count);
}

}  // namespace

SparseRows read_sparse_rows(InputFile& file, const ReadOptions& options, std::vector<std::string>& warnings) {
  SparseRows rows;
  const TextSummary summary = parse_pieces<SparsePiece>(
      file, options, {}, [](TextPiece piece, SparsePiece& out) { SparseParser(piece, out).run(); },
      [&](std::span<SparsePiece> wave, std::uint64_t) {
        for (const SparsePiece& piece : wave) append(rows, piece);
      });
  if (rows.rows() == 0) {
    throw data_error(file.path(), summary.bytes == 0 ? "expected sparse rows, got an empty file"
                                                     : "expected sparse rows, got only comments and blank lines");
  }
  for (std::string& warning : summary.warnings()) warnings.push_back(std::move(warning));
  return rows;
}

std::uint64_t checksum_of(const SparseRows& rows) {
  return Checksum{}
      .update(std::as_bytes(std::span{rows.labels}))
      .update(std::as_bytes(std::span{rows.starts}))
      .update(std::as_bytes(std::span{rows.columns}))
      .update(std::as_bytes(std::span{rows.values}))
      .value();
}

SparseData read_svmlight(const std::string& path, const SparseOptions& options) {
  InputFile file(path);
  SparseData data;
  data.recognised = {.format = DataFormat::svmlight, .gzip = file.gzip()};
  data.rows = read_sparse_rows(file, options.read, data.warnings);
  data.labels = recognise_labels(data.rows.labels);
  data.checksum = checksum_of(data.rows);
  return data;
}

}  // namespace orrery
