#include "engine/data/rating_lines.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "engine/data/id_map.h"
#include "engine/data/scan.h"

namespace orrery {

void IdColumn::to_texts(Rating* ratings, std::size_t count, std::uint32_t Rating::*id) {
  char digits[16];
  texts.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const auto end = std::to_chars(digits, digits + sizeof digits, ratings[i].*id).ptr;
    ratings[i].*id = number({digits, static_cast<std::size_t>(end - digits)});
  }
  integers = false;
}

void RatingPiece::clear() {
  count = 0;
  fourth_columns = 0;
  for (IdColumn* column : {&users, &items}) {
    column->integers = true;
    column->highest = 0;
    column->waiting_count = 0;
    if (column->texts.size() > 0) column->texts.clear();
  }
}

void RatingPiece::reserve(std::size_t bytes) {
  const std::size_t most = bytes / 4 + 1;  // "u i\n" is the shortest line; pages that stay unused cost nothing
  if (most <= capacity) return;
  ratings = std::make_unique_for_overwrite<Rating[]>(most);
  capacity = most;
}

namespace {

constexpr char separator_char(Separator separator) {
  switch (separator) {
    case Separator::comma:
      return ',';
    case Separator::semicolon:
      return ';';
    case Separator::tab:
      return '\t';
    case Separator::colons:
      return ':';
    case Separator::blanks:
      break;
  }
  return ' ';
}

// One line after the other; every step leaves `at_` at the place that an error would point to.
template <Separator kSeparator>
class LineParser {
 public:
  LineParser(const RatingSyntax& syntax, TextPiece piece, RatingPiece& out)
      : syntax_(syntax), out_(out), end_(piece.end), at_(piece.begin) {}

  void run() {
    while (at_ < end_) {
      line_ = at_;
      at_ = skip_blanks(at_);
      if (const int length = line_end_at(at_)) {
        end_line(length);
      } else if (*at_ == syntax_.comment) {
        at_ = find_newline(at_) + 1;
        ++out_.lines;
      } else if (!rating()) {
        return;
      }
    }
  }

 private:
  static bool is_separator(const char* p) {
    if constexpr (kSeparator == Separator::blanks) return is_blank(*p);
    if constexpr (kSeparator == Separator::colons) return p[0] == ':' && p[1] == ':';
    return *p == separator_char(kSeparator);
  }
  // Blanks around a separator do not belong to a field (a tab may be the separator itself).
  static const char* skip_padding(const char* p) {
    while (*p == ' ' || (kSeparator != Separator::tab && *p == '\t')) ++p;
    return p;
  }

  bool rating() {
    Rating& rating = out_.ratings[out_.count];
    if (!id(out_.users, &Rating::user, syntax_.rows, "a user id", "a row index")) return false;
    if (!next_column("an item id in column 2")) return false;
    if (!id(out_.items, &Rating::item, syntax_.columns, "an item id", "a column index")) return false;
    rating.value = syntax_.missing_value;
    const bool pair_only = syntax_.least_columns == 2 && line_end_at(skip_padding(at_)) != 0;
    if (!pair_only) {
      if (syntax_.most_columns > 2) {
        if (!next_column("a rating in column 3") || !value(rating.value)) return false;
      }
      if (!rest_of_line()) return false;
    }
    at_ = skip_padding(at_);
    ++out_.count;
    ++out_.data_lines;
    end_line(line_end_at(at_));
    return true;
  }

  bool id(IdColumn& column, std::uint32_t Rating::*member, std::uint64_t most, const char* what, const char* index) {
    const char* q = at_;
    std::uint32_t number = 0;
    for (; is_digit(*q); ++q) number = number * 10 + static_cast<unsigned char>(*q - '0');
    const std::ptrdiff_t length = q - at_;
    const bool plain = length > 0 && length <= 9 && (*at_ != '0' || length == 1);
    if (!plain || !column.integers || syntax_.indices || !(is_separator(q) || *q == '\n')) {
      return slow_id(column, member, most, what, index);
    }
    out_.ratings[out_.count].*member = number;
    at_ = q;
    return true;
  }

