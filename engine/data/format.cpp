#include "engine/data/format.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "engine/data/matrix_market.h"
#include "engine/data/packed_corpus.h"
#include "engine/data/scan.h"
#include "engine/error.h"

namespace orrery {

namespace {

constexpr std::array<std::string_view, 9> kFormatNames = {"ratings", "matrix-market", "svmlight", "docword", "text",
                                                          "edges",   "csv",           "npy",      "packed"};
constexpr std::array<std::string_view, 5> kSeparatorNames = {"blanks", "commas", "semicolons", "tabs", "double colons"};

}  // namespace

std::string_view format_name(DataFormat format) { return kFormatNames[static_cast<std::size_t>(format)]; }

std::string format_names() {
  std::string all;
  for (const std::string_view name : kFormatNames) {
    if (!all.empty()) all += ", ";
    all += name;
  }
  return all;
}

DataFormat parse_format(std::string_view name) {
  const auto at = std::find(kFormatNames.begin(), kFormatNames.end(), name);
  if (at == kFormatNames.end())
    throw usage_error("unknown format " + orrery::quoted(name) + "; known are " + format_names());
  return static_cast<DataFormat>(at - kFormatNames.begin());
}

std::string_view separator_name(Separator separator) { return kSeparatorNames[static_cast<std::size_t>(separator)]; }

std::string Recognised::describe() const {
  std::string text{format_name(format)};
  const bool columns = format == DataFormat::ratings || format == DataFormat::csv;
  std::string details;
  if (columns) details += "separated by " + std::string{separator_name(separator)};
  if (columns && header) details += ", header line";
  if (gzip) details += details.empty() ? "gzip" : ", gzip";
  return details.empty() ? text : text + " (" + details + ")";
}

bool looks_like_number(std::string_view field) {
  if (field.starts_with('+')) field.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  return error != std::errc::invalid_argument && end == field.data() + field.size();
}

namespace {

// How much of the text is a field in quotes (with doubled quotes inside); 0 when it begins with none.
std::size_t quoted_length(std::string_view text) {
  std::size_t at = text.find_first_not_of(' ');
  if (at == std::string_view::npos || text[at] != '"') return 0;
  for (++at; at < text.size(); ++at) {
    if (text[at] != '"') continue;
    if (at + 1 == text.size() || text[at + 1] != '"') return at + 1;
    ++at;
  }
  return 0;
}

}  // namespace

std::vector<std::string_view> split_fields(std::string_view line, Separator separator) {
  std::vector<std::string_view> fields;
  if (separator == Separator::blanks) {
    std::size_t at = 0;
    while (true) {
      while (at < line.size() && is_blank(line[at])) ++at;
      if (at == line.size()) return fields;
      const std::size_t begin = at;
      while (at < line.size() && !is_blank(line[at])) ++at;
      fields.push_back(line.substr(begin, at - begin));
    }
  }
  static constexpr std::string_view kMarks[] = {" ", ",", ";", "\t", "::"};
  const std::string_view mark = kMarks[static_cast<std::size_t>(separator)];
  while (true) {
    const std::size_t end = line.find(mark, quoted_length(line));
    std::string_view field = line.substr(0, end);
    while (!field.empty() && is_blank(field.front())) field.remove_prefix(1);
    while (!field.empty() && is_blank(field.back())) field.remove_suffix(1);
    fields.push_back(field);
    if (end == std::string_view::npos) return fields;
    line.remove_prefix(end + mark.size());
  }
}

namespace {

struct HeadLine {
  std::string_view text;
  std::uint64_t offset;
  std::uint64_t number;  // lines before it
};

// The first lines that are neither blank nor comments. A line that the head cuts off counts only when it is the first.
std::vector<HeadLine> first_lines(std::string_view head, std::size_t most, bool comments) {
  std::vector<HeadLine> lines;
  std::uint64_t number = 0;
  for (std::size_t at = 0; at < head.size() && lines.size() < most; ++number) {
    const std::size_t newline = head.find('\n', at);
    const std::size_t end = std::min(newline, head.size());
    std::string_view text = head.substr(at, end - at);
    if (text.ends_with('\r')) text.remove_suffix(1);
    const std::size_t first = text.find_first_not_of(" \t");
    const bool skipped = first == std::string_view::npos || (comments && text[first] == '#');
    if (!skipped) lines.push_back({text, at, number});
    at = end + 1;
  }
  return lines;
}

std::string_view unquote(std::string_view field) {
  if (field.size() >= 2 && field.front() == '"' && field.back() == '"') return field.substr(1, field.size() - 2);
  return field;
}

bool any_number(const std::vector<std::string_view>& fields) {
  return std::any_of(fields.begin(), fields.end(), [](std::string_view f) { return looks_like_number(unquote(f)); });
}

bool fits_ratings(const std::vector<std::string_view>& fields, std::size_t least) {
  if (fields.size() < least || fields.size() > 4) return false;
  return fields.size() < 3 || looks_like_number(unquote(fields[2]));
}

bool is_header(const std::vector<std::string_view>& fields, Separator separator, std::size_t least) {
  if (fields.size() < least || fields.size() > 4 || any_number(fields)) return false;
  if (separator != Separator::blanks) return true;
  static constexpr std::string_view kWords[] = {"rating", "ratings", "score", "value", "stars", "Rating", "Value"};
  return fields.size() > 2 && std::find(std::begin(kWords), std::end(kWords), fields[2]) != std::end(kWords);
}

// With blanks or no mark at all the reader's own message is the clearest, so that is what remains.
Separator separator_by_mark(std::string_view line) {
  if (line.find("::") != std::string_view::npos) return Separator::colons;
  if (line.find(';') != std::string_view::npos) return Separator::semicolon;
  if (line.find(',') != std::string_view::npos) return Separator::comma;
  return Separator::blanks;
}

}  // namespace

ColumnLayout recognise_rating_columns(std::string_view head, std::size_t least) {
  const auto lines = first_lines(head, 2, true);
  ColumnLayout layout;
  if (lines.empty()) return layout;
  static constexpr Separator kOrder[] = {Separator::colons, Separator::semicolon, Separator::comma, Separator::blanks,
                                         Separator::tab};
  const HeadLine& first = lines.front();
  layout = {.separator = separator_by_mark(first.text), .data_offset = first.offset, .data_lines_before = first.number};
  for (const Separator separator : kOrder) {
    const auto fields = split_fields(first.text, separator);
    if (separator != Separator::blanks && fields.size() < 2) continue;
    if (lines.size() == 2 && is_header(fields, separator, least) &&
        fits_ratings(split_fields(lines[1].text, separator), least)) {
      return {separator, true, first.text, lines[1].offset, lines[1].number};
    }
    if (fits_ratings(fields, least)) {
      layout.separator = separator;
      return layout;
    }
  }
  return layout;
}

ColumnLayout recognise_csv_columns(std::string_view head, std::size_t& columns) {
  const auto lines = first_lines(head, 2, true);
  ColumnLayout layout{.separator = Separator::comma};
  columns = 1;
  if (lines.empty()) return layout;
  const HeadLine& first = lines.front();
  layout = {.separator = separator_by_mark(first.text), .data_offset = first.offset, .data_lines_before = first.number};
  if (layout.separator == Separator::colons) layout.separator = Separator::blanks;
  if (layout.separator == Separator::blanks && first.text.find('\t') != std::string_view::npos) {
    layout.separator = Separator::tab;
  }
  const auto fields = split_fields(first.text, layout.separator);
  columns = fields.size();
  if (lines.size() == 2 && !any_number(fields) && any_number(split_fields(lines[1].text, layout.separator))) {
    layout.header = true;
    layout.header_line = first.text;
    layout.data_offset = lines[1].offset;
    layout.data_lines_before = lines[1].number;
  }
  return layout;
}

namespace {

// What the first lines allow. Several may fit (`1 2 3` is a rating, a sparse row without features it is not); the
// caller's order of preference decides.
class HeadLooks {
 public:
  explicit HeadLooks(std::string_view head) : head_(head), lines_(first_lines(head, kLines, true)) {
    if (lines_.size() > 1 && !head.ends_with('\n')) lines_.pop_back();
  }

