// The inner loop of the ratings reader: lines of one piece of text to 12-byte ratings. Ids stay integers as long as the
// column allows it, which needs no look-up at all; the first id that is no small plain integer turns the column of its
// piece into numbered strings.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

#include "engine/data/format.h"
#include "engine/data/pieces.h"
#include "engine/data/rating_store.h"
#include "engine/data/text_ids.h"

namespace orrery {

/// What a line looks like. The defaults are those of triples; MatrixMarket narrows them.
struct RatingSyntax {
  Separator separator = Separator::blanks;
  char comment = '#';
  std::uint32_t least_columns = 3;  ///< 2: the value may be missing
  std::uint32_t most_columns = 4;
  float missing_value = std::numeric_limits<float>::quiet_NaN();
  bool indices = false;  ///< ids are indices from 1 to rows or columns, nothing else
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  /// Set once a column has had string ids: those of earlier waves. Ids found there keep their number; new ones are
  /// numbered within the piece, from its size on.
  const TextIds* seen_users = nullptr;
  const TextIds* seen_items = nullptr;
};

/// The ids of one column in one piece: the ratings hold either the ids themselves or their numbers as strings.
struct IdColumn {
  bool integers = true;
  std::uint32_t highest = 0;      ///< of integers
  const TextIds* seen = nullptr;  ///< strings 0 to seen->size() − 1, if any
  TextIds texts;                  ///< the strings behind them

  // Strings that wait for their number: the table of a large vocabulary lies far away, so look-ups are begun early.
  struct Waiting {
    std::string_view text;
    std::uint32_t* id;
  };
  std::array<Waiting, 32> waiting;
  std::size_t waiting_count = 0;

  std::uint32_t seen_size() const { return seen != nullptr ? seen->size() : 0; }
  /// The number of a string, at once. Those that wait must have been settled.
  std::uint32_t number(std::string_view text) {
    const std::uint32_t found = seen != nullptr ? seen->find(text) : TextIds::kNone;
    return found != TextIds::kNone ? found : seen_size() + texts.insert(text);
  }
  /// Writes the number of a string to `id` by the next settle(). Text and place must stay until then.
  void number_later(std::string_view text, std::uint32_t& id) {
    if (waiting_count == waiting.size()) settle();
    if (seen != nullptr) seen->prefetch(text);
    waiting[waiting_count++] = {text, &id};
  }
  void settle() {
    for (std::size_t i = 0; i < waiting_count; ++i) *waiting[i].id = number(waiting[i].text);
    waiting_count = 0;
  }
  /// Renumbers `count` ratings that hold integers, in the order of their first appearance.
  void to_texts(Rating* ratings, std::size_t count, std::uint32_t Rating::*id);
};

/// What was parsed of one piece.
struct RatingPiece : PieceStatus {
  std::unique_ptr<Rating[]> ratings;
  std::size_t capacity = 0;
  std::size_t count = 0;
  IdColumn users;
  IdColumn items;
  std::uint64_t fourth_columns = 0;

  void clear();
  /// Makes room for as many ratings as `bytes` of text can hold; keeps nothing.
  void reserve(std::size_t bytes);
};

/// Parses all lines of a piece, up to the first fault.
void parse_rating_lines(const RatingSyntax& syntax, TextPiece piece, RatingPiece& out);

/// Parses lines of one number each: the values of a MatrixMarket array, whose place gives user and item.
void parse_rating_values(TextPiece piece, RatingPiece& out);

/// Gives the values of an array with `rows` rows their users and items (from 1): value i of the file stands in row
/// i mod rows, column i / rows. `first` values precede the piece.
void place_rating_values(RatingPiece& piece, std::uint64_t first, std::uint64_t rows);

}  // namespace orrery
