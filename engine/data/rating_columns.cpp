#include "engine/data/rating_columns.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <charconv>
#include <numeric>

namespace orrery {

ColumnTranslation ColumnTranslation::by_table(std::vector<std::uint32_t> table) {
  ColumnTranslation translation;
  translation.table_ = std::move(table);
  return translation;
}

ColumnTranslation ColumnTranslation::by_map(const IdMap& map) {
  ColumnTranslation translation;
  translation.map_ = &map;
  return translation;
}

void ColumnTranslation::apply(std::span<Rating> ratings, std::uint32_t Rating::*id) const {
  if (map_ != nullptr && map_->is_range()) {
    const std::uint64_t first = map_->first(), count = map_->size();
    for (Rating& r : ratings) {
      const std::uint64_t index = r.*id - first;
      r.*id = index < count ? static_cast<std::uint32_t>(index) : IdMap::kUnseen;
    }
  } else if (map_ != nullptr) {
    for (Rating& r : ratings) r.*id = map_->find(std::uint64_t{r.*id});
  } else if (!table_.empty()) {
    for (Rating& r : ratings) r.*id = table_[r.*id];
  }
}

void RatingColumn::take(std::span<RatingPiece> wave, IdColumn RatingPiece::*column, RatingStore& store,
                        const ParallelFor& parallel) {
  id_ = column == &RatingPiece::users ? &Rating::user : &Rating::item;
  const bool all_integers = std::all_of(wave.begin(), wave.end(), [&](const RatingPiece& piece) {
    return (piece.*column).integers;  // a piece without ratings has no strings
  });
  if (integers_ && all_integers) return make_room_for_marks(wave, column, store.size());
  seen_ = texts_.size();
  if (integers_) store_to_texts(store);
  parallel(wave.size(), [&](std::size_t i) {
    IdColumn& ids = wave[i].*column;
    if (ids.integers) ids.to_texts(wave[i].ratings.get(), wave[i].count, id_);
  });
  piece_tables_.resize(wave.size());
  for (std::size_t i = 0; i < wave.size(); ++i) {
    const TextIds& texts = (wave[i].*column).texts;
    piece_tables_[i].resize(texts.size());
    for (std::uint32_t t = 0; t < texts.size(); ++t) piece_tables_[i][t] = texts_.insert(texts[t]);
  }
}

void RatingColumn::make_room_for_marks(std::span<const RatingPiece> wave, IdColumn RatingPiece::*column,
                                       std::uint64_t before) {
  marking_ = marking_ && known_ == nullptr;
  if (!marking_) return;
  constexpr std::uint64_t kBitsPerRating = 32, kAlwaysFine = 1 << 23;
  std::uint64_t ratings = before;
  std::uint32_t highest = 0;
  for (const RatingPiece& piece : wave) {
    ratings += piece.count;
    highest = std::max(highest, (piece.*column).highest);
  }
  marking_ = highest <= kBitsPerRating * ratings + kAlwaysFine;
  if (marking_ && marks_.size() <= highest / 64) marks_.resize(highest / 64 + 1, 0);
}

void RatingColumn::store_to_texts(RatingStore& store) {
  integers_ = false;
  marks_ = {};
  char digits[16];
  for (std::size_t c = 0; c < store.chunks(); ++c) {
    for (Rating& r : store.chunk(c)) {
      const auto end = std::to_chars(digits, digits + sizeof digits, r.*id_).ptr;
      r.*id_ = texts_.insert({digits, static_cast<std::size_t>(end - digits)});
    }
  }
}

void RatingColumn::renumber(std::size_t i, RatingPiece& piece) {
  if (integers_) {
    if (!marking_) return;
    // Almost every bit is found set, so threads hardly ever write to the same place.
    for (std::size_t r = 0; r < piece.count; ++r) {
      const std::uint32_t value = piece.ratings[r].*id_;
      const std::uint64_t bit = std::uint64_t{1} << (value % 64);
      std::atomic_ref<std::uint64_t> word(marks_[value / 64]);
      if ((word.load(std::memory_order_relaxed) & bit) == 0) word.fetch_or(bit, std::memory_order_relaxed);
    }
    return;
  }
  const std::vector<std::uint32_t>& table = piece_tables_[i];
  const std::uint32_t seen = seen_;
  for (std::size_t r = 0; r < piece.count; ++r) {
    std::uint32_t& id = piece.ratings[r].*id_;
    if (id >= seen) id = table[id - seen];
  }
}

namespace {

std::vector<std::uint64_t> marked_values(std::span<const std::uint64_t> words) {
  std::vector<std::uint64_t> values;
  for (std::size_t w = 0; w < words.size(); ++w) {
    for (std::uint64_t bits = words[w]; bits != 0; bits &= bits - 1) {
      values.push_back(w * 64 + static_cast<std::uint64_t>(std::countr_zero(bits)));
    }
  }
  return values;
}

// The different integers of a column, ascending, when they are spread too widely for a bit each.
std::vector<std::uint64_t> distinct_by_hash(const RatingStore& store, std::uint32_t Rating::*id) {
  constexpr std::uint32_t kFree = IdMap::kUnseen;  // never an id
  std::vector<std::uint32_t> slots(1024, kFree);
  std::size_t used = 0;
  const auto insert = [](std::vector<std::uint32_t>& into, std::uint32_t value) {
    const std::size_t mask = into.size() - 1;
    std::size_t at = (value * std::uint64_t{0x9E3779B97F4A7C15} >> 24) & mask;
    while (into[at] != kFree && into[at] != value) at = (at + 1) & mask;
    const bool fresh = into[at] == kFree;
    into[at] = value;
    return fresh;
  };
  for (std::size_t c = 0; c < store.chunks(); ++c) {
    for (const Rating& r : store.chunk(c)) {
      if (!insert(slots, r.*id) || 2 * ++used < slots.size()) continue;
      std::vector<std::uint32_t> bigger(2 * slots.size(), kFree);
      for (const std::uint32_t value : slots) {
        if (value != kFree) insert(bigger, value);
      }
      slots.swap(bigger);
    }
  }
  std::vector<std::uint64_t> values;
  values.reserve(used);
  std::copy_if(slots.begin(), slots.end(), std::back_inserter(values), [](std::uint64_t v) { return v != kFree; });
  std::sort(values.begin(), values.end());
  return values;
}

// All strings are plain integers (some too large for 32 bits): ascending by value; the table says where each one goes.
bool integers_in_disguise(const TextIds& texts, std::vector<std::uint32_t>& table, IdMap& map) {
  std::vector<std::uint64_t> values(texts.size());
  for (std::uint32_t i = 0; i < texts.size(); ++i) {
    if (!plain_integer(texts[i], values[i])) return false;
  }
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return values[a] < values[b]; });
  table.resize(order.size());
  for (std::uint32_t rank = 0; rank < order.size(); ++rank) table[order[rank]] = rank;
  std::sort(values.begin(), values.end());
  map = IdMap::from_integers(std::move(values));
  return true;
}

}  // namespace

