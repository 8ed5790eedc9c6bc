#include "engine/data/ratings.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>

#include "engine/data/matrix_market.h"
#include "engine/data/rating_columns.h"
#include "engine/data/rating_lines.h"
#include "engine/error.h"

namespace orrery {

namespace {

constexpr std::size_t kGuessedBytes = std::size_t{1} << 16;

// What one chunk of ratings adds to the summary; combined in chunk order.
struct ChunkSummary {
  std::uint64_t values = 0;
  double sum = 0, squares = 0;
  float lowest = std::numeric_limits<float>::infinity();
  float highest = -std::numeric_limits<float>::infinity();
  std::uint64_t unseen_users = 0;
  std::uint64_t unseen_items = 0;
  std::uint64_t checksum = 0;
};

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93;
  return x ^ (x >> 32);
}

/// `first` is the number of the first of them in the file.
void summarise(std::span<const Rating> ratings, std::uint64_t first, ChunkSummary& sum) {
  for (std::size_t i = 0; i < ratings.size(); ++i) {
    const Rating& r = ratings[i];
    const std::uint64_t pair = static_cast<std::uint64_t>(r.user) << 32 | r.item;
    const std::uint64_t place = (first + i) * 0x9E3779B97F4A7C15;
    sum.checksum += mix(pair ^ place) * (2 * static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(r.value)) + 1);
    sum.unseen_users += r.user == IdMap::kUnseen ? 1 : 0;
    sum.unseen_items += r.item == IdMap::kUnseen ? 1 : 0;
    if (std::isnan(r.value)) continue;
    ++sum.values;
    sum.sum += static_cast<double>(r.value);
    sum.squares += static_cast<double>(r.value) * static_cast<double>(r.value);
    sum.lowest = std::min(sum.lowest, r.value);
    sum.highest = std::max(sum.highest, r.value);
  }
}

void combine(std::span<const ChunkSummary> sums, RatingsData& data) {
  ChunkSummary all;
  for (const ChunkSummary& part : sums) {
    data.values += part.values;
    data.unseen_users += part.unseen_users;
    data.unseen_items += part.unseen_items;
    data.checksum += part.checksum;
    all.sum += part.sum;
    all.squares += part.squares;
    all.lowest = std::min(all.lowest, part.lowest);
    all.highest = std::max(all.highest, part.highest);
  }
  if (data.values == 0) return;
  const auto count = static_cast<double>(data.values);
  data.mean = all.sum / count;
  data.variance = std::max(0.0, all.squares / count - data.mean * data.mean);
  data.lowest = all.lowest;
  data.highest = all.highest;
}

/// The checksum of ratings with that of their ids.
std::uint64_t checksum_with(std::uint64_t ratings, const IdMap& users, const IdMap& items) {
  return mix(ratings ^ mix(users.checksum()) ^ mix(items.checksum() + 1));
}

void warn_of_fourth_columns(std::uint64_t with, std::uint64_t all, std::vector<std::string>& warnings) {
  if (with == 0 || with == all) return;
  warnings.push_back(std::to_string(with) + " of " + std::to_string(all) +
                     " ratings have a fourth column; it is ignored");
}

// Takes what was parsed, wave by wave.
class RatingsSink {
 public:
  virtual ~RatingsSink() = default;
  virtual void take(std::span<RatingPiece> wave) = 0;
  /// Ratings so far.
  virtual std::uint64_t size() const = 0;
};

// Puts pieces together: ratings into the store, ids into the columns.
class RatingsBuilder final : public RatingsSink {
 public:
  RatingsBuilder(const RatingsOptions& options, RatingSyntax& syntax)
      : options_(options), syntax_(syntax), users_(options.known_users), items_(options.known_items) {}

  void take(std::span<RatingPiece> wave) override {
    users_.take(wave, &RatingPiece::users, store_, options_.read.parallel);
    items_.take(wave, &RatingPiece::items, store_, options_.read.parallel);
    syntax_.seen_users = users_.texts();
    syntax_.seen_items = items_.texts();
    std::vector<std::uint64_t> begin(wave.size());
    std::uint64_t total = store_.size();
    for (std::size_t i = 0; i < wave.size(); ++i) {
      begin[i] = total;
      total += wave[i].count;
      fourth_columns_ += wave[i].fourth_columns;
    }
    store_.grow(total);
    options_.read.parallel(wave.size(), [&](std::size_t i) {
      users_.renumber(i, wave[i]);
      items_.renumber(i, wave[i]);
      copy(wave[i], begin[i]);
    });
  }

