// Ids of one column over all pieces of a file, on their way to dense indices. The result is a function of the file
// alone (the order is in id_map.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/data/id_map.h"
#include "engine/data/parallel_for.h"
#include "engine/data/rating_lines.h"
#include "engine/data/rating_store.h"

namespace orrery {

/// From what the store holds in a column to the final indices. Many threads may apply() it.
class ColumnTranslation {
 public:
  /// The column holds numbered strings; string i becomes table[i]. An empty table changes nothing.
  static ColumnTranslation by_table(std::vector<std::uint32_t> table);
  /// The column holds integer ids, to be looked up in a map that outlives this.
  static ColumnTranslation by_map(const IdMap& map);

  void apply(std::span<Rating> ratings, std::uint32_t Rating::*id) const;
  /// Of a column of strings.
  std::uint32_t of_string(std::uint32_t number) const { return table_.empty() ? number : table_[number]; }

 private:
  std::vector<std::uint32_t> table_;
  const IdMap* map_ = nullptr;
};

/// Collects one column. take(), then renumber() of every piece of the wave, then again; finish() at the end.
class RatingColumn {
 public:
  /// `known`: look the ids up there instead of numbering them; it outlives this.
  explicit RatingColumn(const IdMap* known) : known_(known) {}
  /// Numbers integers as strings too, in the order of their first appearance, so that no rating need be in a store to
  /// be renumbered. The final indices are the same.
  static RatingColumn without_store();
  /// The strings so far; nullptr while all ids were small integers.
  const TextIds* texts() const { return integers_ ? nullptr : &texts_; }
  /// Learns the ids of a wave. Ratings that are in the store already are renumbered when the column turns to strings.
  void take(std::span<RatingPiece> wave, IdColumn RatingPiece::*column, RatingStore& store,
            const ParallelFor& parallel);
  /// Brings the ratings of piece i of the last wave to the numbering of the column. Different i in parallel.
  void renumber(std::size_t i, RatingPiece& piece);
  /// Sets `map` (unless the ids are looked up) and says how the store's column is translated into it.
  ColumnTranslation finish(const RatingStore& store, IdMap& map);
  /// How the ratings of the last wave are translated into the known map: after renumber(), instead of finish().
  ColumnTranslation translation_of_wave();

 private:
  void make_room_for_marks(std::span<const RatingPiece> wave, IdColumn RatingPiece::*column, std::uint64_t before);
  void store_to_texts(RatingStore& store);

  const IdMap* known_;
  bool integers_ = true;
  // One bit for each integer that occurred, as long as that is less memory than the ratings.
  bool marking_ = true;
  std::vector<std::uint64_t> marks_;
  std::uint32_t Rating::*id_ = nullptr;
  TextIds texts_;
  std::uint32_t seen_ = 0;  // strings that the pieces of the wave could see while they were parsed
  std::vector<std::vector<std::uint32_t>> piece_tables_;  // per piece of the wave: its new strings to our numbers
  std::vector<std::uint32_t> known_indices_;              // of the strings so far, for translation_of_wave()
};

}  // namespace orrery