RatingColumn RatingColumn::without_store() {
  RatingColumn column(nullptr);
  column.integers_ = false;
  return column;
}

ColumnTranslation RatingColumn::translation_of_wave() {
  if (integers_) return ColumnTranslation::by_map(*known_);
  while (known_indices_.size() < texts_.size()) {
    known_indices_.push_back(known_->find(texts_[static_cast<std::uint32_t>(known_indices_.size())]));
  }
  return ColumnTranslation::by_table(known_indices_);
}

ColumnTranslation RatingColumn::finish(const RatingStore& store, IdMap& map) {
  if (integers_) {
    if (known_ != nullptr) return ColumnTranslation::by_map(*known_);
    map = IdMap::from_integers(marking_ ? marked_values(marks_) : distinct_by_hash(store, id_));
    // A range from 0 is what the store holds already.
    return map.is_range() && map.first() == 0 ? ColumnTranslation::by_table({}) : ColumnTranslation::by_map(map);
  }
  std::vector<std::uint32_t> table;
  if (known_ != nullptr) {
    table.resize(texts_.size());
    for (std::uint32_t i = 0; i < texts_.size(); ++i) table[i] = known_->find(texts_[i]);
  } else if (!integers_in_disguise(texts_, table, map)) {
    map = IdMap::from_texts(std::move(texts_));
  }
  return ColumnTranslation::by_table(std::move(table));
}

}  // namespace orrery
