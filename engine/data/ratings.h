// Ratings: `user item value` triples in any of the spellings of cli.md (and MatrixMarket), read in parallel into 12
// bytes a rating, with the ids of users and items mapped to dense indices (id_map.h says in which order).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/format.h"
#include "engine/data/id_map.h"
#include "engine/data/parallel_for.h"
#include "engine/data/rating_store.h"

namespace orrery {

struct RatingsOptions {
  ReadOptions read;
  std::optional<DataFormat> format;  ///< ratings or matrix_market instead of what the content says
  /// Lines may end after the item (prediction input); the value is then NaN.
  bool pairs = false;
  /// Maps of a model: ids are looked up in them instead of being numbered, and unknown ones become IdMap::kUnseen.
  const IdMap* known_users = nullptr;
  const IdMap* known_items = nullptr;
};

/// Ratings of one file. All lines are kept, in the order of the file, also several of the same pair
/// (count_duplicates()).
struct RatingsData {
  RatingStore ratings;
  IdMap users;  ///< empty where RatingsOptions gave a known map
  IdMap items;
  std::uint64_t values = 0;  ///< ratings with a value; the next four are over these
  double mean = 0;
  double variance = 0;
  float lowest = 0;
  float highest = 0;
  std::uint64_t unseen_users = 0;  ///< ratings whose user is not in the known map
  std::uint64_t unseen_items = 0;
  /// Of ids, indices, values and their order; the same for every spelling, compression, piece size and thread count.
  std::uint64_t checksum = 0;
  Recognised recognised;
  std::vector<std::string> warnings;
};

/// Throws usage_error for a format that read_ratings() does not read.
void check_ratings_format(DataFormat format);
/// Reads a ratings file. Cost: the text once, in parallel; 12 bytes a rating plus the ids. Throws data_error with file,
/// line and column for the first bad line of the file, for an empty file and for one with nothing but comments.
RatingsData read_ratings(const std::string& path, const RatingsOptions& options = {});

/// What a file of ratings is about, without the ratings: who is to keep some of them can choose by it.
struct RatingsOutline {
  IdMap users, items;
  std::vector<std::uint32_t> user_counts, item_counts;  ///< ratings of each, by index
  std::uint64_t ratings = 0;
};
/// The ids are those of read_ratings(). Cost: as reading, where all ids are integers several times as much; memory for
/// ids and counts only. Throws as it does, and data_error for an id with more than 2^32 - 1 ratings.
RatingsOutline outline_ratings(const std::string& path, const RatingsOptions& options = {});
/// Reads once more and keeps the ratings of users with keeps[user], in the order of the file; everything else that is
/// said is of all. The known ids of `options` must be those of the outline. Throws data_error when the file is not that
/// one any more.
RatingsData read_some_ratings(const std::string& path, const RatingsOptions& options, const RatingsOutline& outline,
                              const std::vector<bool>& keeps);

/// How many ratings repeat a pair of user and item that came before. Pairs with an unseen id are not counted. Cost:
/// O(ratings + users + items) time with two random accesses a rating, 4 bytes a rating of memory for its duration.
/// A trainer that visits ratings grouped by user finds them cheaper by itself, see DuplicateStamp.
std::uint64_t count_duplicates(const RatingStore& ratings);

/// Finds duplicates among ratings that are visited grouped by user: one access a rating, no memory but 4 bytes an item.
class DuplicateStamp {
 public:
  explicit DuplicateStamp(std::size_t items) : last_user_(items, IdMap::kUnseen) {}
  /// True when `item` came before in the run of this user.
  bool repeats(std::uint32_t user, std::uint32_t item) {
    const bool same = last_user_[item] == user;
    last_user_[item] = user;
    return same;
  }

 private:
  std::vector<std::uint32_t> last_user_;
};

/// The warning of count_duplicates() in the words that run.json shows; empty for 0.
std::string duplicates_warning(std::uint64_t duplicates);

}  // namespace orrery
