#include "engine/npy.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <system_error>

#include "engine/atomic_file.h"
#include "engine/error.h"

namespace orrery {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::array kTypes{NpyType::float32, NpyType::float64, NpyType::int32, NpyType::int64,
                            NpyType::uint8,   NpyType::uint32,  NpyType::uint64};
constexpr std::size_t kAlignment = 64;
constexpr std::uint64_t kLongestHeader = 1 << 16;  // ours are below 128 bytes, numpy's for rank 2 too

/// The Python dictionary of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } in any order of keys.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  std::string descr;
  bool fortran_order = false;
  NpyShape shape;

  /// False when it is no such dictionary, or a key is missing, doubled or unknown.
  bool parse() {
    if (!take('{')) return false;
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    while (!take('}')) {
      std::string key;
      if (!quoted_text(key) || !take(':')) return false;
      bool good = false;
      if (key == "descr" && !has_descr) good = has_descr = quoted_text(descr);
      if (key == "fortran_order" && !has_order) good = has_order = boolean(fortran_order);
      if (key == "shape" && !has_shape) good = has_shape = tuple(shape);
      if (!good) return false;
      if (!take(',') && !peek('}')) return false;
    }
    skip_spaces();
    return at_ == text_.size() && has_descr && has_order && has_shape;
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool peek(char symbol) {
    skip_spaces();
    return at_ < text_.size() && text_[at_] == symbol;
  }
  bool take(char symbol) {
    if (!peek(symbol)) return false;
    ++at_;
    return true;
  }
  bool quoted_text(std::string& value) {
    const char quote = peek('"') ? '"' : '\'';
    if (!take(quote)) return false;
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) return false;
    value = text_.substr(at_, end - at_);
    at_ = end + 1;
    return true;
  }
  bool boolean(bool& value) {
    skip_spaces();
    for (const bool candidate : {false, true}) {
      const std::string_view word = candidate ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      value = candidate;
      return true;
    }
    return false;
  }
  bool tuple(NpyShape& value) {
    if (!take('(')) return false;
    while (!take(')')) {
      skip_spaces();
      std::uint64_t length = 0;
      const auto result = std::from_chars(text_.data() + at_, text_.data() + text_.size(), length);
      if (result.ec != std::errc{}) return false;
      at_ = static_cast<std::size_t>(result.ptr - text_.data());
      value.push_back(length);
      if (!take(',') && !peek(')')) return false;
    }
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// The product, or nothing when it does not fit in 63 bits.
std::optional<std::uint64_t> payload_size(NpyType type, const NpyShape& shape) {
  std::uint64_t bytes = bytes_per_value(type);
  for (const std::uint64_t length : shape) {
    if (__builtin_mul_overflow(bytes, length, &bytes)) return std::nullopt;
  }
  if (bytes >> 63 != 0) return std::nullopt;
  return bytes;
}

std::size_t read_up_to(std::FILE* file, void* to, std::size_t size) { return std::fread(to, 1, size, file); }

}  // namespace

std::string_view to_string(NpyType type) {
  switch (type) {
    case NpyType::float32:
      return "<f4";
    case NpyType::float64:
      return "<f8";
    case NpyType::int32:
      return "<i4";
    case NpyType::int64:
      return "<i8";
    case NpyType::uint8:
      return "|u1";
    case NpyType::uint32:
      return "<u4";
    case NpyType::uint64:
      return "<u8";
  }
  return "?";
}

std::size_t bytes_per_value(NpyType type) { return static_cast<std::size_t>(to_string(type)[2] - '0'); }

std::uint64_t value_count(const NpyShape& shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t length : shape) count *= length;
  return count;
}

