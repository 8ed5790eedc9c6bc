#include "engine/data/text_ids.h"

#include <cstring>
#include <stdexcept>

namespace orrery {

namespace {

std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

constexpr std::uint64_t kA = 0x9E3779B97F4A7C15, kB = 0xC2B2AE3D27D4EB4F, kC = 0x165667B19E3779F9;

}  // namespace

std::uint64_t hash_bytes(std::string_view bytes) {
  std::uint64_t state = kC ^ bytes.size();
  const char* p = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, p += 8) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    state = fold(state ^ kA, word ^ kB);
  }
  std::uint64_t tail = 0;
  if (left > 0) std::memcpy(&tail, p, left);
  return fold(fold(state ^ kB, tail ^ kA), kC);
}

std::size_t TextIds::slot_of(std::string_view text, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  std::size_t at = hash & mask;
  while (slots_[at].index != kNone && (slots_[at].tag != tag || (*this)[slots_[at].index] != text))
    at = (at + 1) & mask;
  return at;
}

std::uint32_t TextIds::insert(std::string_view text) {
  if (2 * (ends_.size() + 1) > slots_.size()) grow();
  const std::uint64_t hash = hash_bytes(text);
  Slot& slot = slots_[slot_of(text, hash)];
  if (slot.index != kNone) return slot.index;
  if (ends_.size() >= kNone) throw std::length_error("more than 2^32 - 2 different ids");
  slot = {static_cast<std::uint32_t>(ends_.size()), static_cast<std::uint32_t>(hash >> 32)};
  bytes_ += text;
  ends_.push_back(bytes_.size());
  return slot.index;
}

std::uint32_t TextIds::find(std::string_view text) const {
  if (slots_.empty()) return kNone;
  return slots_[slot_of(text, hash_bytes(text))].index;
}

std::string_view TextIds::operator[](std::uint32_t index) const {
  const std::uint64_t begin = index == 0 ? 0 : ends_[index - 1];
  return {bytes_.data() + begin, static_cast<std::size_t>(ends_[index] - begin)};
}

void TextIds::clear() {
  bytes_.clear();
  ends_.clear();
  slots_.assign(slots_.size(), Slot{});
}

void TextIds::grow() {
  slots_.assign(slots_.empty() ? 64 : 2 * slots_.size(), Slot{});
  for (std::uint32_t i = 0; i < size(); ++i) {
    const std::uint64_t hash = hash_bytes((*this)[i]);
    slots_[slot_of((*this)[i], hash)] = {i, static_cast<std::uint32_t>(hash >> 32)};
  }
}

}  // namespace orrery
