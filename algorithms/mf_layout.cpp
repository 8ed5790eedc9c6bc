// Builds the grid of cells: count, deal, spread, then sort every cell on its own. Every step is a counting sort or an
// integer sum, so the result cannot depend on how the work was spread over threads.
#include "algorithms/mf_layout.h"

#include <algorithm>

#include <bit>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "engine/assert.h"
#include "engine/error.h"

namespace orrery::mf {
namespace {

/// A rating on its way into a cell: row local to the stripe, column local to the block.
struct Local {
  std::uint32_t row, column;
  float value;
};

/// Consecutive chunks that one task handles; groups are large enough that the tables kept for each group stay small.
struct Group {
  std::size_t first, last;
};

std::vector<Group> group_chunks(const RatingStore& ratings, std::uint64_t least_ratings) {
  const auto chunks = static_cast<std::size_t>((least_ratings + RatingStore::kChunk - 1) / RatingStore::kChunk);
  std::vector<Group> groups;
  for (std::size_t first = 0; first < ratings.chunks(); first += std::max<std::size_t>(chunks, 1)) {
    groups.push_back({first, std::min(first + std::max<std::size_t>(chunks, 1), ratings.chunks())});
  }
  return groups;
}

void count_group(const RatingStore& ratings, Group group, AxisCounts& counts) {
  for (std::size_t c = group.first; c < group.last; ++c) {
    for (const Rating& r : ratings.chunk(c)) {
      ORRERY_HEAVY_CHECK(r.user < counts.rows.size() && r.item < counts.columns.size());
      ++counts.rows[r.user];
      ++counts.columns[r.item];
    }
  }
}

void add_counts(std::span<std::uint32_t> sum, std::span<const std::uint32_t> part) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    if (part[i] > std::numeric_limits<std::uint32_t>::max() - sum[i]) {
      throw data_error("ratings", "id " + std::to_string(i) + " has more than 4294967295 ratings");
    }
    sum[i] += part[i];
  }
}

/// Stable sort of `records` by (column, row) radix digits so that rows ascend and, within a row, columns.
void sort_cell(std::vector<Local>& records, std::vector<Local>& scratch, std::size_t rows, std::size_t columns) {
  if (records.size() < 2) return;  // most cells of a fine grid; and a part without ids has no digits to sort by
  constexpr unsigned kDigitBits = 12;
  scratch.resize(records.size());
  std::vector<std::uint32_t> start;
  const auto pass = [&](auto key, unsigned shift, unsigned bits) {
    const std::uint32_t mask = (1U << bits) - 1;
    start.assign(mask + 2, 0);
    for (const Local& r : records) ++start[((key(r) >> shift) & mask) + 1];
    std::partial_sum(start.begin(), start.end(), start.begin());
    for (const Local& r : records) scratch[start[(key(r) >> shift) & mask]++] = r;
    records.swap(scratch);
  };
  const auto passes = [&](auto key, std::size_t range) {
    const auto width = static_cast<unsigned>(std::bit_width(range - 1));
    const unsigned count = (width + kDigitBits - 1) / kDigitBits;
    for (unsigned p = 0; p < count; ++p) {
      const unsigned low = width * p / count, high = width * (p + 1) / count;
      pass(key, low, high - low);
    }
  };
  passes([](const Local& r) { return r.column; }, columns);
  passes([](const Local& r) { return r.row; }, rows);
}

std::uint64_t count_repeats(std::span<const Local> records) {
  std::uint64_t repeats = 0;
  for (std::size_t i = 1; i < records.size(); ++i) {
    repeats += records[i].row == records[i - 1].row && records[i].column == records[i - 1].column;
  }
  return repeats;
}

/// Calls emit(first, size) for every batch of the sorted records. A run of one row is cut where a column repeats, so
/// that no batch holds a column twice, and then into equal parts of at most kMaxBatch.
template <class Emit>
void for_each_batch(std::span<const Local> records, Emit emit) {
  for (std::size_t first = 0; first < records.size();) {
    std::size_t last = first + 1;
    while (last < records.size() && records[last].row == records[first].row &&
           records[last].column != records[last - 1].column) {
      ++last;
    }
    const std::size_t parts = (last - first + kMaxBatch - 1) / kMaxBatch;
    for (std::size_t p = parts; p > 0; --p) {
      const std::size_t size = (last - first) / p;
      emit(first, size);
      first += size;
    }
  }
}

