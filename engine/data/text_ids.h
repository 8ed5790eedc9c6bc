// Strings numbered in the order of their first appearance: the vocabulary of an id column while it is read, and the
// textual form of an IdMap.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// A 64-bit hash of bytes; the same on every machine of the same byte order. Not safe against an adversary.
std::uint64_t hash_bytes(std::string_view bytes);

/// A set of strings with dense indices. Memory: the bytes once, 8 bytes a string, and 32 to 64 bytes a string of table.
class TextIds {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  /// The index of `text`, which becomes size() if it is new. At most 2^32 − 2 strings; throws std::length_error beyond.
  std::uint32_t insert(std::string_view text);
  /// The index of `text`, or kNone.
  std::uint32_t find(std::string_view text) const;
  /// Begins to load what find() of this string will look at, so that several look-ups wait for memory together.
  void prefetch(std::string_view text) const;
  /// The string of an index below size(); the view lives until the next insert() or clear().
  std::string_view operator[](std::uint32_t index) const;
  std::uint32_t size() const { return static_cast<std::uint32_t>(ends_.size()); }
  void clear();

 private:
  // Short strings are compared in the table itself: one access to memory instead of three.
  struct Key {
    std::uint64_t word;  // a string of up to 8 bytes itself; of a longer one its hash
    std::uint32_t size;
  };
  struct Slot {
    std::uint64_t word = 0;
    std::uint32_t size = 0;
    std::uint32_t index = kNone;
  };
  static constexpr std::size_t kShort = 8;

  static Key key_of(std::string_view text);
  std::size_t first_slot(Key key) const;
  std::size_t slot_of(std::string_view text, Key key) const;
  void grow();

  std::string bytes_;
  std::vector<std::uint64_t> ends_;
  std::vector<Slot> slots_;
};

}  // namespace orrery
