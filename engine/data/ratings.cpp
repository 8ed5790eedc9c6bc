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

constexpr std::size_t kHeadBytes = std::size_t{1} << 16;

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

ChunkSummary summarise(std::span<const Rating> ratings, std::uint64_t first) {
  ChunkSummary sum;
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
  return sum;
}

// Puts pieces together: ratings into the store, ids into the columns.
class RatingsBuilder {
 public:
  RatingsBuilder(const RatingsOptions& options, RatingSyntax& syntax)
      : options_(options), syntax_(syntax), users_(options.known_users), items_(options.known_items) {}

  void take(std::span<RatingPiece> wave) {
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
      sums[c] = summarise(store_.chunk(c), c * RatingStore::kChunk);
    });
    combine(sums, data);
    if (fourth_columns_ > 0 && fourth_columns_ < store_.size()) {
      data.warnings.push_back(std::to_string(fourth_columns_) + " of " + std::to_string(store_.size()) +
                              " ratings have a fourth column; it is ignored");
    }
    data.ratings = std::move(store_);
  }

  std::uint64_t size() const { return store_.size(); }

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

  static void combine(std::span<const ChunkSummary> sums, RatingsData& data) {
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
    if (data.values > 0) {
      const auto count = static_cast<double>(data.values);
      data.mean = all.sum / count;
      data.variance = std::max(0.0, all.squares / count - data.mean * data.mean);
      data.lowest = all.lowest;
      data.highest = all.highest;
    }
    data.checksum = mix(data.checksum ^ mix(data.users.checksum()) ^ mix(data.items.checksum() + 1));
  }

  const RatingsOptions& options_;
  RatingSyntax& syntax_;
  RatingStore store_;
  RatingColumn users_;
  RatingColumn items_;
  std::uint64_t fourth_columns_ = 0;
};

TextSummary read_lines(InputFile& file, const RatingsOptions& options, RatingSyntax& syntax, TextStart start,
                       RatingsBuilder& builder) {
  return parse_pieces<RatingPiece>(
      file, options.read, start, [&](TextPiece piece, RatingPiece& out) { parse_rating_lines(syntax, piece, out); },
      [&](std::span<RatingPiece> wave, std::uint64_t) { builder.take(wave); });
}

TextSummary read_triples(InputFile& file, const RatingsOptions& options, RatingSyntax& syntax, RatingsData& data,
                         RatingsBuilder& builder) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string_view head = file.peek(kHeadBytes);
  const std::size_t mark = head.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  syntax.least_columns = options.pairs ? 2 : 3;
  const ColumnLayout layout = recognise_rating_columns(head.substr(mark), syntax.least_columns);
  syntax.separator = data.recognised.separator = layout.separator;
  data.recognised.header = layout.header;
  return read_lines(file, options, syntax, {layout.data_offset + mark, layout.data_lines_before}, builder);
}

TextSummary read_array(InputFile& file, const RatingsOptions& options, const MatrixMarketHeader& header,
                       RatingsBuilder& builder) {
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

TextSummary read_matrix(InputFile& file, const RatingsOptions& options, RatingSyntax& syntax, RatingsBuilder& builder) {
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
    return file.peek(kHeadBytes).starts_with(kMatrixMarketBanner) ? DataFormat::matrix_market : DataFormat::ratings;
  }
  check_ratings_format(*options.format);
  return *options.format;
}

}  // namespace

void check_ratings_format(DataFormat format) {
  if (format == DataFormat::ratings || format == DataFormat::matrix_market) return;
  throw usage_error("ratings can be read from the formats ratings and matrix-market, not from " +
                    std::string{format_name(format)});
}

RatingsData read_ratings(const std::string& path, const RatingsOptions& options) {
  InputFile file(path);
  RatingsData data;
  RatingSyntax syntax;
  RatingsBuilder builder(options, syntax);
  data.recognised.format = format_of(file, options);
  data.recognised.gzip = file.gzip();
  const bool matrix = data.recognised.format == DataFormat::matrix_market;
  const TextSummary summary =
      matrix ? read_matrix(file, options, syntax, builder) : read_triples(file, options, syntax, data, builder);
  if (builder.size() == 0) {
    throw data_error(path, summary.bytes == 0 ? "expected ratings, got an empty file"
                                              : "expected ratings, got only comments and blank lines");
  }
  data.warnings = summary.warnings();
  builder.finish(data);
  return data;
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