Cell pack_cell(std::span<const Local> records) {
  Cell cell;
  for_each_batch(records, [&](std::size_t, std::size_t size) { ++cell.batches[size - 1]; });
  std::array<std::size_t, kMaxBatch> next_batch{}, next_rating{};
  std::size_t batch = 0, rating = 0;
  for (std::size_t n = kMaxBatch; n > 0; --n) {
    next_batch[n - 1] = batch;
    next_rating[n - 1] = rating;
    batch += cell.batches[n - 1];
    rating += n * cell.batches[n - 1];
  }
  cell.rows.resize(batch);
  cell.columns.resize(rating);
  cell.values.resize(rating + kValuePadding);
  for_each_batch(records, [&](std::size_t first, std::size_t size) {
    cell.rows[next_batch[size - 1]++] = records[first].row;
    std::size_t& to = next_rating[size - 1];
    for (std::size_t i = first; i < first + size; ++i, ++to) {
      cell.columns[to] = static_cast<std::uint16_t>(records[i].column);
      cell.values[to] = records[i].value;
    }
  });
  return cell;
}

/// Where the ratings of each group go in each cell, and room for them.
class Spreader {
 public:
  Spreader(RatingStore& ratings, const Axis& rows, const Axis& columns, const StripeRange& here)
      : ratings_(ratings),
        rows_(rows),
        columns_(columns),
        here_(here),
        cells_(rows.parts() * columns.parts()),
        groups_(group_chunks(ratings, 16 * cells_)),
        offsets_(groups_.size() * cells_),
        records_(cells_),
        sizes_(cells_) {}

  void count(const ParallelFor& parallel) {
    parallel(groups_.size(), [&](std::size_t g) {
      std::uint64_t* counts = offsets_.data() + g * cells_;
      for (std::size_t c = groups_[g].first; c < groups_[g].last; ++c) {
        for (const Rating& r : ratings_.chunk(c)) {
          if (here_.holds(rows_.part[r.user])) ++counts[cell_of(r)];
        }
      }
    });
    for (std::size_t c = 0; c < cells_; ++c) {
      std::uint64_t offset = 0;
      for (std::size_t g = 0; g < groups_.size(); ++g) offset += std::exchange(offsets_[g * cells_ + c], offset);
      sizes_[c] = offset;
      records_[c] = std::make_unique_for_overwrite<Local[]>(offset);  // pages arrive as they are filled
    }
  }

  void spread(const ParallelFor& parallel) {
    parallel(groups_.size(), [&](std::size_t g) {
      std::uint64_t* offsets = offsets_.data() + g * cells_;
      for (std::size_t c = groups_[g].first; c < groups_[g].last; ++c) {
        for (const Rating& r : ratings_.chunk(c)) {
          if (!here_.holds(rows_.part[r.user])) continue;
          const std::size_t cell = cell_of(r);
          records_[cell][offsets[cell]++] = {rows_.internal[r.user] - rows_.begin[rows_.part[r.user]],
                                             columns_.internal[r.item] - columns_.begin[columns_.part[r.item]],
                                             r.value};
        }
        ratings_.release(c);
      }
    });
  }

  /// The records of a cell, which are given away.
  std::vector<Local> take(std::size_t cell) {
    std::vector<Local> out(records_[cell].get(), records_[cell].get() + sizes_[cell]);
    records_[cell].reset();
    return out;
  }

 private:
  std::size_t cell_of(const Rating& r) const {
    return std::size_t{rows_.part[r.user]} * columns_.parts() + columns_.part[r.item];
  }

  RatingStore& ratings_;
  const Axis& rows_;
  const Axis& columns_;
  const StripeRange here_;
  std::size_t cells_;
  std::vector<Group> groups_;
  std::vector<std::uint64_t> offsets_;
  std::vector<std::unique_ptr<Local[]>> records_;
  std::vector<std::uint64_t> sizes_;
};

}  // namespace

AxisCounts count_ratings(const RatingStore& ratings, std::size_t rows, std::size_t columns,
                         const ParallelFor& parallel) {
  // Enough groups to keep threads busy, few enough that their tables stay small beside the ratings.
  constexpr std::uint64_t kMostGroups = 16;
  const std::uint64_t least = std::max(ratings.size() / kMostGroups, std::uint64_t{rows} + columns);
  const std::vector<Group> groups = group_chunks(ratings, least);
  std::vector<AxisCounts> counts(std::max<std::size_t>(groups.size(), 1));
  counts[0].rows.assign(rows, 0);
  counts[0].columns.assign(columns, 0);
  parallel(groups.size(), [&](std::size_t g) {
    counts[g].rows.assign(rows, 0);
    counts[g].columns.assign(columns, 0);
    count_group(ratings, groups[g], counts[g]);
  });
  for (std::size_t g = 1; g < groups.size(); ++g) {
    add_counts(counts[0].rows, counts[g].rows);
    add_counts(counts[0].columns, counts[g].columns);
    counts[g] = {};
  }
  return std::move(counts[0]);
}