std::string to_string(const NpyShape& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::string npy_header(NpyType type, const NpyShape& shape) {
  std::string dictionary =
      "{'descr': '" + std::string{to_string(type)} + "', 'fortran_order': False, 'shape': " + to_string(shape) + ", }";
  const std::size_t fixed = kMagic.size() + 4;
  const std::size_t unpadded = fixed + dictionary.size() + 1;
  dictionary.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  dictionary += '\n';
  std::string header{kMagic};
  header += '\x01';
  header += '\x00';
  header += static_cast<char>(dictionary.size() & 0xff);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

void write_npy(const ByteSink& sink, NpyType type, const NpyShape& shape, const ByteSource& source) {
  const std::string header = npy_header(type, shape);
  sink(std::as_bytes(std::span{header}));
  const std::uint64_t expected = payload_size(type, shape).value_or(~std::uint64_t{0});
  std::uint64_t written = 0;
  source([&](std::span<const std::byte> bytes) {
    written += bytes.size();
    sink(bytes);
  });
  if (written != expected) {
    throw Error(ErrorKind::internal, "array of shape " + to_string(shape) + ": expected " + std::to_string(expected) +
                                         " bytes, got " + std::to_string(written));
  }
}

void write_npy(const std::filesystem::path& path, NpyType type, const NpyShape& shape, const ByteSource& source) {
  AtomicFile file(path);
  write_npy([&](std::span<const std::byte> bytes) { file.write(bytes); }, type, shape, source);
  file.commit();
}

NpyReader::NpyReader(const std::filesystem::path& path) : path_(path), file_(std::fopen(path.c_str(), "rbe")) {
  if (!file_) throw data_error(path.string(), "cannot be read: " + std::string{std::strerror(errno)});
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(path, error);  // also an error for a directory
  if (error) throw data_error(path.string(), "cannot be read: " + error.message());
  parse_header();
  const std::uint64_t expected = header_.size() + payload_bytes_;
  if (size != expected) {
    throw data_error(path.string(), "expected " + std::to_string(expected) + " bytes for an array of shape " +
                                        to_string(shape_) + ", got " + std::to_string(size));
  }
}

NpyReader::~NpyReader() = default;
NpyReader::NpyReader(NpyReader&&) noexcept = default;

void NpyReader::parse_header() {
  const auto refuse = [&](const std::string& what) { return data_error(path_.string(), what); };
  std::array<char, 12> start{};
  const std::size_t read = read_up_to(file_.get(), start.data(), 10);
  if (read < 10 || std::string_view{start.data(), kMagic.size()} != kMagic) throw refuse("is not a .npy file");
  const int version = start[6];
  if (version < 1 || version > 3 || start[7] != 0) throw refuse("expected .npy version 1.0, 2.0 or 3.0, got another");
  std::size_t fixed = 10;
  if (version > 1) {
    if (read_up_to(file_.get(), start.data() + 10, 2) != 2) throw refuse("ends in its header");
    fixed = 12;
  }
  std::uint64_t length = 0;
  for (std::size_t i = fixed; i > 8; --i) length = length << 8 | static_cast<unsigned char>(start[i - 1]);
  if (length > kLongestHeader) throw refuse("its header claims " + std::to_string(length) + " bytes");
  std::string dictionary(static_cast<std::size_t>(length), '\0');
  if (read_up_to(file_.get(), dictionary.data(), dictionary.size()) != dictionary.size()) {
    throw refuse("ends in its header");
  }
  HeaderParser parser(dictionary);
  if (!parser.parse()) throw refuse("its header is not a .npy dictionary: " + orrery::quoted(dictionary));
  const auto* type =
      std::find_if(kTypes.begin(), kTypes.end(), [&](NpyType t) { return to_string(t) == parser.descr; });
  if (type == kTypes.end())
    throw refuse("expected values of type f4, f8, i4, i8, u1, u4 or u8 in little endian, got " +
                 orrery::quoted(parser.descr));
  if (parser.shape.size() > 2) throw refuse("expected at most 2 dimensions, got " + to_string(parser.shape));
  if (parser.fortran_order && parser.shape.size() == 2) throw refuse("expected C order, got Fortran order");
  const std::optional<std::uint64_t> bytes = payload_size(*type, parser.shape);
  if (!bytes) throw refuse("its shape " + to_string(parser.shape) + " is too large");
  type_ = *type;
  shape_ = parser.shape;
  payload_bytes_ = *bytes;
  header_ = std::string{start.data(), fixed} + dictionary;
}

void NpyReader::read_bytes(std::span<std::byte> bytes) {
  if (bytes.size() > payload_bytes_ - read_bytes_) {
    throw Error(ErrorKind::internal, path_.string() + ": more values asked for than the array has");
  }
  if (read_up_to(file_.get(), bytes.data(), bytes.size()) != bytes.size()) {
    throw data_error(path_.string(), "ended or failed while it was read");
  }
  read_bytes_ += bytes.size();
}

void NpyReader::expect_type(NpyType type) const {
  if (type == type_) return;
  throw data_error(path_.string(), "expected values of type " + std::string{to_string(type)} + ", got " +
                                       std::string{to_string(type_)});
}

}  // namespace orrery