  void finish(RatingsData& data) {
    const ParallelFor& parallel = options_.read.parallel;
    const ColumnTranslation users = users_.finish(store_, data.users);
    const ColumnTranslation items = items_.finish(store_, data.items);
    std::vector<ChunkSummary> sums(store_.chunks());
    parallel(store_.chunks(), [&](std::size_t c) {
      users.apply(store_.chunk(c), &Rating::user);
      items.apply(store_.chunk(c), &Rating::item);
      summarise(store_.chunk(c), c * RatingStore::kChunk, sums[c]);
    });
    combine(sums, data);
    data.checksum = checksum_with(data.checksum, data.users, data.items);
    warn_of_fourth_columns(fourth_columns_, store_.size(), data.warnings);
    data.ratings = std::move(store_);
  }

  std::uint64_t size() const override { return store_.size(); }

 private:
  void copy(const RatingPiece& piece, std::uint64_t to) {
    const Rating* from = piece.ratings.get();
    for (std::size_t left = piece.count; left > 0;) {
      const std::span<Rating> chunk = store_.chunk(static_cast<std::size_t>(to / RatingStore::kChunk));
      const std::size_t at = to % RatingStore::kChunk;
      const std::size_t count = std::min(left, chunk.size() - at);
      std::copy_n(from, count, chunk.begin() + static_cast<std::ptrdiff_t>(at));
      from += count;
      to += count;
      left -= count;
    }
  }

  const RatingsOptions& options_;
  RatingSyntax& syntax_;
  RatingStore store_;
  RatingColumn users_;
  RatingColumn items_;
  std::uint64_t fourth_columns_ = 0;
};

// Learns the ids of a wave and numbers its ratings by them, where none is in a store to be renumbered.
void number_wave(RatingColumn& users, RatingColumn& items, std::span<RatingPiece> wave, const RatingsOptions& options,
                 RatingSyntax& syntax) {
  RatingStore none;
  users.take(wave, &RatingPiece::users, none, options.read.parallel);
  items.take(wave, &RatingPiece::items, none, options.read.parallel);
  syntax.seen_users = users.texts();
  syntax.seen_items = items.texts();
  options.read.parallel(wave.size(), [&](std::size_t i) {
    users.renumber(i, wave[i]);
    items.renumber(i, wave[i]);
  });
}

// Counts the ratings of each id.
class Outliner final : public RatingsSink {
 public:
  Outliner(const RatingsOptions& options, RatingSyntax& syntax) : options_(options), syntax_(syntax) {}

  void take(std::span<RatingPiece> wave) override {
    number_wave(users_, items_, wave, options_, syntax_);
    user_counts_.resize(users_.texts()->size(), 0);
    item_counts_.resize(items_.texts()->size(), 0);
    for (const RatingPiece& piece : wave) {
      for (std::size_t r = 0; r < piece.count; ++r) {
        ++user_counts_[piece.ratings[r].user];
        ++item_counts_[piece.ratings[r].item];
      }
      size_ += piece.count;
    }
  }

  std::uint64_t size() const override { return size_; }

  RatingsOutline finish(const std::string& path) {
    RatingsOutline outline;
    outline.ratings = size_;
    outline.user_counts = by_index(users_, outline.users, user_counts_, path);
    outline.item_counts = by_index(items_, outline.items, item_counts_, path);
    return outline;
  }

 private:
  std::vector<std::uint32_t> by_index(RatingColumn& column, IdMap& map, const std::vector<std::uint64_t>& counts,
                                      const std::string& path) const {
    const ColumnTranslation translation = column.finish(RatingStore(), map);
    std::vector<std::uint32_t> out(counts.size());
    for (std::uint32_t i = 0; i < counts.size(); ++i) {
      const std::uint32_t index = translation.of_string(i);
      if (counts[i] > std::numeric_limits<std::uint32_t>::max()) {
        throw data_error(path, "id " + map.text(index) + " has more than 4294967295 ratings");
      }
      out[index] = static_cast<std::uint32_t>(counts[i]);
    }
    return out;
  }

  const RatingsOptions& options_;
  RatingSyntax& syntax_;
  RatingColumn users_ = RatingColumn::without_store(), items_ = RatingColumn::without_store();
  std::vector<std::uint64_t> user_counts_, item_counts_;  // by number of the string
  std::uint64_t size_ = 0;
};

