#include "algorithms/softmax_loss.h"

#include <algorithm>

#include "engine/data/portable_math.h"
#include "engine/reduce.h"

namespace orrery::softmax {
namespace {

/// Memory that kernels work in, for one row.
class Workspace {
 public:
  explicit Workspace(std::size_t classes) : doubles_(2 * classes), floats_(2 * classes) {}
  Scratch scratch() { return {doubles_.data(), floats_.data()}; }

 private:
  std::vector<double> doubles_;
  std::vector<float> floats_;
};

}  // namespace

std::vector<float> predict(const FeatureRows& rows, const Fitted& fitted, const Kernels& kernels,
                           const ParallelFor& parallel) {
  std::vector<float> all(fitted.weights.begin(), fitted.weights.end());
  all.resize(std::max(all.size(), rows.columns() * fitted.classes), 0.0F);
  const ConstPoint at{all.data(), fitted.intercepts.empty() ? nullptr : fitted.intercepts.data()};
  std::vector<float> scores(rows.rows() * fitted.classes);
  for_row_pieces(rows.rows(), parallel, [&](std::size_t, std::uint64_t first, std::uint64_t last) {
    kernels.predict(rows.view(first, last), fitted.classes, at, scores.data() + first * fitted.classes);
  });
  return scores;
}

double mean_loss(std::span<const float> scores, std::span<const std::uint32_t> labels, const Kernels& kernels,
                 const ParallelFor& parallel) {
  const std::size_t classes = scores.size() / labels.size();
  std::vector<double> sums(row_pieces(labels.size()));
  for_row_pieces(labels.size(), parallel, [&](std::size_t piece, std::uint64_t first, std::uint64_t last) {
    Workspace workspace(classes);
    const float* from = scores.data() + first * classes;
    sums[piece] = kernels.losses(from, from, 0.0, labels.data() + first, last - first, classes, workspace.scratch());
  });
  return tree_sum(std::span<double>{sums}) / static_cast<double>(labels.size());
}

std::uint32_t best_class(std::span<const float> scores) {
  return static_cast<std::uint32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

SoftmaxLoss::SoftmaxLoss(const FeatureRows& rows, std::span<const std::uint32_t> labels, std::size_t classes,
                         WorkerId workers, bool has_intercept, const Kernels& kernels)
    : features_(rows),
      labels_(labels),
      classes_(classes),
      has_intercept_(has_intercept),
      kernels_(kernels),
      first_row_(rows.deal(workers, 4)),  // an exp costs about as much as four entries, both once for each class
      scores_(rows.rows() * classes),
      kept_scores_(scores_.size()),
      probabilities_(scores_.size()) {}

ConstPoint SoftmaxLoss::point(std::span<const float> weights) const {
  return {weights.data(), has_intercept_ ? weights.data() + penalised() : nullptr};
}

newton::RowSums SoftmaxLoss::differentiate(WorkerId worker, std::span<const float> weights,
                                           std::span<newton::Slope> slopes) {
  const std::uint64_t first = first_row_[worker];
  Workspace workspace(classes_);
  return kernels_.differentiate(rows_of(worker), labels_.data() + first, classes_, point(weights), slopes.data(),
                                has_intercept_ ? slopes.data() + penalised() : nullptr,
                                scores_.data() + first * classes_, probabilities_.data() + first * classes_,
                                workspace.scratch());
}

newton::RowSums SoftmaxLoss::find_gradient(WorkerId worker, std::span<float> pairs) {
  const std::uint64_t first = first_row_[worker];
  Workspace workspace(classes_);
  return kernels_.find_gradient(rows_of(worker), labels_.data() + first, classes_, pairs.data(),
                                has_intercept_ ? pairs.data() + 2 * penalised() : nullptr,
                                scores_.data() + first * classes_, probabilities_.data() + first * classes_,
                                workspace.scratch());
}

void SoftmaxLoss::add_curvature(WorkerId worker, std::span<const std::uint32_t> place, std::uint64_t every,
                                std::size_t size, std::span<double> lower) const {
  struct Member {
    std::uint32_t at, of_class;
    double x;
  };
  const SparseRows& all = features_.entries();
  std::vector<Member> members;  // parameters of the row with a place, by place
  const auto take = [&](std::size_t column, double x) {
    for (std::uint32_t k = 0; k < classes_; ++k) {
      const std::uint32_t at = place[column * classes_ + k];
      if (at != newton::kNoPlace) members.push_back({at, k, x});
    }
  };
  const std::uint64_t first = (first_row_[worker] + every - 1) / every * every;
  for (std::uint64_t row = first; row < first_row_[worker + 1]; row += every) {
    members.clear();
    for (std::uint64_t i = all.starts[row]; i < all.starts[row + 1]; ++i) take(all.columns[i], double{all.values[i]});
    if (has_intercept_) take(features_.columns(), 1.0);
    const float* p = probabilities_.data() + row * classes_;
    for (std::size_t i = 0; i < members.size(); ++i) {
      double* line = lower.data() + members[i].at * size;
      const double px = double{p[members[i].of_class]} * members[i].x;
      for (std::size_t j = 0; j <= i; ++j) {
        const double same = members[i].of_class == members[j].of_class ? 1.0 : 0.0;
        line[members[j].at] += px * members[j].x * (same - double{p[members[j].of_class]});
      }
    }
  }
}

void SoftmaxLoss::multiply(WorkerId worker, std::span<const float> direction, std::span<double> product) const {
  Workspace workspace(classes_);
  kernels_.multiply(rows_of(worker), classes_, point(direction), probabilities_.data() + first_row_[worker] * classes_,
                    product.data(), has_intercept_ ? product.data() + penalised() : nullptr, workspace.scratch());
}

void SoftmaxLoss::multiply_pairs(WorkerId worker, std::span<float> pairs) const {
  Workspace workspace(classes_);
  kernels_.multiply_pairs(rows_of(worker), classes_, pairs.data(),
                          has_intercept_ ? pairs.data() + 2 * penalised() : nullptr,
                          probabilities_.data() + first_row_[worker] * classes_, workspace.scratch());
}

void SoftmaxLoss::search(WorkerId worker, std::span<const double> steps, std::span<double> losses) const {
  const std::uint64_t first = first_row_[worker];
  Workspace workspace(classes_);
  for (std::size_t k = 0; k < steps.size(); ++k) {
    losses[k] = kernels_.losses(kept_scores_.data() + first * classes_, scores_.data() + first * classes_, steps[k],
                                labels_.data() + first, first_row_[worker + 1] - first, classes_, workspace.scratch());
  }
}

double to_probabilities(std::span<double> scores) {
  const double peak = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double& score : scores) {
    score = portable_exp(score - peak);
    total += score;
  }
  for (double& score : scores) score /= total;
  return peak + portable_log(total);
}

void SoftmaxScoreLoss::differentiate(std::uint64_t row, std::span<double> scores) const {
  to_probabilities(scores);
  scores[labels_[row]] -= 1;
}

}  // namespace orrery::softmax
