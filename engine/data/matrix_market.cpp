#include "engine/data/matrix_market.h"

#include <algorithm>
#include <string>
#include <vector>

#include "engine/data/format.h"
#include "engine/data/id_map.h"
#include "engine/data/scan.h"
#include "engine/error.h"

namespace orrery {

namespace {

// One line of the header, with its number; the peeked part grows until the line is complete.
class HeaderLines {
 public:
  explicit HeaderLines(InputFile& file) : file_(file) {}

  // False at the end of the content.
  bool next() {
    std::string_view head = file_.peek(std::size_t{1} << 16);
    std::size_t end = head.find('\n', offset_);
    while (end == std::string_view::npos) {
      const std::size_t before = head.size();
      head = file_.peek(2 * before + 1);
      end = head.find('\n', offset_);
      if (head.size() == before) break;
    }
    if (offset_ >= head.size()) return false;
    if (end == std::string_view::npos) end = head.size();
    line_ = head.substr(offset_, end - offset_);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    offset_ = std::min(end + 1, head.size());
    ++number_;
    return true;
  }

  std::string_view line() const { return line_; }
  std::uint64_t number() const { return number_; }
  std::uint64_t offset() const { return offset_; }
  std::uint64_t column_of(std::string_view word) const {
    return static_cast<std::uint64_t>(word.data() - line_.data()) + 1;
  }
  std::vector<std::string_view> words() const { return split_fields(line_, Separator::blanks); }
  [[noreturn]] void fail(std::string_view expected, std::string_view word) const {
    throw data_error(file_.path(), number_, word.empty() ? line_.size() + 1 : column_of(word), expected, word);
  }

 private:
  InputFile& file_;
  std::string_view line_;
  std::uint64_t number_ = 0;
  std::size_t offset_ = 0;
};

std::string lower(std::string_view text) {
  std::string out{text};
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
  return out;
}

void parse_banner(const HeaderLines& lines, MatrixMarketHeader& header) {
  auto words = lines.words();
  if (words.size() > 5) lines.fail("the end of the banner", words[5]);
  words.resize(5);
  if (words[0] != kMatrixMarketBanner) lines.fail(kMatrixMarketBanner, words[0]);
  if (lower(words[1]) != "matrix") lines.fail("the object 'matrix'", words[1]);
  const std::string layout = lower(words[2]), field = lower(words[3]), symmetry = lower(words[4]);
  if (layout != "coordinate" && layout != "array") lines.fail("'coordinate' or 'array'", words[2]);
  header.coordinate = layout == "coordinate";
  if (field == "real" || field == "double") {
    header.field = MatrixMarketHeader::Field::real;
  } else if (field == "integer") {
    header.field = MatrixMarketHeader::Field::integer;
  } else if (field == "pattern" && header.coordinate) {
    header.field = MatrixMarketHeader::Field::pattern;
  } else {
    lines.fail("one of the fields real, integer and (coordinate) pattern; complex numbers are not supported", words[3]);
  }
  if (symmetry == "general") {
    header.symmetry = MatrixMarketHeader::Symmetry::general;
  } else if (symmetry == "symmetric") {
    header.symmetry = MatrixMarketHeader::Symmetry::symmetric;
  } else if (symmetry == "skew-symmetric") {
    header.symmetry = MatrixMarketHeader::Symmetry::skew;
  } else {
    lines.fail("one of the symmetries general, symmetric and skew-symmetric", words[4]);
  }
}

void parse_sizes(const HeaderLines& lines, MatrixMarketHeader& header) {
  const auto words = lines.words();
  const std::size_t count = header.coordinate ? 3 : 2;
  std::uint64_t* sizes[] = {&header.rows, &header.columns, &header.entries};
  static constexpr const char* kWhat[] = {"the number of rows", "the number of columns", "the number of entries"};
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view word = i < words.size() ? words[i] : std::string_view{};
    const std::uint64_t most = i < 2 ? IdMap::kUnseen - 1 : ~std::uint64_t{0};
    const char* end = nullptr;
    if (word.empty() || !parse_unsigned(word.data(), word.data() + word.size(), most, *sizes[i], end) ||
        end != word.data() + word.size()) {
      lines.fail(i < 2 ? std::string{kWhat[i]} + " (at most 4294967294)" : kWhat[i], word);
    }
  }
  if (words.size() > count) lines.fail("the end of the line after the sizes", words[count]);
  if (!header.coordinate) header.entries = header.rows * header.columns;
}

}  // namespace

MatrixMarketHeader read_matrix_market_header(InputFile& file) {
  MatrixMarketHeader header;
  HeaderLines lines(file);
  if (!lines.next()) throw data_error(file.path(), 1, 1, kMatrixMarketBanner, "");
  parse_banner(lines, header);
  while (lines.next()) {
    const auto words = lines.words();
    if (words.empty() || words[0].empty() || words[0].front() == '%') continue;
    parse_sizes(lines, header);
    header.offset = lines.offset();
    header.lines = lines.number();
    return header;
  }
  throw data_error(file.path(), lines.number() + 1, 1, "the line of sizes", "");
}

void check_matrix_market_entries(const InputFile& file, const MatrixMarketHeader& header, std::uint64_t found) {
  if (found == header.entries) return;
  throw data_error(file.path(), header.lines, 1,
                   "a header that agrees with the body, which has " + std::to_string(found) + " entries",
                   std::to_string(header.entries) + " entries");
}

}  // namespace orrery
