#include "engine/data/split.h"

#include <algorithm>

#include "engine/data/data_writers.h"
#include "engine/data/input_file.h"
#include "engine/data/matrix_market.h"
#include "engine/data/pieces.h"
#include "engine/data/scan.h"
#include "engine/error.h"
#include "engine/npy.h"
#include "engine/random.h"

namespace orrery {

namespace {

// Which part item after item goes to.
class Lot {
 public:
  explicit Lot(const SplitOptions& options) : random_(options.seed, Purpose::data_split), fraction_(options.fraction) {}
  bool next_is_test() {
    const bool test = random_.uniform(0, count_++) < fraction_;
    (test ? test_ : training_) += 1;
    return test;
  }
  void finish(SplitResult& result) const {
    result.training = training_;
    result.test = test_;
    if (test_ > 0 && training_ > 0) return;
    throw usage_error(std::string{"nothing would be left for the "} + (test_ == 0 ? "test" : "training") +
                      " part: of " + std::to_string(count_) +
                      " items none fell to it; choose another fraction or seed");
  }

 private:
  Random random_;
  double fraction_;
  std::uint64_t count_ = 0, training_ = 0, test_ = 0;
};

struct LinesPiece : PieceStatus {
  std::string text;
  std::vector<std::pair<std::size_t, std::size_t>> items;  // begin and end in the text, the newline included
  void clear() {
    text.clear();
    items.clear();
  }
};

// Every line that holds an item; `comment` begins lines that do not ('\0': all lines are items).
void find_items(TextPiece piece, char comment, LinesPiece& out) {
  out.clear();
  out.text.assign(piece.begin, piece.end);
  for (const char* line = piece.begin; line < piece.end;) {
    const char* at = skip_blanks(line);
    const char* next = find_newline(at) + 1;
    const bool item = comment == '\0' || (line_end_at(at) == 0 && *at != comment);
    if (item) out.items.emplace_back(line - piece.begin, next - piece.begin);
    ++out.lines;
    line = next;
  }
}

// Cuts the lines behind `start` into two sinks.
template <class Put>
void split_lines(InputFile& file, const SplitOptions& options, TextStart start, char comment, Lot& lot,
                 const Put& put) {
  parse_pieces<LinesPiece>(
      file, options.read, start, [&](TextPiece piece, LinesPiece& out) { find_items(piece, comment, out); },
      [&](std::span<LinesPiece> wave, std::uint64_t) {
        for (const LinesPiece& piece : wave) {
          for (const auto& [begin, end] : piece.items) {
            put(lot.next_is_test(), std::string_view{piece.text}.substr(begin, end - begin));
          }
        }
      });
}

struct Outputs {
  TextWriter training;
  TextWriter test;
  TextWriter& part(bool is_test) { return is_test ? test : training; }
  void commit() {
    training.commit();
    test.commit();
  }
};

void split_text_lines(InputFile& file, const SplitOptions& options, Outputs& outputs, SplitResult& result) {
  const DataFormat format = result.recognised.format;
  TextStart start;
  ColumnLayout layout;
  std::size_t columns = 0;
  const std::string head{file.peek(std::size_t{1} << 16)};
  if (format == DataFormat::ratings) layout = recognise_rating_columns(head, 2);
  if (format == DataFormat::csv) layout = recognise_csv_columns(head, columns);
  if (layout.header) {
    start = {layout.data_offset, layout.data_lines_before};
    for (const bool test : {false, true}) outputs.part(test) << layout.header_line << '\n';
  }
  Lot lot(options);
  split_lines(file, options, start, format == DataFormat::text ? '\0' : '#', lot,
              [&](bool test, std::string_view line) { outputs.part(test) << line; });
  lot.finish(result);
}

// The header counts the entries, so the entries wait in memory.
void split_matrix(InputFile& file, const SplitOptions& options, Outputs& outputs, SplitResult& result) {
  const MatrixMarketHeader header = read_matrix_market_header(file);
  if (!header.coordinate) throw usage_error("only coordinate MatrixMarket files can be split");
  const std::string head{
      file.peek(static_cast<std::size_t>(header.offset)).substr(0, static_cast<std::size_t>(header.offset))};
  const std::string_view banner = std::string_view{head}.substr(0, head.find_first_of("\r\n"));
  TextBuffer parts[2];
  Lot lot(options);
  split_lines(file, options, {header.offset, header.lines}, '%', lot,
              [&](bool test, std::string_view line) { parts[test ? 1 : 0] << line; });
  lot.finish(result);
  check_matrix_market_entries(file, header, result.training + result.test);
  for (const bool test : {false, true}) {
    outputs.part(test) << banner << '\n'
                       << header.rows << ' ' << header.columns << ' ' << (test ? result.test : result.training) << '\n';
    outputs.part(test).append(parts[test ? 1 : 0].text());
  }
}

void split_docword(const std::string& input, const SplitOptions& options, Outputs& outputs, SplitResult& result) {
  CorpusOptions reading;
  reading.read = options.read;
  reading.format = DataFormat::docword;
  const CorpusData data = read_corpus(input, reading);
  std::vector<std::uint64_t> parts[2];
  Lot lot(options);
  for (std::uint64_t d = 0; d < data.corpus.documents(); ++d) parts[lot.next_is_test() ? 1 : 0].push_back(d);
  lot.finish(result);
  for (const bool test : {false, true}) put_docword(outputs.part(test), data.corpus, parts[test ? 1 : 0]);
}

void split_npy(InputFile& file, const SplitOptions& options, const std::filesystem::path& training,
               const std::filesystem::path& test, SplitResult& result) {
  const DenseMatrix matrix = read_npy_matrix(file);
  std::vector<double> parts[2];
  Lot lot(options);
  for (std::uint64_t r = 0; r < matrix.rows; ++r) {
    std::vector<double>& part = parts[lot.next_is_test() ? 1 : 0];
    part.insert(part.end(), matrix.row(r).begin(), matrix.row(r).end());
  }
  lot.finish(result);
  write_npy<double>(training, parts[0], {result.training, matrix.columns});
  write_npy<double>(test, parts[1], {result.test, matrix.columns});
}

}  // namespace

SplitResult split_data(const std::string& input, const std::filesystem::path& training,
                       const std::filesystem::path& test, const SplitOptions& options) {
  if (!(options.fraction > 0 && options.fraction < 1)) throw usage_error("the test fraction must lie between 0 and 1");
  refuse_compressed_output(training);
  refuse_compressed_output(test);
  SplitResult result;
  InputFile file(input);
  result.recognised = options.format ? Recognised{.format = *options.format, .gzip = file.gzip()} : detect_format(file);
  const DataFormat format = result.recognised.format;
  if (format == DataFormat::packed) {
    throw usage_error(input + ": a packed corpus cannot be split; split the corpus, then pack its parts");
  }
  if (format == DataFormat::npy) {
    split_npy(file, options, training, test, result);
    return result;
  }
  Outputs outputs{TextWriter(training), TextWriter(test)};
  if (format == DataFormat::docword) {
    split_docword(input, options, outputs, result);
  } else if (format == DataFormat::matrix_market) {
    split_matrix(file, options, outputs, result);
  } else {
    split_text_lines(file, options, outputs, result);
  }
  outputs.commit();
  return result;
}

}  // namespace orrery
