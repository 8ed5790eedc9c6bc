// The logistic loss of rows that are dealt to workers: the passes that newton.h asks for, and the same measured on any
// rows or, for adaptive_steps.h, row by row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/adaptive_steps.h"
#include "algorithms/feature_rows.h"
#include "algorithms/logistic_kernels.h"
#include "algorithms/newton.h"

namespace orrery::logistic {

/// Log-odds of every row. Columns at and above the number of weights count for nothing.
std::vector<float> predict(const FeatureRows& rows, std::span<const float> weights, float intercept,
                           const Kernels& kernels, const ParallelFor& parallel);
/// Mean log-loss of rows with those log-odds.
double mean_loss(std::span<const float> margins, std::span<const float> signs, const Kernels& kernels,
                 const ParallelFor& parallel);

class LogisticLoss final : public newton::RowLoss {
 public:
  /// Deals the rows out; borrows them and their signs (−1 or 1, the class). Weights are by column; with `has_intercept`
  /// one more parameter follows them.
  LogisticLoss(const FeatureRows& rows, std::span<const float> signs, WorkerId workers, bool has_intercept,
               const Kernels& kernels);

  std::uint64_t rows() const override { return features_.rows(); }
  WorkerId workers() const override { return static_cast<WorkerId>(first_row_.size() - 1); }
  std::size_t parameters() const override { return penalised() + (has_intercept_ ? 1 : 0); }
  std::size_t scores() const override { return 1; }
  std::size_t penalised() const override { return features_.columns(); }
  std::uint64_t row_length() const override { return features_.mean_entries() + (has_intercept_ ? 1 : 0); }

  newton::RowSums differentiate(WorkerId worker, std::span<const float> weights,
                                std::span<newton::Slope> slopes) override;
  newton::RowSums find_gradient(WorkerId worker, std::span<float> pairs) override;
  void add_curvature(WorkerId worker, std::span<const std::uint32_t> place, std::uint64_t every, std::size_t size,
                     std::span<double> lower) const override;
  void multiply(WorkerId worker, std::span<const float> direction, std::span<double> product) const override;
  void multiply_pairs(WorkerId worker, std::span<float> pairs) const override;
  void search(WorkerId worker, std::span<const double> steps, std::span<double> losses) const override;
  void keep_trial() override { kept_margins_.swap(margins_); }

 private:
  ConstPoint point(std::span<const float> weights) const;
  RowsView rows_of(WorkerId worker) const { return features_.view(first_row_[worker], first_row_[worker + 1]); }

  const FeatureRows& features_;
  const std::span<const float> signs_;
  const bool has_intercept_;
  const Kernels& kernels_;
  const std::vector<std::uint64_t> first_row_;
  std::vector<float> margins_, kept_margins_, curvature_;  ///< by row; signed margins of the trial, of the kept point
};

/// The derivative by the one score, the margin. Borrows the signs.
class LogisticScoreLoss final : public ScoreLoss {
 public:
  explicit LogisticScoreLoss(std::span<const float> signs) : signs_(signs) {}
  std::size_t scores() const override { return 1; }
  void differentiate(std::uint64_t row, std::span<double> scores) const override;

 private:
  std::span<const float> signs_;
};

}  // namespace orrery::logistic
