// The logistic loss of rows that are dealt to workers: the passes that newton.h asks for, and the same measured on any
// rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/logistic_kernels.h"
#include "algorithms/newton.h"
#include "engine/data/parallel_for.h"
#include "engine/data/sparse_rows.h"

namespace orrery::logistic {

/// Rows as the kernels take them; borrows both. `signs` may be empty.
class Table {
 public:
  Table(const SparseRows& rows, std::span<const float> signs);
  RowsView view(std::uint64_t first, std::uint64_t last) const;
  std::uint64_t rows() const { return rows_.rows(); }
  std::uint64_t begin(std::uint64_t row) const { return rows_.starts[row]; }
  bool has_only_ones() const { return only_ones_; }
  const SparseRows& entries() const { return rows_; }

 private:
  const SparseRows& rows_;
  std::span<const float> signs_;
  bool only_ones_;
};

/// Log-odds of every row. Columns at and above the number of weights count for nothing.
std::vector<float> predict(const Table& table, std::span<const float> weights, float intercept, const Kernels& kernels,
                           const ParallelFor& parallel);
/// Mean log-loss of rows with those log-odds.
double mean_loss(std::span<const float> margins, std::span<const float> signs, const Kernels& kernels,
                 const ParallelFor& parallel);

class LogisticLoss final : public newton::RowLoss {
 public:
  /// Deals the rows out: consecutive ones, of about the same number of entries for each worker. Borrows the table.
  /// Weights are by column; with `has_intercept` one more parameter follows them.
  LogisticLoss(const Table& table, WorkerId workers, bool has_intercept, const Kernels& kernels);

  std::uint64_t rows() const override { return table_.rows(); }
  WorkerId workers() const override { return static_cast<WorkerId>(first_row_.size() - 1); }
  std::size_t parameters() const override { return penalised() + (has_intercept_ ? 1 : 0); }
  std::size_t penalised() const override { return table_.entries().column_count; }
  std::uint64_t row_length() const override {
    return (table_.entries().entries() + rows() - 1) / rows() + (has_intercept_ ? 1 : 0);
  }

  newton::RowSums differentiate(WorkerId worker, std::span<const float> weights,
                                std::span<newton::Slope> slopes) override;
  void add_curvature(WorkerId worker, std::span<const std::uint32_t> place, std::uint64_t every, std::size_t size,
                     std::span<double> lower) const override;
  void multiply(WorkerId worker, std::span<const float> direction, std::span<double> product) const override;
  void search(WorkerId worker, std::span<const double> steps, std::span<double> losses) const override;
  void keep_trial() override { kept_margins_.swap(margins_); }

 private:
  ConstPoint point(std::span<const float> weights) const;
  RowsView rows_of(WorkerId worker) const { return table_.view(first_row_[worker], first_row_[worker + 1]); }

  const Table& table_;
  const bool has_intercept_;
  const Kernels& kernels_;
  std::vector<std::uint64_t> first_row_;
  std::vector<float> margins_, kept_margins_, curvature_;  ///< by row; signed margins of the trial, of the kept point
};

}  // namespace orrery::logistic
