#include "algorithms/logistic_loss.h"

#include <algorithm>
#include <utility>

#include "engine/reduce.h"

namespace orrery::logistic {
namespace {

constexpr std::uint64_t kRowsEach = 4096;  // of a piece of work outside the clocks

std::uint64_t pieces_of(std::uint64_t rows) { return (rows + kRowsEach - 1) / kRowsEach; }

}  // namespace

Table::Table(const SparseRows& rows, std::span<const float> signs)
    : rows_(rows),
      signs_(signs),
      only_ones_(std::all_of(rows.values.begin(), rows.values.end(), [](float x) { return x == 1.0F; })) {}

RowsView Table::view(std::uint64_t first, std::uint64_t last) const {
  return {rows_.starts.data() + first, rows_.columns.data(), only_ones_ ? nullptr : rows_.values.data(),
          signs_.empty() ? nullptr : signs_.data() + first, static_cast<std::size_t>(last - first)};
}

std::vector<float> predict(const Table& table, std::span<const float> weights, float intercept, const Kernels& kernels,
                           const ParallelFor& parallel) {
  std::vector<float> all(weights.begin(), weights.end());
  all.resize(std::max<std::size_t>(all.size(), table.entries().column_count), 0.0F);
  std::vector<float> margins(table.rows());
  parallel(pieces_of(table.rows()), [&](std::size_t piece) {
    const std::uint64_t first = piece * kRowsEach, last = std::min(table.rows(), first + kRowsEach);
    kernels.predict(table.view(first, last), {all.data(), intercept}, margins.data() + first);
  });
  return margins;
}

double mean_loss(std::span<const float> margins, std::span<const float> signs, const Kernels& kernels,
                 const ParallelFor& parallel) {
  std::vector<double> sums(pieces_of(margins.size()));
  parallel(sums.size(), [&](std::size_t piece) {
    const std::size_t first = piece * kRowsEach, count = std::min<std::size_t>(kRowsEach, margins.size() - first);
    std::vector<float> signed_margins(count);
    for (std::size_t i = 0; i < count; ++i) signed_margins[i] = signs[first + i] * margins[first + i];
    sums[piece] = kernels.losses(signed_margins.data(), signed_margins.data(), 0.0, count);
  });
  return tree_sum(std::span<double>{sums}) / static_cast<double>(margins.size());
}

LogisticLoss::LogisticLoss(const Table& table, WorkerId workers, bool has_intercept, const Kernels& kernels)
    : table_(table),
      has_intercept_(has_intercept),
      kernels_(kernels),
      margins_(table.rows()),
      kept_margins_(table.rows()),
      curvature_(table.rows()) {
  // A row costs its entries and about as much again as a few of them for exp and log.
  const auto cost = [&](std::uint64_t row) { return table_.begin(row) - table_.begin(0) + 4 * row; };
  std::uint64_t row = 0;
  for (std::uint64_t w = 0; w < workers; ++w) {
    while (row < table_.rows() && cost(row) * workers < cost(table_.rows()) * w) ++row;
    first_row_.push_back(row);
  }
  first_row_.push_back(table_.rows());
}

ConstPoint LogisticLoss::point(std::span<const float> weights) const {
  return {weights.data(), has_intercept_ ? weights.back() : 0.0F};
}

newton::RowSums LogisticLoss::differentiate(WorkerId worker, std::span<const float> weights,
                                            std::span<newton::Slope> slopes) {
  const std::uint64_t first = first_row_[worker];
  const InterceptSums sums = kernels_.differentiate(rows_of(worker), point(weights), slopes.data(),
                                                    margins_.data() + first, curvature_.data() + first);
  if (has_intercept_) slopes.back() = sums.slope;
  return sums.rows;
}

void LogisticLoss::add_curvature(WorkerId worker, std::span<const std::uint32_t> place, std::uint64_t every,
                                 std::size_t size, std::span<double> lower) const {
  const SparseRows& all = table_.entries();
  std::vector<std::pair<std::uint32_t, double>> row_entries;  // those with a place, by place
  const std::uint64_t first = (first_row_[worker] + every - 1) / every * every;
  for (std::uint64_t row = first; row < first_row_[worker + 1]; row += every) {
    row_entries.clear();
    for (std::uint64_t i = all.starts[row]; i < all.starts[row + 1]; ++i) {
      const std::uint32_t at = place[all.columns[i]];
      if (at != newton::kNoPlace) row_entries.emplace_back(at, double{all.values[i]});
    }
    if (has_intercept_ && place.back() != newton::kNoPlace) row_entries.emplace_back(place.back(), 1.0);
    for (std::size_t i = 0; i < row_entries.size(); ++i) {
      double* line = lower.data() + row_entries[i].first * size;
      const double x = double{curvature_[row]} * row_entries[i].second;
      for (std::size_t j = 0; j <= i; ++j) line[row_entries[j].first] += x * row_entries[j].second;
    }
  }
}

void LogisticLoss::multiply(WorkerId worker, std::span<const float> direction, std::span<double> product) const {
  const double of_intercept =
      kernels_.multiply(rows_of(worker), point(direction), curvature_.data() + first_row_[worker], product.data());
  if (has_intercept_) product.back() = of_intercept;
}

void LogisticLoss::search(WorkerId worker, std::span<const double> steps, std::span<double> losses) const {
  const std::uint64_t first = first_row_[worker];
  for (std::size_t k = 0; k < steps.size(); ++k) {
    losses[k] = kernels_.losses(kept_margins_.data() + first, margins_.data() + first, steps[k],
                                first_row_[worker + 1] - first);
  }
}

}  // namespace orrery::logistic
