// Numbers and text to a file, fast: to_chars into a buffer, whole buffers to an AtomicFile. A file that is not
// committed does not exist (design section 10: nothing half-written stays behind).
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

#include "engine/atomic_file.h"

namespace orrery {

/// Text in memory that can be appended to a writer; what parallel producers fill.
class TextBuffer {
 public:
  TextBuffer& operator<<(std::string_view text) {
    text_ += text;
    return *this;
  }
  TextBuffer& operator<<(char c) {
    text_ += c;
    return *this;
  }
  /// Integers in decimal; floating point in the shortest spelling that reads back as the same number.
  template <class T>
  requires(std::integral<T> || std::floating_point<T>) TextBuffer& operator<<(T value) {
    char digits[64];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    text_.append(digits, end);
    return *this;
  }
  /// With that many digits behind the point; trailing zeros are left off.
  TextBuffer& fixed(double value, int decimals) {
    char digits[512];
    const char* end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, decimals).ptr;
    if (decimals > 0) {
      while (end[-1] == '0') --end;
      if (end[-1] == '.') --end;
    }
    text_.append(digits, static_cast<std::size_t>(end - digits));
    return *this;
  }
  std::string_view text() const { return text_; }
  void clear() { text_.clear(); }

 private:
  std::string text_;
};

/// A text file being written. Throws output_error for every failure, at the latest in commit().
class TextWriter {
 public:
  explicit TextWriter(std::filesystem::path path) : file_(std::move(path)) {}

  template <class T>
  TextWriter& operator<<(const T& value) {
    buffer_ << value;
    if (buffer_.text().size() >= kFlush) flush();
    return *this;
  }
  void append(std::string_view text) {
    flush();
    file_.write(text);
  }
  void commit() {
    flush();
    file_.commit();
  }

 private:
  static constexpr std::size_t kFlush = std::size_t{1} << 16;
  void flush() {
    file_.write(buffer_.text());
    buffer_.clear();
  }

  AtomicFile file_;
  TextBuffer buffer_;
};

}  // namespace orrery