// Keeps some of the ratings. Sums go on over the borders of pieces, so that they are those of whole chunks.
class ShareKeeper final : public RatingsSink {
 public:
  ShareKeeper(const RatingsOptions& options, RatingSyntax& syntax, const std::vector<bool>& keeps)
      : options_(options), syntax_(syntax), keeps_(keeps), users_(options.known_users), items_(options.known_items) {}

  void take(std::span<RatingPiece> wave) override {
    number_wave(users_, items_, wave, options_, syntax_);
    const ColumnTranslation users = users_.translation_of_wave(), items = items_.translation_of_wave();
    options_.read.parallel(wave.size(), [&](std::size_t i) {
      users.apply({wave[i].ratings.get(), wave[i].count}, &Rating::user);
      items.apply({wave[i].ratings.get(), wave[i].count}, &Rating::item);
    });
    for (const RatingPiece& piece : wave) {
      keep({piece.ratings.get(), piece.count});
      fourth_columns_ += piece.fourth_columns;
    }
  }

  std::uint64_t size() const override { return size_; }

  void finish(RatingsData& data) {
    combine(sums_, data);
    data.checksum = checksum_with(data.checksum, *options_.known_users, *options_.known_items);
    warn_of_fourth_columns(fourth_columns_, size_, data.warnings);
    data.ratings = std::move(store_);
  }

 private:
  void keep(std::span<const Rating> ratings) {
    for (const Rating& r : ratings) {
      if (r.user != IdMap::kUnseen && keeps_[r.user]) store_.push_back(r);
    }
    while (!ratings.empty()) {
      const std::uint64_t at = size_ % RatingStore::kChunk;
      if (at == 0) sums_.emplace_back();
      const auto part = ratings.first(std::min<std::size_t>(ratings.size(), RatingStore::kChunk - at));
      summarise(part, size_, sums_.back());
      size_ += part.size();
      ratings = ratings.subspan(part.size());
    }
  }

  const RatingsOptions& options_;
  RatingSyntax& syntax_;
  const std::vector<bool>& keeps_;
  RatingStore store_;
  RatingColumn users_, items_;
  std::vector<ChunkSummary> sums_;
  std::uint64_t size_ = 0, fourth_columns_ = 0;
};

TextSummary read_lines(InputFile& file, const RatingsOptions& options, RatingSyntax& syntax, TextStart start,
                       RatingsSink& builder) {
  return parse_pieces<RatingPiece>(
      file, options.read, start, [&](TextPiece piece, RatingPiece& out) { parse_rating_lines(syntax, piece, out); },
      [&](std::span<RatingPiece> wave, std::uint64_t) { builder.take(wave); });
}

TextSummary read_triples(InputFile& file, const RatingsOptions& options, RatingSyntax& syntax, RatingsData& data,
                         RatingsSink& builder) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string_view head = file.peek(kGuessedBytes);
  const std::size_t mark = head.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  syntax.least_columns = options.pairs ? 2 : 3;
  const ColumnLayout layout = recognise_rating_columns(head.substr(mark), syntax.least_columns);
  syntax.separator = data.recognised.separator = layout.separator;
  data.recognised.header = layout.header;
  return read_lines(file, options, syntax, {layout.data_offset + mark, layout.data_lines_before}, builder);
}

TextSummary read_array(InputFile& file, const RatingsOptions& options, const MatrixMarketHeader& header,
                       RatingsSink& builder) {
  if (header.entries == 0) throw data_error(file.path(), header.lines, 1, "at least one row and column", "none");
  std::uint64_t count = 0;
  const TextSummary summary =
      parse_pieces<RatingPiece>(file, options.read, {header.offset, header.lines}, parse_rating_values,
                                [&](std::span<RatingPiece> wave, std::uint64_t) {
                                  for (RatingPiece& piece : wave) {
                                    place_rating_values(piece, count, header.rows);
                                    count += piece.count;
                                  }
                                  builder.take(wave);
                                });
  check_matrix_market_entries(file, header, builder.size());
  return summary;
}

TextSummary read_matrix(InputFile& file, const RatingsOptions& options, RatingSyntax& syntax, RatingsSink& builder) {
  const MatrixMarketHeader header = read_matrix_market_header(file);
  if (header.symmetry != MatrixMarketHeader::Symmetry::general) {
    throw data_error(file.path(), 1, 1, "a general matrix of users and items", "a symmetric one");
  }
  if (!header.coordinate) return read_array(file, options, header, builder);
  const bool pattern = header.field == MatrixMarketHeader::Field::pattern;
  syntax.comment = '%';
  syntax.indices = true;
  syntax.rows = header.rows;
  syntax.columns = header.columns;
  syntax.least_columns = pattern ? 2 : 3;
  syntax.most_columns = pattern ? 2 : 3;
  syntax.missing_value = 1;
  const TextSummary summary = read_lines(file, options, syntax, {header.offset, header.lines}, builder);
  check_matrix_market_entries(file, header, builder.size());
  return summary;
}