  bool slow_id(IdColumn& column, std::uint32_t Rating::*member, std::uint64_t most, const char* what,
               const char* index) {
    std::string unquoted;
    std::string_view text;
    const char* stop = field(text, unquoted);
    if (stop == nullptr) return fail("a closing quote", at_);
    if (text.empty()) return fail(what, at_);
    std::uint64_t number = 0;
    const bool integer = column.integers && plain_integer(text, number);
    if (syntax_.indices && (!integer || number < 1 || number > most)) {
      return fail(std::string{index} + " from 1 to " + std::to_string(most), at_);
    }
    if (!integer && overflows(text)) return fail(std::string{what} + " below 2^64", at_);
    std::uint32_t& id = out_.ratings[out_.count].*member;
    if (integer && number < IdMap::kUnseen) {
      id = static_cast<std::uint32_t>(number);
    } else {
      if (column.integers) column.to_texts(out_.ratings.get(), out_.count, member);
      if (unquoted.empty()) {
        column.number_later(text, id);
      } else {  // the text lives only here
        column.settle();
        id = column.number(text);
      }
    }
    at_ = stop;
    return true;
  }

  // An integer by its looks that no 64-bit integer can hold.
  static bool overflows(std::string_view text) {
    if (text[0] == '-' || text[0] == '+') text.remove_prefix(1);
    if (text.size() < 20) return false;
    for (const char c : text) {
      if (!is_digit(c)) return false;
    }
    std::uint64_t value = 0;
    return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc::result_out_of_range;
  }

  // The text of the field at at_, without padding and quotes; returns where the separator or the line end stands, or
  // nullptr for a quote that is not closed.
  const char* field(std::string_view& text, std::string& unquoted) const {
    if (kSeparator != Separator::blanks && *at_ == '"') return quoted_field(text, unquoted);
    const char* q = at_;
    while (!is_separator(q) && line_end_at(q) == 0) ++q;
    const char* last = q;
    while (last > at_ && is_blank(last[-1])) --last;
    text = {at_, static_cast<std::size_t>(last - at_)};
    return q;
  }

  const char* quoted_field(std::string_view& text, std::string& unquoted) const {
    const char* q = at_ + 1;
    for (; *q != '\n'; ++q) {
      if (*q == '"') {
        if (q[1] != '"') break;
        ++q;
      }
      unquoted += *q;
    }
    if (*q != '"') return nullptr;
    text = unquoted;
    q = skip_padding(q + 1);
    return is_separator(q) || line_end_at(q) != 0 ? q : nullptr;
  }

  bool next_column(const char* what) {
    const char* q = skip_padding(at_);
    if constexpr (kSeparator == Separator::blanks) {
      if (q == at_ || line_end_at(q) != 0) return fail(what, q);
      at_ = q;
    } else {
      if (!is_separator(q)) return fail(what, q);
      at_ = skip_padding(q + (kSeparator == Separator::colons ? 2 : 1));
    }
    return true;
  }

  bool value(float& number) {
    const char* stop = nullptr;
    const bool quote = kSeparator != Separator::blanks && *at_ == '"';
    const NumberFault fault = parse_float(at_ + (quote ? 1 : 0), end_, number, stop);
    if (fault != NumberFault::none) return fail(expected_number(fault, "a rating"), at_);
    if (quote && *stop++ != '"') return fail("a rating and a closing quote", at_);
    const char* q = skip_padding(stop);
    if (!is_separator(stop) && !is_separator(q) && line_end_at(q) == 0) return fail("a rating", at_);
    at_ = stop;
    return true;
  }

  // Behind the last column that is read: nothing, or one more column that is ignored.
  bool rest_of_line() {
    const char* q = skip_padding(at_);
    if (line_end_at(q) != 0) return true;
    if (syntax_.most_columns < 4) return surplus(q);
    if (!next_column("the end of the line")) return false;
    std::string unquoted;
    std::string_view text;
    const char* stop = field(text, unquoted);
    if (stop == nullptr) return fail("a closing quote", at_);
    ++out_.fourth_columns;
    at_ = stop;
    q = skip_padding(at_);
    return line_end_at(q) != 0 || surplus(q);
  }

