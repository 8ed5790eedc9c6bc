#include "tools/toml.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "engine/data/input_file.h"
#include "engine/error.h"

namespace orrery::tools {

namespace {

bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

void append_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

/// Reads one line from left to right.
class Line {
 public:
  Line(std::string_view file, std::uint64_t number, std::string_view text)
      : file_(file), number_(number), text_(text) {}

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool at_end() {
    skip_blanks();
    return at_ == text_.size() || text_[at_] == '#';
  }
  bool take(char wanted) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted)) fail(std::string{"'"} + wanted + "'");
  }
  void expect_end() {
    if (!at_end()) fail("the end of the line");
  }
  std::string bare_word(const char* what) {
    skip_blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_bare(text_[at_])) ++at_;
    if (at_ == begin) fail(what);
    return std::string{text_.substr(begin, at_ - begin)};
  }
  std::string value() {
    skip_blanks();
    if (take('"')) return basic_string();
    if (take('\'')) return literal_string();
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '#' && text_[at_] != ' ' && text_[at_] != '\t') ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word == "true" || word == "false" || is_number(word)) return std::string{word};
    at_ = begin;
    fail("a string in quotes, a number, true or false");
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const {
    const std::string_view rest = text_.substr(std::min(at_, text_.size()));
    throw data_error(file_, number_, at_ + 1, expected, rest.empty() ? "the end of the line" : rest);
  }

  static bool is_number(std::string_view word) {
    if (word.starts_with('+')) word.remove_prefix(1);
    double number = 0;
    const auto result = std::from_chars(word.data(), word.data() + word.size(), number);
    return result.ec == std::errc{} && result.ptr == word.data() + word.size();
  }

  std::string literal_string() {
    const std::size_t end = text_.find('\'', at_);
    if (end == std::string_view::npos) fail("a closing '");
    std::string text{text_.substr(at_, end - at_)};
    at_ = end + 1;
    return text;
  }

  std::string basic_string() {
    std::string text;
    for (;;) {
      if (at_ == text_.size()) fail("a closing \"");
      const char c = text_[at_++];
      if (c == '"') return text;
      if (c == '\\') {
        escape(text);
      } else {
        text += c;
      }
    }
  }

  void escape(std::string& out) {
    constexpr std::string_view kNames = "btnfr\"\\";
    constexpr std::string_view kCharacters = "\b\t\n\f\r\"\\";
    const std::size_t known = at_ < text_.size() ? kNames.find(text_[at_]) : std::string_view::npos;
    if (known != std::string_view::npos) {
      out += kCharacters[known];
      ++at_;
      return;
    }
    std::uint32_t code = 0;
    if (at_ + 5 > text_.size() || text_[at_] != 'u') fail("an escape such as \\n or \\u00e9");
    const char* digits = text_.data() + at_ + 1;
    const auto result = std::from_chars(digits, digits + 4, code, 16);
    if (result.ec != std::errc{} || result.ptr != digits + 4) fail("four hexadecimal digits after \\u");
    append_utf8(out, code);
    at_ += 5;
  }

  std::string_view file_;
  std::uint64_t number_;
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<TomlEntry> parse_toml(std::string_view file, std::string_view text) {
  std::vector<TomlEntry> entries;
  std::string table;
  std::uint64_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.ends_with('\r')) content.remove_suffix(1);
    Line line(file, ++number, content);
    if (line.at_end()) continue;
    if (line.take('[')) {
      table = line.bare_word("the name of a table");
      line.expect(']');
      line.expect_end();
      continue;
    }
    TomlEntry entry{.table = table, .key = line.bare_word("a key or a [table]"), .value = {}, .line = number};
    line.expect('=');
    entry.value = line.value();
    line.expect_end();
    for (const TomlEntry& other : entries) {
      if (other.table == entry.table && other.key == entry.key) {
        throw data_error(file, number, 0, "each key once",
                         entry.key + " again, as in line " + std::to_string(other.line));
      }
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::string read_text_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw data_error(path, "cannot be read: " + std::generic_category().message(errno));
  std::string text;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error_number = errno;
      ::close(descriptor);
      throw data_error(path, "cannot be read: " + std::generic_category().message(error_number));
    }
    if (got == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(descriptor);
  text.erase(0, byte_order_mark(path, text));
  return text;
}

std::string toml_string(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string quoted_text = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted_text += '\\';
      quoted_text += c;
    } else if (code < 0x20 || code == 0x7F) {
      quoted_text += "\\u00";
      quoted_text += kDigits[code >> 4];
      quoted_text += kDigits[code & 15];
    } else {
      quoted_text += c;
    }
  }
  return quoted_text + "\"";
}

}  // namespace orrery::tools
