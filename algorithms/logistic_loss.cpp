#include "algorithms/logistic_loss.h"

#include <algorithm>
#include <utility>

#include "engine/data/portable_math.h"
#include "engine/reduce.h"

namespace orrery::logistic {
namespace {

constexpr std::uint64_t kRowCost = 4;  // exp and log of a row, in entries

}  // namespace

std::vector<float> predict(const FeatureRows& rows, std::span<const float> weights, float intercept,
                           const Kernels& kernels, const ParallelFor& parallel) {
  std::vector<float> all(weights.begin(), weights.end());
  all.resize(std::max<std::size_t>(all.size(), rows.columns()), 0.0F);
  std::vector<float> margins(rows.rows());
  for_row_pieces(rows.rows(), parallel, [&](std::size_t, std::uint64_t first, std::uint64_t last) {
    kernels.predict(rows.view(first, last), {all.data(), intercept}, margins.data() + first);
  });
  return margins;
}

double mean_loss(std::span<const float> margins, std::span<const float> signs, const Kernels& kernels,
                 const ParallelFor& parallel) {
  std::vector<double> sums(row_pieces(margins.size()));
  for_row_pieces(margins.size(), parallel, [&](std::size_t piece, std::uint64_t first, std::uint64_t last) {
    std::vector<float> signed_margins(last - first);
    for (std::size_t i = 0; i < signed_margins.size(); ++i) signed_margins[i] = signs[first + i] * margins[first + i];
    sums[piece] = kernels.losses(signed_margins.data(), signed_margins.data(), 0.0, signed_margins.size());
  });
  return tree_sum(std::span<double>{sums}) / static_cast<double>(margins.size());
}

LogisticLoss::LogisticLoss(const FeatureRows& rows, std::span<const float> signs, WorkerId workers, bool has_intercept,
                           const Kernels& kernels)
    : features_(rows),
      signs_(signs),
      has_intercept_(has_intercept),
      kernels_(kernels),
      first_row_(rows.deal(workers, kRowCost)),
      margins_(rows.rows()),
      kept_margins_(rows.rows()),
      curvature_(rows.rows()) {}

ConstPoint LogisticLoss::point(std::span<const float> weights) const {
  const float intercept = has_intercept_ ? weights.back() : 0.0F;
  const auto of_columns = weights.first(penalised());
  const bool is_start = std::all_of(of_columns.begin(), of_columns.end(), [](float w) { return w == 0; });
  return {is_start ? nullptr : weights.data(), intercept};
}

newton::RowSums LogisticLoss::differentiate(WorkerId worker, std::span<const float> weights,
                                            std::span<newton::Slope> slopes) {
  const std::uint64_t first = first_row_[worker];
  const InterceptSums sums = kernels_.differentiate(rows_of(worker), signs_.data() + first, point(weights),
                                                    slopes.data(), margins_.data() + first, curvature_.data() + first);
  if (has_intercept_) slopes.back() = sums.slope;
  return sums.rows;
}

newton::RowSums LogisticLoss::find_gradient(WorkerId worker, std::span<float> pairs) {
  const std::uint64_t first = first_row_[worker];
  const float intercept = has_intercept_ ? pairs[pairs.size() - 2] : 0.0F;
  const InterceptSums sums = kernels_.find_gradient(rows_of(worker), signs_.data() + first, pairs.data(), intercept,
                                                    margins_.data() + first, curvature_.data() + first);
  if (has_intercept_) pairs.back() = static_cast<float>(sums.slope.gradient);
  return sums.rows;
}

void LogisticLoss::add_curvature(WorkerId worker, std::span<const std::uint32_t> place, std::uint64_t every,
                                 std::size_t size, std::span<double> lower) const {
  const SparseRows& all = features_.entries();
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

void LogisticLoss::multiply_pairs(WorkerId worker, std::span<float> pairs) const {
  const float intercept = has_intercept_ ? pairs[pairs.size() - 2] : 0.0F;
  const double of_intercept =
      kernels_.multiply_pairs(rows_of(worker), pairs.data(), intercept, curvature_.data() + first_row_[worker]);
  if (has_intercept_) pairs.back() = static_cast<float>(of_intercept);
}

void LogisticLoss::search(WorkerId worker, std::span<const double> steps, std::span<double> losses) const {
  const std::uint64_t first = first_row_[worker];
  for (std::size_t k = 0; k < steps.size(); ++k) {
    losses[k] = kernels_.losses(kept_margins_.data() + first, margins_.data() + first, steps[k],
                                first_row_[worker + 1] - first);
  }
}

void LogisticScoreLoss::differentiate(std::uint64_t row, std::span<double> scores) const {
  const double sign = signs_[row];
  scores[0] = -sign / (1 + portable_exp(sign * scores[0]));
}

}  // namespace orrery::logistic
