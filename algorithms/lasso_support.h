// The columns of a support as a linear map, for products that many threads share: by column as the design has them, and
// beside that by row, so that every number of a product belongs to one part and is one sum in a fixed order. The bits
// of a product therefore depend neither on the number of threads nor on that of workers.
//
// Sparse columns touch few of the rows when there are many: those are numbered anew, so that a vector over them stays
// in a cache. Dense columns are not copied: their rows are taken in stripes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/lasso_design.h"

namespace orrery::lasso {

/// Cuts items that cost start[i + 1] − start[i] each into parts of about the same cost, more for more work, and one
/// where a part would cost less than handing it to another thread: the first item of each part, and their number.
std::vector<std::uint32_t> cut_into_parts(std::span<const std::uint64_t> start);

class SupportColumns {
 public:
  /// Borrows the design.
  explicit SupportColumns(const Design& design)
      : design_(design), place_of_row_(design.is_dense() ? 0 : design.rows()) {}

  /// Lays out these columns; those of before are forgotten. Cost: their entries three times, and the rows once.
  void lay_out(std::span<const std::uint32_t> columns);

  std::size_t columns() const { return columns_.size(); }
  /// Rows that any of the columns touches, by place, and which row of the data a place is.
  std::size_t places() const { return places_; }
  std::size_t row(std::size_t place) const { return rows_.empty() ? place : rows_[place]; }

  std::size_t row_parts() const { return first_place_.size() - 1; }
  std::size_t column_parts() const { return first_column_.size() - 1; }
  std::uint32_t first_place(std::size_t part) const { return first_place_[part]; }
  std::uint32_t first_column(std::size_t part) const { return first_column_[part]; }

  /// out[place] = Σ_k raw column k · weights[k] for the places of a part. Parts may overlap in time.
  void multiply(std::size_t part, std::span<const double> weights, std::span<double> out) const;
  /// Raw column k · values, which are by place.
  double dot(std::size_t k, std::span<const double> values) const;

 private:
  void number_rows();
  void lay_out_rows();

  const Design& design_;
  std::vector<std::uint32_t> columns_;
  std::size_t places_ = 0;
  std::vector<std::uint32_t> first_place_, first_column_;  ///< by part, and the number of all
  std::vector<std::uint64_t> column_start_;                ///< entries before the column
  // Sparse columns only.
  std::vector<std::uint32_t> rows_;          ///< by place, ascending
  std::vector<std::uint32_t> place_of_row_;  ///< + 1; 0: none
  std::vector<std::uint32_t> place_;         ///< by entry, by column
  std::vector<std::uint64_t> row_start_;     ///< by place
  std::vector<std::uint32_t> column_;        ///< by entry, by row
  std::vector<float> value_;                 ///< the same; empty: all are 1
};

}  // namespace orrery::lasso
