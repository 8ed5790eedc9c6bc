// The softmax loss of rows that are dealt to workers: the passes that newton.h asks for, and the same measured on any
// rows or, for adaptive_steps.h, row by row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/adaptive_steps.h"
#include "algorithms/feature_rows.h"
#include "algorithms/newton.h"
#include "algorithms/softmax_kernels.h"

namespace orrery::softmax {

/// A trained point as it is written and judged: by column and, in a column, by class.
struct Fitted {
  std::size_t classes = 0;
  std::span<const float> weights;     ///< columns beyond count for nothing
  std::span<const float> intercepts;  ///< by class; empty: none
};

/// Scores of every row, by class. Columns at and above those of the weights count for nothing.
std::vector<float> predict(const FeatureRows& rows, const Fitted& fitted, const Kernels& kernels,
                           const ParallelFor& parallel);
/// Mean log-loss of rows with those scores.
double mean_loss(std::span<const float> scores, std::span<const std::uint32_t> labels, const Kernels& kernels,
                 const ParallelFor& parallel);
/// The class of the greatest score, of equal ones the first.
std::uint32_t best_class(std::span<const float> scores);

class SoftmaxLoss final : public newton::RowLoss {
 public:
  /// Deals the rows out; borrows them and their labels, numbers of classes. With `has_intercept` an intercept of each
  /// class follows the weights.
  SoftmaxLoss(const FeatureRows& rows, std::span<const std::uint32_t> labels, std::size_t classes, WorkerId workers,
              bool has_intercept, const Kernels& kernels);

  std::uint64_t rows() const override { return features_.rows(); }
  WorkerId workers() const override { return static_cast<WorkerId>(first_row_.size() - 1); }
  std::size_t parameters() const override { return penalised() + (has_intercept_ ? classes_ : 0); }
  std::size_t scores() const override { return classes_; }
  std::size_t penalised() const override { return features_.columns() * classes_; }
  std::uint64_t row_length() const override { return classes_ * (features_.mean_entries() + (has_intercept_ ? 1 : 0)); }

  newton::RowSums differentiate(WorkerId worker, std::span<const float> weights,
                                std::span<newton::Slope> slopes) override;
  newton::RowSums find_gradient(WorkerId worker, std::span<float> pairs) override;
  void add_curvature(WorkerId worker, std::span<const std::uint32_t> place, std::uint64_t every, std::size_t size,
                     std::span<double> lower) const override;
  void multiply(WorkerId worker, std::span<const float> direction, std::span<double> product) const override;
  void multiply_pairs(WorkerId worker, std::span<float> pairs) const override;
  void search(WorkerId worker, std::span<const double> steps, std::span<double> losses) const override;
  void keep_trial() override { kept_scores_.swap(scores_); }

 private:
  ConstPoint point(std::span<const float> weights) const;
  RowsView rows_of(WorkerId worker) const { return features_.view(first_row_[worker], first_row_[worker + 1]); }

  const FeatureRows& features_;
  const std::span<const std::uint32_t> labels_;
  const std::size_t classes_;
  const bool has_intercept_;
  const Kernels& kernels_;
  const std::vector<std::uint64_t> first_row_;
  /// By row and, in a row, by class; scores of the trial, of the kept point, and probabilities at the trial.
  std::vector<float> scores_, kept_scores_, probabilities_;
};

/// The derivatives by the scores of the classes. Borrows the labels.
class SoftmaxScoreLoss final : public ScoreLoss {
 public:
  SoftmaxScoreLoss(std::span<const std::uint32_t> labels, std::size_t classes) : labels_(labels), classes_(classes) {}
  std::size_t scores() const override { return classes_; }
  void differentiate(std::uint64_t row, std::span<double> scores) const override;

 private:
  std::span<const std::uint32_t> labels_;
  std::size_t classes_;
};

/// Replaces scores by their probabilities. @return log Σ exp(score)
double to_probabilities(std::span<double> scores);

}  // namespace orrery::softmax
