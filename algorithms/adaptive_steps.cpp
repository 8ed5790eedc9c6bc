#include "algorithms/adaptive_steps.h"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

constexpr double kLeastSquares = 1e-6;  // so that the first step of a column is finite

/// Rows in equal shares: a clock takes as many rows of each worker.
std::vector<std::uint64_t> equal_shares(std::uint64_t rows, WorkerId workers) {
  std::vector<std::uint64_t> first(workers + std::size_t{1});
  for (WorkerId w = 0; w <= workers; ++w) first[w] = rows * w / workers;
  return first;
}

}  // namespace

AdaptiveTrainee::AdaptiveTrainee(const Engine& engine, const WorkerMap& map, const SparseRows& rows,
                                 const ScoreLoss& loss, bool has_intercept, AdaptiveRule rule,
                                 std::span<const float> start, Report report)
    : TableProgram(engine, map),
      rows_(rows),
      loss_(loss),
      scores_(loss.scores()),
      has_intercept_(has_intercept),
      rule_(rule),
      report_(std::move(report)),
      workers_(map.workers()),
      first_row_(equal_shares(rows_.rows(), map.workers())),
      column_rows_(start.size() / scores_, 0.0F),
      parameters_(tables().add<float>({.name = "weights",
                                       .rows = static_cast<std::uint32_t>(column_rows_.size()),
                                       .width = static_cast<std::uint32_t>(2 * scores_),
                                       .staleness = {}})) {
  std::vector<float> of_column(2 * scores_, 0.0F);
  for (std::uint32_t j = 0; j < column_rows_.size(); ++j) {
    std::copy_n(start.begin() + static_cast<std::ptrdiff_t>(j * scores_), scores_, of_column.begin());
    parameters_.set(j, of_column);
  }
  for (const std::uint32_t column : rows_.columns) ++column_rows_[column];
  for (WorkerId w = 0; w < workers_; ++w) columns_.push_back(parameters_.stream(w, columns_of({w, w + 1})));
  parameters_.place(columns_);
  say_what_is_read(map);
  std::uint64_t longest = 1;
  for (WorkerId w = 0; w < workers_; ++w) longest = std::max(longest, first_row_[w + 1] - first_row_[w]);
  clocks_per_iteration_ = static_cast<Clock>((longest + rule_.batch - 1) / rule_.batch);
}

std::span<const std::uint32_t> AdaptiveTrainee::columns_of(Workers workers) const {
  const std::uint64_t first = rows_.starts[first_row_[workers.first]];
  return std::span(rows_.columns).subspan(first, rows_.starts[first_row_[workers.last]] - first);
}

// On several nodes: the columns that occur in the rows of this node's workers.
void AdaptiveTrainee::say_what_is_read(const WorkerMap& map) {
  parameters_.will_read(columns_of({map.first_worker(map.this_node()), map.first_worker(map.this_node() + 1)}));
  if (has_intercept_) parameters_.will_read(std::array{rows_.column_count});
}

std::vector<float> AdaptiveTrainee::weights() const {
  std::vector<float> weights;
  weights.reserve(column_rows_.size() * scores_);
  for (std::uint32_t j = 0; j < column_rows_.size(); ++j) {
    const std::span<const float> of_column = parameters_.row(j).first(scores_);
    weights.insert(weights.end(), of_column.begin(), of_column.end());
  }
  return weights;
}

void AdaptiveTrainee::score(const UnitContext& context, Columns& columns, std::uint64_t row, std::span<double> scores) {
  const auto add = [&](std::span<const float> weights, double value) {
    for (std::size_t k = 0; k < scores_; ++k) scores[k] += double{weights[k]} * value;
  };
  std::fill(scores.begin(), scores.end(), 0.0);
  const std::uint64_t first = rows_.starts[first_row_[context.worker]];
  for (std::uint64_t e = rows_.starts[row]; e < rows_.starts[row + 1]; ++e) {
    add(columns.read(e - first), rows_.values[e]);
  }
  if (has_intercept_) add(parameters_.read(context, rows_.column_count), 1);
}

void AdaptiveTrainee::add_row(Gradient& gradient, std::uint64_t row, std::span<const double> slopes) const {
  const auto add = [&](std::uint32_t column, double value) {
    float* of_column = gradient.at(column);
    for (std::size_t k = 0; k < scores_; ++k) of_column[k] += static_cast<float>(slopes[k] * value);
    of_column[scores_] += 1;
  };
  for (std::uint64_t e = rows_.starts[row]; e < rows_.starts[row + 1]; ++e) add(rows_.columns[e], rows_.values[e]);
  if (has_intercept_) add(rows_.column_count, 1);
}

void AdaptiveTrainee::run_unit(const WorkUnit& unit, UnitContext& context) {
  const std::uint64_t first = first_row_[unit.worker], count = first_row_[unit.worker + 1] - first;
  if (count == 0) return;  // more workers than rows
  Gradient gradient(static_cast<std::uint32_t>(scores_ + 1));
  std::vector<double> of_row(scores_);
  const std::uint64_t batch = std::min(rule_.batch, count);
  const std::uint64_t from = static_cast<std::uint64_t>(unit.clock) * batch % count;
  Columns columns = parameters_.along(context, columns_[unit.worker]);
  for (std::uint64_t i = 0; i < batch; ++i) {
    const std::uint64_t row = first + (from + i) % count;
    score(context, columns, row, of_row);
    loss_.differentiate(row, of_row);
    add_row(gradient, row, of_row);
  }
  take_step(context, gradient, batch);
}

void AdaptiveTrainee::take_step(const UnitContext& context, const Gradient& gradient, std::uint64_t batch) {
  const double share = static_cast<double>(rows_.rows()) / static_cast<double>(batch);
  std::vector<float> update(2 * scores_);
  for (std::size_t i = 0; i < gradient.rows().size(); ++i) {
    const std::uint32_t column = gradient.rows()[i];
    const float* sums = gradient.values(i);
    const std::span<const float> now = parameters_.read(context, column);
    const bool is_intercept = column == rows_.column_count;
    const double decay = is_intercept ? 0.0 : rule_.l2 * share * sums[scores_] / column_rows_[column];
    for (std::size_t k = 0; k < scores_; ++k) {
      const double slope = sums[k] / static_cast<double>(batch) + decay * now[k];
      const double squares = slope * slope;
      const double length = std::sqrt(kLeastSquares + now[scores_ + k] + workers_ * squares);
      update[k] = static_cast<float>(-rule_.rate * slope / length);
      update[scores_ + k] = static_cast<float>(squares);
    }
    parameters_.add(context, column, update);
  }
}

Evaluation AdaptiveTrainee::evaluate(Engine& engine, bool exact) {
  Evaluation evaluation;
  report_(engine, weights(), exact, evaluation);
  if (!std::isfinite(evaluation.objective)) {
    throw usage_error(
        "training diverged: the objective is not a finite number; a smaller --rate helps, or smaller values");
  }
  tables().report(evaluation);
  return evaluation;
}

}  // namespace orrery
