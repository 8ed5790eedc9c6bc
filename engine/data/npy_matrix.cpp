// NumPy's .npy as input: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. Unlike the reader of
// models (engine/npy.h) it takes Fortran order, gzip, and headers of foreign writers.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>

#include "engine/data/dense.h"
#include "engine/data/input_file.h"
#include "engine/data/scan.h"
#include "engine/error.h"

namespace orrery {

static_assert(std::endian::native == std::endian::little, "the values of a .npy are read as they lie");

namespace {

void read_exactly(InputFile& file, std::span<char> to, const char* what) {
  for (std::size_t done = 0; done < to.size();) {
    const std::size_t got = file.read(to.subspan(done));
    if (got == 0) throw data_error(file.path(), std::string{"the file ends inside "} + what);
    done += got;
  }
}

struct NpyHeader {
  std::string type;
  bool fortran = false;
  std::uint64_t rows = 0;
  std::uint64_t columns = 1;
};

// The header is a Python dictionary of three known keys; this reads exactly that.
class HeaderParser {
 public:
  HeaderParser(const std::string& path, std::string text) : path_(path), text_(std::move(text)) { text_ += '\n'; }

  NpyHeader parse() {
    NpyHeader header;
    bool type = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted_text();
      expect(':');
      if (key == "descr" && !type) {
        header.type = quoted_text();
        type = true;
      } else if (key == "fortran_order" && !order) {
        header.fortran = truth();
        order = true;
      } else if (key == "shape" && !shape) {
        parse_shape(header);
        shape = true;
      } else {
        fail("one of the keys descr, fortran_order and shape, once each");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!type || !order || !shape) fail("the keys descr, fortran_order and shape");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw data_error(path_, "bad .npy header: expected " + expected + ", got " +
                                orrery::quoted(std::string_view{text_}.substr(at_)));
  }
  void skip() {
    while (is_blank(text_[at_])) ++at_;
  }
  bool accept(char c) {
    skip();
    if (text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string{"'"} + c + "'");
  }
  std::string quoted_text() {
    skip();
    const char quote = text_[at_];
    if (quote != '\'' && quote != '"') fail("a text in quotes");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string::npos) fail("a closing quote");
    std::string found = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return found;
  }
  bool truth() {
    skip();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (std::string_view{text_}.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    fail("True or False");
  }
  void parse_shape(NpyHeader& header) {
    std::size_t rank = 0;
    expect('(');
    while (!accept(')')) {
      skip();
      std::uint64_t length = 0;
      const char* begin = text_.data() + at_;
      const char* end = begin;
      if (!parse_unsigned(begin, text_.data() + text_.size(), ~std::uint64_t{0}, length, end)) fail("a length");
      at_ += static_cast<std::size_t>(end - begin);
      if (rank > 1) fail("an array of rank 1 or 2");
      (rank == 0 ? header.rows : header.columns) = length;
      ++rank;
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    if (rank == 0) fail("an array of rank 1 or 2");
  }

  const std::string& path_;
  std::string text_;
  std::size_t at_ = 0;
};

NpyHeader read_npy_header(InputFile& file) {
  constexpr std::size_t kMostHeader = std::size_t{1} << 20;
  char magic[8];
  read_exactly(file, magic, "the .npy mark");
  if (std::memcmp(magic, "\x93NUMPY", 6) != 0)
    throw data_error(file.path(), "expected a .npy file, got another format");
  const auto major = static_cast<unsigned char>(magic[6]);
  if (major < 1 || major > 3) {
    throw data_error(file.path(), "expected .npy version 1, 2 or 3, got version " + std::to_string(major));
  }
  unsigned char size_bytes[4] = {};
  read_exactly(file, std::span{reinterpret_cast<char*>(size_bytes), major == 1 ? std::size_t{2} : 4},
               "the .npy header");
  std::size_t size = 0;
  for (std::size_t i = 4; i-- > 0;) size = size << 8 | size_bytes[i];
  if (size > kMostHeader) {
    throw data_error(file.path(), "expected a .npy header of at most 1 MiB, got " + std::to_string(size) + " bytes");
  }
  std::string text(size, '\0');
  read_exactly(file, text, "the .npy header");
  return HeaderParser(file.path(), std::move(text)).parse();
}

template <class T>
double value_at(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return static_cast<double>(value);
}

using ValueReader = double (*)(const char*);

ValueReader reader_of(const std::string& type, std::size_t& bytes, const std::string& path) {
  bytes = type.ends_with('8') ? 8 : 4;
  if (type == "<f4") return value_at<float>;
  if (type == "<f8") return value_at<double>;
  if (type == "<i4") return value_at<std::int32_t>;
  if (type == "<i8") return value_at<std::int64_t>;
  throw data_error(path, "expected numbers of type <f4, <f8, <i4 or <i8 (little endian), got " + orrery::quoted(type));
}

// Reads in steps, so that a header that promises too much fails at the end of the file and not in the allocator.
std::vector<double> read_values(InputFile& file, std::uint64_t count, std::size_t bytes, ValueReader reader) {
  constexpr std::size_t kStep = std::size_t{1} << 16;
  std::vector<double> values;
  std::vector<char> raw;
  while (values.size() < count) {
    const auto step = static_cast<std::size_t>(std::min<std::uint64_t>(kStep, count - values.size()));
    raw.resize(step * bytes);
    read_exactly(file, raw, "its values");
    for (std::size_t i = 0; i < step; ++i) values.push_back(reader(raw.data() + i * bytes));
  }
  char rest;
  if (file.read(std::span{&rest, 1}) > 0)
    throw data_error(file.path(), "there are bytes behind the last value of the array");
  return values;
}

void check_finite(const std::string& path, const DenseMatrix& matrix) {
  for (std::size_t i = 0; i < matrix.values.size(); ++i) {
    if (std::isfinite(matrix.values[i])) continue;
    throw data_error(path, "row " + std::to_string(i / matrix.columns + 1) + ", column " +
                               std::to_string(i % matrix.columns + 1) + ": expected a finite number, got " +
                               std::to_string(matrix.values[i]));
  }
}

}  // namespace

DenseMatrix read_npy_matrix(InputFile& file) {
  const NpyHeader header = read_npy_header(file);
  std::size_t bytes = 0;
  const ValueReader reader = reader_of(header.type, bytes, file.path());
  if (header.rows == 0 || header.columns == 0) throw data_error(file.path(), "expected numbers, got an empty array");
  if (header.columns > ~std::uint64_t{0} / 8 / header.rows) {
    throw data_error(file.path(), "the file ends inside its values: its header promises more than any file can hold");
  }
  DenseMatrix matrix{.rows = header.rows, .columns = header.columns, .values = {}};
  matrix.values = read_values(file, header.rows * header.columns, bytes, reader);
  if (header.fortran && header.columns > 1) {
    std::vector<double> by_rows(matrix.values.size());
    for (std::uint64_t c = 0; c < matrix.columns; ++c) {
      for (std::uint64_t r = 0; r < matrix.rows; ++r) {
        by_rows[static_cast<std::size_t>(r * matrix.columns + c)] =
            matrix.values[static_cast<std::size_t>(c * matrix.rows + r)];
      }
    }
    matrix.values = std::move(by_rows);
  }
  check_finite(file.path(), matrix);
  return matrix;
}

}  // namespace orrery
