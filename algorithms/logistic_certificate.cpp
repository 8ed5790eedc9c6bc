#include "algorithms/logistic_certificate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/data/portable_math.h"
#include "engine/reduce.h"

namespace orrery::logistic {
namespace {

constexpr std::size_t kPieces = 16;

/// Sums by class: [0] of negative rows, [1] of positive ones. `pull[c][j]` = Σ b_i y_i x_ij.
struct ClassSums {
  double loss = 0;
  std::array<double, 2> wrong{};
  std::array<std::vector<double>, 2> pull;
};

std::size_t first_row(const SparseRows& rows, std::size_t piece) {
  return static_cast<std::size_t>(rows.rows() * piece / kPieces);
}

double margin(const SparseRows& rows, std::size_t row, const Fitted& fitted) {
  double sum = double{fitted.intercept};
  for (std::uint64_t i = rows.starts[row]; i < rows.starts[row + 1]; ++i) {
    if (rows.columns[i] < fitted.weights.size()) {
      sum += double{fitted.weights[rows.columns[i]]} * double{rows.values[i]};
    }
  }
  return sum;
}

ClassSums sum_piece(const SparseRows& rows, std::span<const float> signs, const Fitted& fitted, std::size_t piece,
                    std::span<double> wrong) {
  ClassSums sums;
  for (auto& pull : sums.pull) pull.assign(rows.column_count, 0.0);
  for (std::size_t row = first_row(rows, piece); row < first_row(rows, piece + 1); ++row) {
    const double z = double{signs[row]} * margin(rows, row, fitted);
    const double e = portable_exp(-std::abs(z));
    const std::size_t c = signs[row] > 0 ? 1 : 0;
    sums.loss += portable_log(1.0 + e) + std::max(-z, 0.0);
    wrong[row] = (z < 0 ? 1.0 : e) / (1.0 + e);
    sums.wrong[c] += wrong[row];
    for (std::uint64_t i = rows.starts[row]; i < rows.starts[row + 1]; ++i) {
      sums.pull[c][rows.columns[i]] += wrong[row] * double{signs[row]} * double{rows.values[i]};
    }
  }
  return sums;
}

ClassSums& add(ClassSums& a, const ClassSums& b) {
  a.loss += b.loss;
  for (std::size_t c = 0; c < 2; ++c) {
    a.wrong[c] += b.wrong[c];
    for (std::size_t j = 0; j < a.pull[c].size(); ++j) a.pull[c][j] += b.pull[c][j];
  }
  return a;
}

double entropy(double b) {
  if (b <= 0 || b >= 1) return 0;
  return -b * portable_log(b) - (1.0 - b) * portable_log(1.0 - b);
}

double weight_at(const Fitted& fitted, std::size_t j) {
  return j < fitted.weights.size() ? double{fitted.weights[j]} : 0.0;
}

double least_subgradient(const ClassSums& sums, const Fitted& fitted, newton::Penalty penalty, double per_row) {
  double squares = 0;
  for (std::size_t j = 0; j < sums.pull[0].size(); ++j) {
    const double w = weight_at(fitted, j);
    squares += squared_subgradient(w, -(sums.pull[0][j] + sums.pull[1][j]) * per_row, penalty);
  }
  const double of_intercept = fitted.has_intercept ? (sums.wrong[0] - sums.wrong[1]) * per_row : 0.0;
  return std::sqrt(squares + of_intercept * of_intercept);
}

/// What the wrong probabilities of each class are multiplied by to be a point of the dual.
std::array<double, 2> dual_scale(const ClassSums& sums, const Fitted& fitted, newton::Penalty penalty, double per_row) {
  std::array<double, 2> scale{1.0, 1.0};
  if (fitted.has_intercept) {
    const double least = std::min(sums.wrong[0], sums.wrong[1]);
    for (std::size_t c = 0; c < 2; ++c) scale[c] = sums.wrong[c] > 0 ? least / sums.wrong[c] : 0.0;
  }
  if (penalty.l2 > 0) return scale;
  double largest = 0;
  for (std::size_t j = 0; j < sums.pull[0].size(); ++j) {
    largest = std::max(largest, std::abs(scale[0] * sums.pull[0][j] + scale[1] * sums.pull[1][j]) * per_row);
  }
  const double shrink = largest > penalty.l1 ? penalty.l1 / largest : 1.0;
  return {scale[0] * shrink, scale[1] * shrink};
}

double dual_value(const ClassSums& sums, std::array<double, 2> scale, std::span<const double> wrong,
                  std::span<const float> signs, newton::Penalty penalty, const ParallelFor& parallel) {
  const double per_row = 1.0 / static_cast<double>(wrong.size());
  std::vector<double> entropies(kPieces, 0.0);
  parallel(kPieces, [&](std::size_t piece) {
    const std::size_t last = wrong.size() * (piece + 1) / kPieces;
    for (std::size_t i = wrong.size() * piece / kPieces; i < last; ++i) {
      entropies[piece] += entropy(wrong[i] * scale[signs[i] > 0 ? 1 : 0]);
    }
  });
  double conjugate = 0;
  for (std::size_t j = 0; j < sums.pull[0].size() && penalty.l2 > 0; ++j) {
    const double v = (scale[0] * sums.pull[0][j] + scale[1] * sums.pull[1][j]) * per_row;
    const double over = std::max(std::abs(v) - penalty.l1, 0.0);
    conjugate += over * over / (2.0 * penalty.l2);
  }
  return tree_sum(std::span<double>{entropies}) * per_row - conjugate;
}

}  // namespace

Certificate certify(const SparseRows& rows, std::span<const float> signs, const Fitted& fitted, newton::Penalty penalty,
                    const ParallelFor& parallel) {
  std::vector<double> wrong(rows.rows());
  std::vector<ClassSums> pieces(kPieces);
  parallel(kPieces,
           [&](std::size_t piece) { pieces[piece] = sum_piece(rows, signs, fitted, piece, std::span{wrong}); });
  std::vector<ClassSums*> parts;
  for (ClassSums& piece : pieces) parts.push_back(&piece);
  const ClassSums& sums =
      *tree_combine(std::span{parts}, [](ClassSums* a, const ClassSums* b) { return &add(*a, *b); });

  const double per_row = 1.0 / static_cast<double>(rows.rows());
  Certificate out;
  out.objective = sums.loss * per_row;
  for (const float w : fitted.weights) {
    out.objective += penalty_at(double{w}, penalty);
  }
  out.gradient = least_subgradient(sums, fitted, penalty, per_row);
  out.gap = std::numeric_limits<double>::quiet_NaN();
  if (penalty.l1 > 0 || penalty.l2 > 0) {
    const std::array<double, 2> scale = dual_scale(sums, fitted, penalty, per_row);
    out.gap = out.objective - dual_value(sums, scale, wrong, signs, penalty, parallel);
  }
  return out;
}

}  // namespace orrery::logistic
