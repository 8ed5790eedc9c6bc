#include "engine/data/dense.h"

#include <algorithm>
#include <charconv>

#include "engine/checksum.h"
#include "engine/data/input_file.h"
#include "engine/data/pieces.h"
#include "engine/data/scan.h"
#include "engine/error.h"

namespace orrery {

namespace {

constexpr std::size_t kHeadBytes = std::size_t{1} << 16;

struct DensePiece : PieceStatus {
  std::vector<double> values;
  std::uint64_t rows = 0;
  void clear() {
    values.clear();
    rows = 0;
  }
};

struct DenseSyntax {
  Separator separator = Separator::comma;
  std::size_t columns = 0;
};

class DenseParser {
 public:
  DenseParser(const DenseSyntax& syntax, TextPiece piece, DensePiece& out)
      : syntax_(syntax), out_(out), end_(piece.end), at_(piece.begin) {
    out.clear();
  }

  void run() {
    while (at_ < end_) {
      line_ = at_;
      at_ = skip_blanks(at_);
      if (*at_ == '#') {
        at_ = find_newline(at_);
      } else if (line_end_at(at_) == 0 && !row()) {
        return;
      }
      const int length = line_end_at(at_);
      out_.crlf_lines += length == 2 ? 1 : 0;
      ++out_.lines;
      at_ += length;
    }
  }

 private:
  bool row() {
    for (std::size_t c = 0; c < syntax_.columns; ++c) {
      if (c > 0 && !separator(c)) return false;
      double value = 0;
      const char* begin = at_;
      const NumberFault fault = parse_double(at_, end_, value, at_);
      if (fault != NumberFault::none) return fail(number_in(c, fault));
      if (!field_ends()) {
        at_ = begin;
        return fail(number_in(c, NumberFault::not_a_number));
      }
      out_.values.push_back(value);
    }
    at_ = skip_blanks(at_);
    if (line_end_at(at_) == 0) {
      if (syntax_.separator != Separator::blanks) at_ = skip_blanks(at_ + 1);
      return fail("the end of the line after " + std::to_string(syntax_.columns) + " columns");
    }
    ++out_.rows;
    ++out_.data_lines;
    return true;
  }

  static std::string number_in(std::size_t column, NumberFault fault) {
    return expected_number(fault, "a number") + " in column " + std::to_string(column + 1);
  }

  char mark() const {
    return syntax_.separator == Separator::comma ? ',' : syntax_.separator == Separator::semicolon ? ';' : '\t';
  }

  bool field_ends() const {
    return is_blank(*at_) || line_end_at(at_) != 0 || (syntax_.separator != Separator::blanks && *at_ == mark());
  }

  bool separator(std::size_t column) {
    const char* p = at_;
    if (syntax_.separator == Separator::tab) {
      while (*p == ' ') ++p;
    } else {
      p = skip_blanks(p);
    }
    const bool blanks = syntax_.separator == Separator::blanks;
    at_ = p;
    if (line_end_at(p) != 0 || (!blanks && *p != mark())) return fail(number_in(column, NumberFault::none));
    at_ = blanks ? p : skip_padding(p + 1);
    return true;
  }

  const char* skip_padding(const char* p) const {
    while (*p == ' ' || (*p == '\t' && syntax_.separator != Separator::tab)) ++p;
    return p;
  }

  bool fail(std::string expected) {
    const char* stop = at_;
    while (line_end_at(stop) == 0 && !is_blank(*stop) && (syntax_.separator == Separator::blanks || *stop != mark())) {
      ++stop;
    }
    out_.fault = ParseFault{out_.lines, static_cast<std::uint64_t>(at_ - line_) + 1, std::move(expected),
                            std::string{at_, stop}};
    return false;
  }

