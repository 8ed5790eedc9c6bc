// The training data of matrix factorisation as a grid of cells: W row stripes (one for each worker) times B column
// blocks (which rotate). Keeps two promises of the design: blocks are cut by rating counts, so units are balanced on
// skewed data (section 4, rotation), and the layout is a function of the data, W and B alone, never of threads (section
// 5).
//
// "Rows" are users and "columns" are items. Ids of the reader ("external") are dense; the layout gives every row and
// column a new number ("internal") so that stripes and blocks are contiguous in memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/axis.h"
#include "engine/data/parallel_for.h"
#include "engine/data/rating_store.h"

namespace orrery::mf {

/// The ratings of one row that a kernel works on at once (kernels read the row once and add the sum of its gradients).
inline constexpr std::size_t kMaxBatch = 8;
/// Columns of one block are numbered with 16 bits.
inline constexpr std::size_t kMaxBlockColumns = std::size_t{1} << 16;
/// Values that a kernel may read, and ignore, beyond the end of a cell.
inline constexpr std::size_t kValuePadding = kMaxBatch;

/// How many ratings each row and each column has; index = external id.
struct AxisCounts {
  std::vector<std::uint32_t> rows;
  std::vector<std::uint32_t> columns;
};

/// Counts the ratings of every row and column. Cost: one pass. Requires row and column ids below `rows` and `columns`.
/// Throws a data error when one row or column has more than 2^32 - 1 ratings.
AxisCounts count_ratings(const RatingStore& ratings, std::size_t rows, std::size_t columns,
                         const ParallelFor& parallel);

/// The ratings of one stripe and one block in the order in which they are trained.
///
/// A batch is 1 to 8 ratings of one row with distinct columns. All batches of 8 come first, then those of 7, …, of 1;
/// in each class rows ascend. So a kernel's inner loop has a constant trip count, and a batch costs one row id. Runs
/// longer than 8 are cut evenly (9 = 5 + 4). Memory: 6 bytes a rating and 4 a batch.
struct Cell {
  std::array<std::uint32_t, kMaxBatch> batches{};  ///< batches[n-1]: how many batches of n ratings
  std::vector<std::uint32_t> rows;                 ///< one for each batch, local to the stripe
  std::vector<std::uint16_t> columns;              ///< one for each rating, local to the block
  std::vector<float> values;                       ///< one for each rating, then kValuePadding zeros

  std::size_t ratings() const noexcept { return columns.size(); }
  std::size_t bytes() const noexcept;
};

/// Visits the batches of a cell: visit(row in the stripe, columns in the block, values).
template <class Visit>
void for_each_batch(const Cell& cell, Visit&& visit) {
  const std::span<const std::uint16_t> columns(cell.columns);
  const std::span<const float> values(cell.values);
  std::size_t batch = 0, rating = 0;
  for (std::size_t n = kMaxBatch; n >= 1; --n) {
    for (std::uint32_t b = 0; b < cell.batches[n - 1]; ++b, ++batch, rating += n) {
      visit(cell.rows[batch], columns.subspan(rating, n), values.subspan(rating, n));
    }
  }
}

/// Stripes [first, last): those of one node's workers.
struct StripeRange {
  std::size_t first = 0;
  std::size_t last = static_cast<std::size_t>(-1);
  bool holds(std::size_t stripe) const { return first <= stripe && stripe < last; }
};

/// All cells; of several nodes each has the ratings of its own stripes, and the other cells are empty there. Immutable
/// after build() but for the values, which normalise() changes once.
class CellGrid {
 public:
  /// Consumes `ratings`: each chunk is given back as soon as it is spread, so the peak is about 13 bytes a rating
  /// beside what one task holds. Work is cut by groups of chunks, then by stripes. Ratings keep the order of the input
  /// where one row rates one column twice. Requires the axes to be those of these ratings, columns.part_size() <=
  /// kMaxBlockColumns. Ratings of other stripes than `here` are dropped.
  static CellGrid build(RatingStore&& ratings, Axis rows, Axis columns, const ParallelFor& parallel,
                        const StripeRange& here = {});

  const Axis& rows() const noexcept { return rows_; }
  const Axis& columns() const noexcept { return columns_; }
  std::size_t stripes() const noexcept { return rows_.parts(); }
  std::size_t blocks() const noexcept { return columns_.parts(); }
  /// Of all nodes, by the counts of the rows.
  std::uint64_t ratings() const noexcept { return ratings_; }
  /// Those of the stripes that are here.
  const StripeRange& here() const noexcept { return here_; }
  /// Ratings, of those here, whose row and column came before. They are trained like any other.
  std::uint64_t duplicates() const noexcept { return duplicates_; }
  const Cell& cell(std::size_t stripe, std::size_t block) const { return cells_[stripe * blocks() + block]; }
  /// Bytes of cells and axes.
  std::size_t bytes() const noexcept;

  /// value -> (value - mean) / scale, everywhere. Requires scale > 0.
  void normalise(double mean, double scale, const ParallelFor& parallel);

 private:
  CellGrid(Axis rows, Axis columns, const StripeRange& here);

  Axis rows_, columns_;
  StripeRange here_;
  std::uint64_t ratings_ = 0, duplicates_ = 0;
  std::vector<Cell> cells_;
};

/// The numbers W and B that a run gets when the user names none: a function of the data's size and the rank alone.
struct GridShape {
  std::size_t stripes = 1;
  std::size_t blocks = 1;
};
/// `workers` = 0 derives the number of stripes (at least 16 unless the data is tiny). Blocks are a multiple of stripes,
/// small enough that a block's factors stay in a typical second-level cache, but not so many that rows have less than a
/// few ratings in a cell. `row_floats` is the padded length of a factor row.
GridShape choose_grid(std::uint64_t ratings, std::size_t rows, std::size_t columns, std::size_t row_floats,
                      std::size_t workers);

}  // namespace orrery::mf
