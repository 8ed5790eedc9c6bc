// NumPy's .npy files (format description: numpy/lib/format.py, versions 1.0 to 3.0): numeric models and dense data are
// kept in them so that people can open them with their own tools (design, section 10). Arrays of rank 0, 1 and 2 in C
// order and little endian; everything else is refused with what was expected and what was got.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace orrery {

enum class NpyType { float32, float64, int32, int64, uint8, uint32, uint64 };

/// numpy's spelling: "<f4", "<f8", "<i4", "<i8", "|u1", "<u4", "<u8".
std::string_view to_string(NpyType type);
std::size_t bytes_per_value(NpyType type);
template <class T>
constexpr NpyType npy_type_of() {
  if constexpr (std::is_same_v<T, float>) return NpyType::float32;
  if constexpr (std::is_same_v<T, double>) return NpyType::float64;
  if constexpr (std::is_same_v<T, std::int32_t>) return NpyType::int32;
  if constexpr (std::is_same_v<T, std::int64_t>) return NpyType::int64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return NpyType::uint8;
  if constexpr (std::is_same_v<T, std::uint32_t>) return NpyType::uint32;
  if constexpr (std::is_same_v<T, std::uint64_t>) return NpyType::uint64;
}

/// Lengths of the dimensions, slowest first: {} is one value, {n} a vector, {rows, columns} a matrix by rows.
using NpyShape = std::vector<std::uint64_t>;
/// The number of values, 1 for rank 0.
std::uint64_t value_count(const NpyShape& shape);
/// "(3, 4)"
std::string to_string(const NpyShape& shape);

/// Takes the next bytes of an array.
using ByteSink = std::function<void(std::span<const std::byte>)>;
/// Hands an array to a sink, in order, in pieces of any size: a writer needs no copy of the model in file layout.
using ByteSource = std::function<void(const ByteSink&)>;

/// The bytes in front of the values: magic, version 1.0, a dictionary, padded to a multiple of 64.
std::string npy_header(NpyType type, const NpyShape& shape);
/// Header and values to `sink`. Throws an internal Error when the source gives more or fewer bytes than the shape says.
void write_npy(const ByteSink& sink, NpyType type, const NpyShape& shape, const ByteSource& source);
/// The same into a file (AtomicFile: whole or not at all).
void write_npy(const std::filesystem::path& path, NpyType type, const NpyShape& shape, const ByteSource& source);
template <class T>
void write_npy(const std::filesystem::path& path, std::span<const T> values, const NpyShape& shape) {
  write_npy(path, npy_type_of<T>(), shape, [&](const ByteSink& sink) { sink(std::as_bytes(values)); });
}

/// An open .npy file. Construct = the header is valid and the size of the file is exactly what it promises, so nobody
/// allocates more than the file holds. Values are read once, front to back. Throws data errors. Not for two threads.
class NpyReader {
 public:
  explicit NpyReader(const std::filesystem::path& path);
  ~NpyReader();
  NpyReader(NpyReader&&) noexcept;
  NpyReader& operator=(NpyReader&&) = delete;

  NpyType type() const noexcept { return type_; }
  const NpyShape& shape() const noexcept { return shape_; }
  /// Of all values together.
  std::uint64_t payload_bytes() const noexcept { return payload_bytes_; }
  /// The header as it stands in the file.
  const std::string& header() const noexcept { return header_; }

  /// The next bytes.size() bytes of the values, as they stand in the file. Asking for more than are left is an internal
  /// Error; a file that shrank meanwhile a data error.
  void read_bytes(std::span<std::byte> bytes);
  /// The next values, which must be of the file's type (else a data error).
  template <class T>
  void read(std::span<T> values) {
    expect_type(npy_type_of<T>());
    read_bytes(std::as_writable_bytes(values));
  }
  /// All values; the file must hold type T.
  template <class T>
  std::vector<T> read_all() {
    std::vector<T> values(static_cast<std::size_t>(value_count(shape_)));
    read(std::span<T>{values});
    return values;
  }
  /// Throws a data error unless the file holds that type.
  void expect_type(NpyType type) const;

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void parse_header();

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Closer> file_;
  std::string header_;
  NpyType type_ = NpyType::float64;
  NpyShape shape_;
  std::uint64_t payload_bytes_ = 0;
  std::uint64_t read_bytes_ = 0;
};

}  // namespace orrery
