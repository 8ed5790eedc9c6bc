// What a linear model sees of its data: rows of features, dealt to workers or cut into pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "algorithms/rows_view.h"
#include "engine/data/parallel_for.h"
#include "engine/data/sparse_rows.h"
#include "engine/types.h"

namespace orrery {

/// Rows as kernels take them; borrows them.
class FeatureRows {
 public:
  explicit FeatureRows(const SparseRows& rows);
  RowsView view(std::uint64_t first, std::uint64_t last) const;
  std::uint64_t rows() const { return rows_.rows(); }
  std::uint32_t columns() const { return rows_.column_count; }
  const SparseRows& entries() const { return rows_; }
  /// Mean number of entries in a row, rounded up.
  std::uint64_t mean_entries() const { return (rows_.entries() + rows() - 1) / rows(); }
  /// The first row of each worker, and the number of rows: consecutive rows that cost about the same for each, where a
  /// row costs its entries and `row_cost` of them beside. A function of the data and the number of workers alone.
  std::vector<std::uint64_t> deal(WorkerId workers, std::uint64_t row_cost) const;

 private:
  const SparseRows& rows_;
  bool only_ones_;
};

/// The number of pieces of 4096 rows, of which the last may be shorter.
std::uint64_t row_pieces(std::uint64_t rows);
/// body(piece, first row, last row) for each, in no order.
void for_row_pieces(std::uint64_t rows, const ParallelFor& parallel,
                    const std::function<void(std::size_t, std::uint64_t, std::uint64_t)>& body);

}  // namespace orrery
