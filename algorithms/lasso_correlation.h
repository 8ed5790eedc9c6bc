// How much two columns of a regression depend on each other: the absolute correlation, computed when it is asked for.
//
// A scheduled round holds every candidate against all columns under way. Sparse columns mostly have no row in common,
// and then correlate by no more than their means allow: so the filter keeps, for each row, the entries of the columns
// under way, and one pass over a candidate's entries gives its products with all of them. Dense columns have all rows
// in common; there, products of pairs that come again, as active columns do, are kept in a table of fixed size.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/lasso_design.h"
#include "engine/coordinate_scheduler.h"

namespace orrery::lasso {

class ColumnCorrelation final : public CoordinateModel {
 public:
  static constexpr std::size_t kKeptPairs = std::size_t{1} << 18;  ///< of dense columns, at most; 4 MiB

  /// Borrows the design.
  explicit ColumnCorrelation(const Design& design);
  std::uint32_t coordinates() const override { return design_.columns(); }
  /// Cost: both columns; only the second one when the first is that of the last call, as it is while a candidate is
  /// held against all others; nothing for a dense pair that is kept.
  double dependence(std::uint32_t a, std::uint32_t b) const override;
  std::uint64_t cost(std::uint32_t coordinate) const override { return design_.length(coordinate) + 1; }
  /// Sparse columns: a candidate costs its entries and those of columns under way in the same rows.
  std::unique_ptr<DependenceFilter> filter(double most_dependence) const override;

  /// How many products of pairs of columns have been computed.
  std::uint64_t computed() const { return computed_; }

 private:
  static constexpr std::uint32_t kNoColumn = ~std::uint32_t{0};
  struct Pair {
    std::uint32_t first = kNoColumn, second = kNoColumn;  ///< ascending
    double value = 0;
  };

  void spread(std::uint32_t column) const;
  double compute(std::uint32_t a, std::uint32_t b) const;

  const Design& design_;
  mutable std::vector<double> spread_;  ///< column `spread_column_` by row
  mutable std::uint32_t spread_column_ = kNoColumn;
  mutable std::vector<Pair> kept_;  ///< a pair has one place, which the next of that place takes
  mutable std::uint64_t computed_ = 0;
};

}  // namespace orrery::lasso