  bool fits(DataFormat format) const {
    switch (format) {
      case DataFormat::npy:
        return head_.starts_with("\x93NUMPY");
      case DataFormat::packed:
        return head_.starts_with(kPackedCorpusMagic);
      case DataFormat::matrix_market:
        return head_.starts_with(kMatrixMarketBanner);
      case DataFormat::docword:
        return docword();
      case DataFormat::svmlight:
        return svmlight();
      case DataFormat::edges:
        return edges();
      case DataFormat::ratings:
        return ratings();
      case DataFormat::csv:
        return csv();
      case DataFormat::text:
        return !lines_.empty() && head_.find('\0') == std::string_view::npos;
    }
    return false;
  }

 private:
  static constexpr std::size_t kLines = 20;

  static bool integer(std::string_view field) {
    return !field.empty() && std::all_of(field.begin(), field.end(), is_digit);
  }

  // The first line and at least half of all: a bad line further on must not turn a file into another format, because
  // the reader of the right format says best what is wrong with it.
  template <class Test>
  bool mostly(std::size_t first, const Test& test) const {
    if (first >= lines_.size() || !test(lines_[first])) return false;
    const auto good = std::count_if(lines_.begin() + static_cast<std::ptrdiff_t>(first), lines_.end(), test);
    return 2 * static_cast<std::size_t>(good) >= lines_.size() - first;
  }

