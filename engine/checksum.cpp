#include "engine/checksum.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

namespace orrery {

static_assert(std::endian::native == std::endian::little, "file formats and checksums are little endian");

namespace {

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87U;
constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4FU;
constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9U;
constexpr std::uint64_t kPrime4 = 0x85EBCA77C2B2AE63U;
constexpr std::uint64_t kPrime5 = 0x27D4EB2F165667C5U;
constexpr std::size_t kBlock = 32;

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

std::uint64_t mix_in(std::uint64_t lane, std::uint64_t input) {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

void consume(std::array<std::uint64_t, 4>& lanes, const std::byte* block) {
  for (std::size_t i = 0; i < 4; ++i) lanes[i] = mix_in(lanes[i], load<std::uint64_t>(block + 8 * i));
}

}  // namespace

Checksum::Checksum() : lanes_{kPrime1 + kPrime2, kPrime2, 0, 0 - kPrime1} {}

Checksum& Checksum::update(std::span<const std::byte> bytes) {
  const std::size_t held = size_ % kBlock;
  size_ += bytes.size();
  if (held != 0) {
    const std::size_t taken = std::min(kBlock - held, bytes.size());
    std::copy_n(bytes.begin(), taken, block_.begin() + static_cast<std::ptrdiff_t>(held));
    bytes = bytes.subspan(taken);
    if (held + taken < kBlock) return *this;
    consume(lanes_, block_.data());
  }
  while (bytes.size() >= kBlock) {
    consume(lanes_, bytes.data());
    bytes = bytes.subspan(kBlock);
  }
  std::copy(bytes.begin(), bytes.end(), block_.begin());
  return *this;
}

Checksum& Checksum::update(std::string_view text) { return update(std::as_bytes(std::span{text})); }

std::uint64_t Checksum::value() const {
  std::uint64_t hash = kPrime5;
  if (size_ >= kBlock) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (const std::uint64_t lane : lanes_) hash = (hash ^ mix_in(0, lane)) * kPrime1 + kPrime4;
  }
  hash += size_;
  const std::byte* at = block_.data();
  std::size_t left = size_ % kBlock;
  for (; left >= 8; left -= 8, at += 8) {
    hash = std::rotl(hash ^ mix_in(0, load<std::uint64_t>(at)), 27) * kPrime1 + kPrime4;
  }
  if (left >= 4) {
    hash = std::rotl(hash ^ (load<std::uint32_t>(at) * kPrime1), 23) * kPrime2 + kPrime3;
    left -= 4;
    at += 4;
  }
  for (; left > 0; --left, ++at) hash = std::rotl(hash ^ (load<std::uint8_t>(at) * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

std::uint64_t checksum(std::span<const std::byte> bytes) { return Checksum{}.update(bytes).value(); }
std::uint64_t checksum(std::string_view text) { return Checksum{}.update(text).value(); }

std::string checksum_text(std::uint64_t value) {
  std::string text(16, '0');
  for (std::size_t i = 16; i > 0; --i, value >>= 4) text[i - 1] = "0123456789abcdef"[value & 15];
  return text;
}

std::optional<std::uint64_t> parse_checksum(std::string_view text) {
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string_view::npos) return std::nullopt;
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

}  // namespace orrery