std::size_t Cell::bytes() const noexcept {
  return rows.capacity() * sizeof(std::uint32_t) + columns.capacity() * sizeof(std::uint16_t) +
         values.capacity() * sizeof(float);
}

CellGrid::CellGrid(Axis rows, Axis columns, const StripeRange& here)
    : rows_(std::move(rows)),
      columns_(std::move(columns)),
      here_{here.first, std::min(here.last, rows_.parts())},
      ratings_(std::accumulate(rows_.counts.begin(), rows_.counts.end(), std::uint64_t{0})) {
  cells_.resize(stripes() * this->blocks());
}

CellGrid CellGrid::build(RatingStore&& ratings, Axis rows, Axis columns, const ParallelFor& parallel,
                         const StripeRange& here) {
  RatingStore input = std::move(ratings);
  CellGrid grid(std::move(rows), std::move(columns), here);
  Spreader spreader(input, grid.rows_, grid.columns_, grid.here_);
  spreader.count(parallel);
  spreader.spread(parallel);
  // A task takes a whole stripe: its thread is the first to touch the cells, so they lie in its memory.
  std::vector<std::uint64_t> duplicates(grid.stripes());
  parallel(grid.here_.last - grid.here_.first, [&](std::size_t i) {
    const std::size_t stripe = grid.here_.first + i;
    std::vector<Local> scratch;
    for (std::size_t block = 0; block < grid.blocks(); ++block) {
      const std::size_t c = stripe * grid.blocks() + block;
      std::vector<Local> records = spreader.take(c);
      ORRERY_CHECK(records.size() <= std::numeric_limits<std::uint32_t>::max());
      sort_cell(records, scratch, grid.rows_.part_size(stripe), grid.columns_.part_size(block));
      duplicates[stripe] += count_repeats(records);
      grid.cells_[c] = pack_cell(records);
    }
  });
  grid.duplicates_ = std::accumulate(duplicates.begin(), duplicates.end(), std::uint64_t{0});
  return grid;
}

std::size_t CellGrid::bytes() const noexcept {
  std::size_t bytes = 0;
  for (const Cell& cell : cells_) bytes += sizeof(Cell) + cell.bytes();
  for (const Axis* axis : {&rows_, &columns_}) bytes += 3 * sizeof(std::uint32_t) * axis->size();
  return bytes;
}

void CellGrid::normalise(double mean, double scale, const ParallelFor& parallel) {
  ORRERY_CHECK(scale > 0.0);
  parallel(cells_.size(), [&](std::size_t c) {
    for (std::size_t i = 0; i < cells_[c].ratings(); ++i) {
      cells_[c].values[i] = static_cast<float>((cells_[c].values[i] - mean) / scale);
    }
  });
}

GridShape choose_grid(std::uint64_t ratings, std::size_t rows, std::size_t columns, std::size_t row_floats,
                      std::size_t workers) {
  // Constants, never the cache of this machine: the shape decides the bits of the result.
  constexpr std::size_t kBlockBytes = std::size_t{1} << 20;  // longer runs outweigh a block that fills the cache
  constexpr std::size_t kTinyRatings = 1000;                 // below this many ratings a worker is not worth having
  constexpr std::size_t kMostStripes = 16;
  constexpr std::size_t kLeastRun = 3;  // average ratings of a row in a cell
  GridShape shape;
  shape.stripes = workers != 0 ? workers : std::clamp<std::size_t>(ratings / kTinyRatings, 1, kMostStripes);
  const auto round_up = [](std::size_t a, std::size_t b) { return (a + b - 1) / b; };
  const std::size_t by_cache = round_up(columns * row_floats * sizeof(float), kBlockBytes * shape.stripes);
  const std::size_t by_run = ratings / (std::max<std::size_t>(rows, 1) * kLeastRun * shape.stripes);
  const std::size_t by_ids = round_up(columns, kMaxBlockColumns * shape.stripes);
  shape.blocks = shape.stripes * std::max({std::size_t{1}, by_ids, std::min(by_cache, by_run)});
  return shape;
}

}  // namespace orrery::mf