DataFormat format_of(InputFile& file, const RatingsOptions& options) {
  if (!options.format) {
    return file.peek(kGuessedBytes).starts_with(kMatrixMarketBanner) ? DataFormat::matrix_market : DataFormat::ratings;
  }
  check_ratings_format(*options.format);
  return *options.format;
}

void read_into(const std::string& path, const RatingsOptions& options, RatingSyntax& syntax, RatingsData& data,
               RatingsSink& sink) {
  InputFile file(path);
  data.recognised.format = format_of(file, options);
  data.recognised.gzip = file.gzip();
  const bool matrix = data.recognised.format == DataFormat::matrix_market;
  const TextSummary summary =
      matrix ? read_matrix(file, options, syntax, sink) : read_triples(file, options, syntax, data, sink);
  if (sink.size() == 0) {
    throw data_error(path, summary.bytes == 0 ? "expected ratings, got an empty file"
                                              : "expected ratings, got only comments and blank lines");
  }
  data.warnings = summary.warnings();
}

}  // namespace

void check_ratings_format(DataFormat format) {
  if (format == DataFormat::ratings || format == DataFormat::matrix_market) return;
  throw usage_error("ratings can be read from the formats ratings and matrix-market, not from " +
                    std::string{format_name(format)});
}

RatingsData read_ratings(const std::string& path, const RatingsOptions& options) {
  RatingSyntax syntax;
  RatingsBuilder builder(options, syntax);
  RatingsData data;
  read_into(path, options, syntax, data, builder);
  builder.finish(data);
  return data;
}

RatingsOutline outline_ratings(const std::string& path, const RatingsOptions& options) {
  RatingSyntax syntax;
  Outliner outliner(options, syntax);
  RatingsData data;
  read_into(path, options, syntax, data, outliner);
  return outliner.finish(path);
}

RatingsData read_some_ratings(const std::string& path, const RatingsOptions& options, const RatingsOutline& outline,
                              const std::vector<bool>& keeps) {
  RatingSyntax syntax;
  ShareKeeper keeper(options, syntax, keeps);
  RatingsData data;
  read_into(path, options, syntax, data, keeper);
  const std::uint64_t all = keeper.size();
  keeper.finish(data);
  if (all == outline.ratings && data.unseen_users == 0 && data.unseen_items == 0) return data;
  throw data_error(path, "expected the ratings that were counted a moment ago, got others: did it change?");
}

std::uint64_t count_duplicates(const RatingStore& ratings) {
  std::uint32_t users = 0, items = 0;
  const auto each = [&](auto&& body) {
    for (std::size_t c = 0; c < ratings.chunks(); ++c) {
      for (const Rating& r : ratings.chunk(c)) {
        if (r.user != IdMap::kUnseen && r.item != IdMap::kUnseen) body(r);
      }
    }
  };
  each([&](const Rating& r) {
    users = std::max(users, r.user + 1);
    items = std::max(items, r.item + 1);
  });
  std::vector<std::uint64_t> cursor(static_cast<std::size_t>(users) + 1, 0);
  each([&](const Rating& r) { ++cursor[r.user + 1]; });
  for (std::size_t u = 0; u < users; ++u) cursor[u + 1] += cursor[u];
  std::vector<std::uint32_t> grouped(static_cast<std::size_t>(cursor[users]));
  each([&](const Rating& r) { grouped[static_cast<std::size_t>(cursor[r.user]++)] = r.item; });
  DuplicateStamp stamp(items);
  std::uint64_t found = 0, at = 0;
  for (std::uint32_t u = 0; u < users; ++u) {
    for (; at < cursor[u]; ++at) found += stamp.repeats(u, grouped[static_cast<std::size_t>(at)]) ? 1 : 0;
  }
  return found;
}

std::string duplicates_warning(std::uint64_t duplicates) {
  if (duplicates == 0) return {};
  return std::to_string(duplicates) +
         " ratings repeat a pair of user and item; every one is kept and counts as an observation of its own";
}

}  // namespace orrery
