#include "algorithms/logistic_adaptive.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/data/portable_math.h"

namespace orrery::logistic {
namespace {

constexpr double kLeastSquares = 1e-6;  // so that the first step of a column is finite

/// Rows in equal shares: a clock takes as many rows of each worker.
std::vector<std::uint64_t> equal_shares(std::uint64_t rows, WorkerId workers) {
  std::vector<std::uint64_t> first(workers + std::size_t{1});
  for (WorkerId w = 0; w <= workers; ++w) first[w] = rows * w / workers;
  return first;
}

}  // namespace

AdaptiveTrainee::AdaptiveTrainee(const Engine& engine, const WorkerMap& map, const Table& rows,
                                 std::span<const float> signs, bool has_intercept, AdaptiveRule rule,
                                 std::vector<float> start, Report report)
    : TableProgram(engine, map),
      rows_(rows.entries()),
      signs_(signs),
      has_intercept_(has_intercept),
      rule_(rule),
      report_(std::move(report)),
      workers_(map.workers()),
      first_row_(equal_shares(rows_.rows(), map.workers())),
      column_rows_(start.size(), 0.0F),
      parameters_(tables().add<float>(
          {.name = "weights", .rows = static_cast<std::uint32_t>(start.size()), .width = 2, .staleness = {}})) {
  for (std::uint32_t j = 0; j < start.size(); ++j) parameters_.set(j, std::array{start[j], 0.0F});
  for (const std::uint32_t column : rows_.columns) ++column_rows_[column];
  std::uint64_t longest = 1;
  for (WorkerId w = 0; w < workers_; ++w) longest = std::max(longest, first_row_[w + 1] - first_row_[w]);
  clocks_per_iteration_ = static_cast<Clock>((longest + rule_.batch - 1) / rule_.batch);
}

std::vector<float> AdaptiveTrainee::weights() const {
  std::vector<float> weights(column_rows_.size());
  for (std::uint32_t j = 0; j < weights.size(); ++j) weights[j] = parameters_.row(j)[kWeight];
  return weights;
}

double AdaptiveTrainee::margin(const UnitContext& context, std::uint64_t row) {
  double sum = 0;
  for (std::uint64_t e = rows_.starts[row]; e < rows_.starts[row + 1]; ++e) {
    sum += double{parameters_.read(context, rows_.columns[e])[kWeight]} * rows_.values[e];
  }
  if (has_intercept_) sum += parameters_.read(context, rows_.column_count)[kWeight];
  return sum;
}

void AdaptiveTrainee::add_row(Gradient& gradient, std::uint64_t row, double slope) const {
  const auto add = [&](std::uint32_t column, double value) {
    float* of_column = gradient.at(column);
    of_column[kSum] += static_cast<float>(slope * value);
    of_column[kCount] += 1;
  };
  for (std::uint64_t e = rows_.starts[row]; e < rows_.starts[row + 1]; ++e) add(rows_.columns[e], rows_.values[e]);
  if (has_intercept_) add(rows_.column_count, 1);
}

void AdaptiveTrainee::run_unit(const WorkUnit& unit, UnitContext& context) {
  const std::uint64_t first = first_row_[unit.worker], count = first_row_[unit.worker + 1] - first;
  if (count == 0) return;  // more workers than rows
  Gradient gradient(2);
  const std::uint64_t batch = std::min(rule_.batch, count);
  const std::uint64_t from = static_cast<std::uint64_t>(unit.clock) * batch % count;
  for (std::uint64_t i = 0; i < batch; ++i) {
    const std::uint64_t row = first + (from + i) % count;
    const double sign = signs_[row];
    add_row(gradient, row, -sign / (1 + portable_exp(sign * margin(context, row))));
  }
  take_step(context, gradient, batch);
}

void AdaptiveTrainee::take_step(const UnitContext& context, const Gradient& gradient, std::uint64_t batch) {
  const double share = static_cast<double>(rows_.rows()) / static_cast<double>(batch);
  for (std::size_t i = 0; i < gradient.rows().size(); ++i) {
    const std::uint32_t column = gradient.rows()[i];
    const float* of_column = gradient.values(i);
    const std::span<const float> now = parameters_.read(context, column);
    double slope = of_column[kSum] / static_cast<double>(batch);
    const bool is_intercept = column == rows_.column_count;
    if (!is_intercept) slope += rule_.l2 * share * of_column[kCount] / column_rows_[column] * now[kWeight];
    const double squares = slope * slope;
    const double length = std::sqrt(kLeastSquares + now[kSquares] + workers_ * squares);
    parameters_.add(context, column,
                    std::array{static_cast<float>(-rule_.rate * slope / length), static_cast<float>(squares)});
  }
}

Evaluation AdaptiveTrainee::evaluate(Engine& engine, bool exact) {
  Evaluation evaluation;
  report_(engine, weights(), exact, evaluation);
  tables().report(evaluation);
  return evaluation;
}

}  // namespace orrery::logistic
