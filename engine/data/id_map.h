// The ids of one column of a data set (users, items) and the dense indices that the model uses for them.
//
// The order is a function of the file alone, never of threads or pieces: when every id of the column is a plain decimal
// integer below 2^64 (no sign, no leading zero), ids are numbered in ascending order of their value; otherwise in the
// order of their first appearance. Only ids that occur get an index.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/text_ids.h"

namespace orrery {

/// The value of a plain decimal integer id; false for anything else ("007", "+1", "-1", "x", 2^64 and above).
bool plain_integer(std::string_view text, std::uint64_t& value);

class IdMap {
 public:
  /// What find() answers for an id that is not in the map.
  static constexpr std::uint32_t kUnseen = 0xFFFFFFFF;

  IdMap() = default;
  /// Takes integer ids; they must ascend strictly, at most 2^32 − 2 of them.
  static IdMap from_integers(std::vector<std::uint64_t> ascending);
  /// Takes the integers first, first + 1, …, first + count − 1, without storing them.
  static IdMap from_range(std::uint64_t first, std::uint32_t count);
  /// Takes ids in index order.
  static IdMap from_texts(TextIds texts);
  /// Takes what texts() gave. Throws std::invalid_argument for a doubled or empty id.
  static IdMap from_lines(std::span<const std::string> ids);

  std::uint32_t size() const;
  bool empty() const { return size() == 0; }
  /// True when the ids are integers, so that find(std::uint64_t) is the quick way in.
  bool integers() const { return texts_.size() == 0; }
  /// True when the ids are the integers first, first + 1, … : the index is then a subtraction.
  bool is_range() const { return integers() && values_.empty(); }
  std::uint64_t first() const { return first_; }  ///< of a range
  /// The id of an index below size().
  std::string text(std::uint32_t index) const;
  /// The index of an id, or kUnseen. An integer id is found by its plain spelling only.
  std::uint32_t find(std::string_view id) const;
  std::uint32_t find(std::uint64_t id) const;

  /// All ids in index order.
  std::vector<std::string> texts() const;
  /// A hash of all ids in index order.
  std::uint64_t checksum() const;
  /// One id a line, in index order.
  void save(std::ostream& out) const;
  /// Reads what save() wrote. Throws data_error for a missing file, an empty line or a doubled id.
  static IdMap load(const std::string& path);

 private:
  void build_lookup();
  void build_hash();
  std::size_t hash_slot(std::uint64_t id) const;

  // Integer ids: either a range, or ascending values with a table over their span, or (wide span) a hash table of
  // ranks.
  std::uint64_t first_ = 0;
  std::uint32_t range_ = 0;
  std::vector<std::uint64_t> values_;
  std::vector<std::uint32_t> table_;
  std::vector<std::uint32_t> hash_;
  TextIds texts_;
};

}  // namespace orrery
