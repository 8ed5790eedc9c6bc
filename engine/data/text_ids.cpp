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

TextIds::Key TextIds::key_of(std::string_view text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  if (text.size() > kShort) return {hash_bytes(text), size};
  std::uint64_t word = 0;
  std::memcpy(&word, text.data(), text.size());
  return {word, size};
}

std::size_t TextIds::first_slot(Key key) const { return fold(key.word ^ kA, kB + key.size) & (slots_.size() - 1); }

std::size_t TextIds::slot_of(std::string_view text, Key key) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = first_slot(key);
  while (true) {
    const Slot& slot = slots_[at];
    if (slot.index == kNone) return at;
    if (slot.word == key.word && slot.size == key.size && (key.size <= kShort || (*this)[slot.index] == text))
      return at;
    at = (at + 1) & mask;
  }
}

std::uint32_t TextIds::insert(std::string_view text) {
  if (2 * (ends_.size() + 1) > slots_.size()) grow();
  const Key key = key_of(text);
  Slot& slot = slots_[slot_of(text, key)];
  if (slot.index != kNone) return slot.index;
  if (ends_.size() >= kNone) throw std::length_error("more than 2^32 - 2 different ids");
  slot = {key.word, key.size, static_cast<std::uint32_t>(ends_.size())};
  bytes_ += text;
  ends_.push_back(bytes_.size());
  return slot.index;
}

std::uint32_t TextIds::find(std::string_view text) const {
  if (slots_.empty()) return kNone;
  return slots_[slot_of(text, key_of(text))].index;
}

void TextIds::prefetch(std::string_view text) const {
  if (!slots_.empty()) __builtin_prefetch(&slots_[first_slot(key_of(text))]);
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
  const std::vector<Slot> old = std::move(slots_);
  slots_.assign(old.empty() ? 64 : 2 * old.size(), Slot{});
  for (const Slot& slot : old) {
    if (slot.index != kNone) slots_[slot_of((*this)[slot.index], {slot.word, slot.size})] = slot;
  }
}

}  // namespace orrery