  bool surplus(const char* p) {
    if (kSeparator != Separator::blanks && is_separator(p)) {
      p = skip_padding(p + (kSeparator == Separator::colons ? 2 : 1));
    }
    return fail("the end of the line after " + std::to_string(syntax_.most_columns) + " columns", p);
  }

  void end_line(int length) {
    out_.crlf_lines += length == 2 ? 1 : 0;
    ++out_.lines;
    at_ += length;
  }

  bool fail(std::string expected, const char* p) {
    at_ = p;
    std::string unquoted;
    std::string_view text;
    if (field(text, unquoted) == nullptr) text = word_at(p);
    out_.fault =
        ParseFault{out_.lines, static_cast<std::uint64_t>(p - line_) + 1, std::move(expected), std::string{text}};
    return false;
  }

  const RatingSyntax& syntax_;
  RatingPiece& out_;
  const char* end_;
  const char* at_;
  const char* line_ = nullptr;
};

void parse_lines(const RatingSyntax& syntax, TextPiece piece, RatingPiece& out) {
  switch (syntax.separator) {
    case Separator::blanks:
      return LineParser<Separator::blanks>(syntax, piece, out).run();
    case Separator::comma:
      return LineParser<Separator::comma>(syntax, piece, out).run();
    case Separator::semicolon:
      return LineParser<Separator::semicolon>(syntax, piece, out).run();
    case Separator::tab:
      return LineParser<Separator::tab>(syntax, piece, out).run();
    case Separator::colons:
      return LineParser<Separator::colons>(syntax, piece, out).run();
  }
}

}  // namespace

namespace {

void find_highest(RatingPiece& piece) {
  for (std::size_t r = 0; r < piece.count; ++r) {  // a loop of its own, so that it is vectorised
    piece.users.highest = std::max(piece.users.highest, piece.ratings[r].user);
    piece.items.highest = std::max(piece.items.highest, piece.ratings[r].item);
  }
}

// The value in a line of an array, and nothing else.
bool array_value(const char* line, const char*& at, const char* limit, RatingPiece& out) {
  const auto fail = [&](std::string expected) {
    out.fault =
        ParseFault{out.lines, static_cast<std::uint64_t>(at - line) + 1, std::move(expected), std::string{word_at(at)}};
    return false;
  };
  Rating& rating = out.ratings[out.count];
  const char* end = nullptr;
  const NumberFault fault = parse_float(at, limit, rating.value, end);
  if (fault != NumberFault::none) return fail(expected_number(fault, "a value"));
  if (!is_blank(*end) && line_end_at(end) == 0) return fail("a value");
  at = skip_blanks(end);
  if (line_end_at(at) == 0) return fail("the end of the line after 1 columns");
  ++out.count;
  return true;
}

}  // namespace

void parse_rating_values(TextPiece piece, RatingPiece& out) {
  out.clear();
  out.reserve(2 * static_cast<std::size_t>(piece.end - piece.begin));  // "1\n" is the shortest line
  for (const char* line = piece.begin; line < piece.end;) {
    const char* at = skip_blanks(line);
    if (*at == '%') {
      at = find_newline(at);
    } else if (line_end_at(at) == 0) {
      if (!array_value(line, at, piece.end, out)) return;
      ++out.data_lines;
    }
    const int length = line_end_at(at);
    out.crlf_lines += length == 2 ? 1 : 0;
    ++out.lines;
    line = at + length;
  }
}

void place_rating_values(RatingPiece& piece, std::uint64_t first, std::uint64_t rows) {
  for (std::size_t r = 0; r < piece.count; ++r) {
    piece.ratings[r].user = static_cast<std::uint32_t>((first + r) % rows + 1);
    piece.ratings[r].item = static_cast<std::uint32_t>((first + r) / rows + 1);
  }
  find_highest(piece);
}

void parse_rating_lines(const RatingSyntax& syntax, TextPiece piece, RatingPiece& out) {
  out.clear();
  out.reserve(static_cast<std::size_t>(piece.end - piece.begin));
  out.users.seen = syntax.seen_users;
  out.items.seen = syntax.seen_items;
  out.users.integers = out.users.seen == nullptr;
  out.items.integers = out.items.seen == nullptr;
  parse_lines(syntax, piece, out);
  out.users.settle();
  out.items.settle();
  find_highest(out);
}

}  // namespace orrery
