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

 private:
  std::vector<std::uint32_t> table_;
  const IdMap* map_ = nullptr;
};

/// Collects one column. take(), then renumber() of every piece of the wave, then again; finish() at the end.
class RatingColumn {
 public:
  bool integers() const { return integers_; }
  /// Learns the ids of a wave. Ratings that are in the store already are renumbered when the column turns to strings.
  void take(std::span<RatingPiece> wave, IdColumn RatingPiece::*column, RatingStore& store,
            const ParallelFor& parallel);
  /// Brings the ratings of piece i of the last wave to the numbering of the column. Different i in parallel.
  void renumber(std::size_t i, RatingPiece& piece) const;
  /// Sets `map` (unless the ids are looked up in `known`) and says how the store's column is translated into it.
  ColumnTranslation finish(const RatingStore& store, const IdMap* known, const ParallelFor& parallel, IdMap& map);

 private:
  void store_to_texts(RatingStore& store);

  bool integers_ = true;
  std::uint32_t Rating::*id_ = nullptr;
  TextIds texts_;
  std::vector<std::vector<std::uint32_t>> piece_tables_;  // per piece of the wave: its string numbers to ours
};

}  // namespace orrery