  std::size_t first_line_at(std::uint64_t offset) const {
    const auto at = std::find_if(lines_.begin(), lines_.end(), [&](const HeadLine& l) { return l.offset >= offset; });
    return static_cast<std::size_t>(at - lines_.begin());
  }

  static bool integers(const HeadLine& line, std::size_t count) {
    const auto fields = split_fields(line.text, Separator::blanks);
    return fields.size() == count && std::all_of(fields.begin(), fields.end(), integer);
  }

  bool docword() const {
    if (lines_.size() < 3 || !std::all_of(lines_.begin(), lines_.begin() + 3, [](auto& l) { return integers(l, 1); })) {
      return false;
    }
    return lines_.size() == 3 || mostly(3, [](const HeadLine& line) { return integers(line, 3); });
  }

  bool svmlight() const {
    bool any_feature = false;
    return mostly(0,
                  [&](const HeadLine& line) {
                    const auto fields = split_fields(line.text.substr(0, line.text.find('#')), Separator::blanks);
                    if (fields.empty() || !looks_like_number(fields[0])) return false;
                    for (std::size_t i = 1; i < fields.size(); ++i) {
                      const std::size_t colon = fields[i].find(':');
                      if (colon == std::string_view::npos || fields[i].find("::") != std::string_view::npos)
                        return false;
                      any_feature = true;
                    }
                    return true;
                  }) &&
           any_feature;
  }

  bool edges() const {
    return mostly(0, [](const HeadLine& line) { return integers(line, 2); });
  }

  // Ids are integers or no numbers at all: `5.1,3.5,1.4` is a row of measurements.
  bool ratings() const {
    const ColumnLayout layout = recognise_rating_columns(head_, 3);
    return mostly(first_line_at(layout.data_offset), [&](const HeadLine& line) {
      const auto fields = split_fields(line.text, layout.separator);
      if (!fits_ratings(fields, 3)) return false;
      return std::all_of(fields.begin(), fields.begin() + 2, [](std::string_view field) {
        const std::string_view id = unquote(field);
        return !id.empty() && (integer(id) || !looks_like_number(id));
      });
    });
  }

  // As many columns as the first line, at least half of the fields numbers.
  bool csv() const {
    std::size_t columns = 0;
    const ColumnLayout layout = recognise_csv_columns(head_, columns);
    return mostly(first_line_at(layout.data_offset), [&](const HeadLine& line) {
      const auto fields = split_fields(line.text, layout.separator);
      const auto numbers = std::count_if(fields.begin(), fields.end(), looks_like_number);
      return fields.size() == columns && 2 * static_cast<std::size_t>(numbers) >= columns;
    });
  }

  std::string_view head_;
  std::vector<HeadLine> lines_;
};

}  // namespace

void refuse_option(std::string_view option, std::string_view value, std::string_view file, DataFormat format,
                   const std::vector<DataFormat>& applies_to) {
  if (value.empty() || std::find(applies_to.begin(), applies_to.end(), format) != applies_to.end()) return;
  std::string names;
  for (const DataFormat one : applies_to) names += (names.empty() ? "" : ", ") + std::string{format_name(one)};
  throw usage_error(std::string{option} + ": expected data of format " + names + ", got " +
                    std::string{format_name(format)} + " (" + std::string{file} + ")");
}

Recognised detect_format(InputFile& file, const std::vector<DataFormat>& allowed) {
  static const std::vector<DataFormat> kAll = {DataFormat::npy,     DataFormat::packed,   DataFormat::matrix_market,
                                               DataFormat::docword, DataFormat::svmlight, DataFormat::edges,
                                               DataFormat::ratings, DataFormat::csv,      DataFormat::text};
  const std::string_view head = file.peek(std::size_t{1} << 16);
  Recognised found;
  found.gzip = file.gzip();
  if (head.empty()) throw data_error(file.path(), "expected data, got an empty file");
  const HeadLooks looks(head);
  const auto& wanted = allowed.empty() ? kAll : allowed;
  const auto at = std::find_if(kAll.begin(), kAll.end(), [&](DataFormat format) {
    return std::find(wanted.begin(), wanted.end(), format) != wanted.end() && looks.fits(format);
  });
  if (at == kAll.end()) {
    std::string names;
    for (const DataFormat format : wanted) names += (names.empty() ? "" : ", ") + std::string{format_name(format)};
    throw data_error(file.path(), "the content is in none of the formats " + names);
  }
  found.format = *at;
  if (found.format == DataFormat::ratings) {
    const ColumnLayout layout = recognise_rating_columns(head, 3);
    found.separator = layout.separator;
    found.header = layout.header;
  }
  if (found.format == DataFormat::csv) {
    std::size_t columns = 0;
    const ColumnLayout layout = recognise_csv_columns(head, columns);
    found.separator = layout.separator;
    found.header = layout.header;
  }
  return found;
}

}  // namespace orrery
