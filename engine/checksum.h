// The checksum of every file that the project writes: XXH64 with seed 0 (Y. Collet, xxHash specification 0.1.1), so
// that `xxh64sum` can check our files. It finds damage; it is no protection against forgery.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace orrery {

/// The checksum of bytes that come in pieces; how they are cut makes no difference. About 10 GB/s. Copying one copies
/// the state.
class Checksum {
 public:
  Checksum();
  Checksum& update(std::span<const std::byte> bytes);
  Checksum& update(std::string_view text);
  /// Of all bytes so far; more may follow.
  std::uint64_t value() const;

 private:
  std::array<std::uint64_t, 4> lanes_;
  std::array<std::byte, 32> block_{};
  std::uint64_t size_ = 0;
};

std::uint64_t checksum(std::span<const std::byte> bytes);
std::uint64_t checksum(std::string_view text);
/// 16 lower-case hexadecimal digits, as they stand in manifests.
std::string checksum_text(std::uint64_t value);
/// The inverse; nothing for any other text.
std::optional<std::uint64_t> parse_checksum(std::string_view text);

}  // namespace orrery