  const DenseSyntax& syntax_;
  DensePiece& out_;
  const char* end_;
  const char* at_;
  const char* line_ = nullptr;
};

void read_csv(InputFile& file, const DenseOptions& options, DenseData& data) {
  DenseSyntax syntax;
  const std::string head{file.peek(kHeadBytes)};
  const ColumnLayout layout = recognise_csv_columns(head, syntax.columns);
  syntax.separator = data.recognised.separator = layout.separator;
  data.recognised.header = layout.header;
  if (layout.header) {
    for (std::string_view name : split_fields(layout.header_line, layout.separator)) {
      if (name.size() >= 2 && name.front() == '"' && name.back() == '"') name = name.substr(1, name.size() - 2);
      data.column_names.emplace_back(name);
    }
  }
  DenseMatrix& matrix = data.matrix;
  matrix.columns = syntax.columns;
  const TextSummary summary = parse_pieces<DensePiece>(
      file, options.read, {layout.data_offset, layout.data_lines_before},
      [&](TextPiece piece, DensePiece& out) { DenseParser(syntax, piece, out).run(); },
      [&](std::span<DensePiece> wave, std::uint64_t) {
        for (const DensePiece& piece : wave) {
          matrix.values.insert(matrix.values.end(), piece.values.begin(), piece.values.end());
          matrix.rows += piece.rows;
        }
      });
  if (matrix.rows == 0) {
    throw data_error(file.path(), summary.bytes == 0 ? "expected numbers, got an empty file"
                                                     : "expected numbers, got only comments and blank lines");
  }
  data.warnings = summary.warnings();
}

std::size_t label_column(const DenseData& data, const std::string& label) {
  const auto named = std::find(data.column_names.begin(), data.column_names.end(), label);
  if (named != data.column_names.end()) return static_cast<std::size_t>(named - data.column_names.begin());
  const auto columns = static_cast<std::int64_t>(data.matrix.columns);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), number);
  const bool parsed = error == std::errc{} && end == label.data() + label.size();
  if (parsed && number >= 1 && number <= columns) return static_cast<std::size_t>(number - 1);
  if (parsed && number <= -1 && number >= -columns) return static_cast<std::size_t>(columns + number);
  throw usage_error("the table has no label column " + orrery::quoted(label) +
                    "; expected a name of its header or a number from 1 to " + std::to_string(columns) +
                    " (from the end: -1 to -" + std::to_string(columns) + ")");
}

// In place: every row moves left by as many values as there are rows before it.
void take_labels(DenseData& data, const std::string& label) {
  const std::size_t column = label_column(data, label);
  DenseMatrix& matrix = data.matrix;
  const auto columns = static_cast<std::size_t>(matrix.columns);
  data.label_values.resize(static_cast<std::size_t>(matrix.rows));
  std::size_t to = 0;
  for (std::size_t i = 0; i < matrix.values.size(); ++i) {
    if (i % columns == column) {
      data.label_values[i / columns] = matrix.values[i];
    } else {
      matrix.values[to++] = matrix.values[i];
    }
  }
  matrix.values.resize(to);
  --matrix.columns;
  if (!data.column_names.empty())
    data.column_names.erase(data.column_names.begin() + static_cast<std::ptrdiff_t>(column));
  data.labels = recognise_labels(data.label_values);
}

DataFormat dense_format(InputFile& file, const DenseOptions& options) {
  if (!options.format) return detect_format(file, {DataFormat::npy, DataFormat::csv}).format;
  if (*options.format != DataFormat::csv && *options.format != DataFormat::npy) {
    throw usage_error("dense data can be read from the formats csv and npy, not from " +
                      std::string{format_name(*options.format)});
  }
  return *options.format;
}

}  // namespace

DenseData read_dense(const std::string& path, const DenseOptions& options) {
  InputFile file(path);
  DenseData data;
  data.recognised = {.format = dense_format(file, options), .gzip = file.gzip()};
  if (data.recognised.format == DataFormat::csv) {
    read_csv(file, options, data);
  } else {
    data.matrix = read_npy_matrix(file);
  }
  data.checksum = Checksum{}
                      .update(std::as_bytes(std::span{&data.matrix.columns, 1}))
                      .update(std::as_bytes(std::span{data.matrix.values}))
                      .value();
  if (!options.label.empty()) take_labels(data, options.label);
  return data;
}

}  // namespace orrery
