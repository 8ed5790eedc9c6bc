#include "algorithms/lasso_descent.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace orrery::lasso {
namespace {

/// Solves the symmetric system by elimination with row exchange. @return false when it is singular
bool solve_small(std::vector<std::vector<double>> matrix, std::vector<double>& right) {
  const std::size_t n = right.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i) {
      if (std::abs(matrix[i][k]) > std::abs(matrix[pivot][k])) pivot = i;
    }
    if (!(std::abs(matrix[pivot][k]) > 0)) return false;
    std::swap(matrix[k], matrix[pivot]);
    std::swap(right[k], right[pivot]);
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = matrix[i][k] / matrix[k][k];
      for (std::size_t j = k; j < n; ++j) matrix[i][j] -= factor * matrix[k][j];
      right[i] -= factor * right[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j) right[k] -= matrix[k][j] * right[j];
    right[k] /= matrix[k][k];
  }
  return true;
}

}  // namespace

std::vector<double> anderson_weights(std::span<const std::vector<double>> history) {
  constexpr double kLift = 1e-12;  // of the trace: steps become parallel as they become small
  const std::size_t depth = history.size() - 1, length = history[0].size();
  std::vector<std::vector<double>> products(depth, std::vector<double>(depth, 0.0));
  for (std::size_t a = 0; a < depth; ++a) {
    for (std::size_t b = 0; b <= a; ++b) {
      double sum = 0;
      for (std::size_t i = 0; i < length; ++i) {
        sum += (history[a + 1][i] - history[a][i]) * (history[b + 1][i] - history[b][i]);
      }
      products[a][b] = products[b][a] = sum;
    }
  }
  double trace = 0;
  for (std::size_t k = 0; k < depth; ++k) trace += products[k][k];
  for (std::size_t k = 0; k < depth; ++k) products[k][k] += kLift * trace;
  std::vector<double> weights(depth, 1.0);
  if (!solve_small(std::move(products), weights)) return {};
  double sum = 0;
  for (const double w : weights) sum += w;
  if (!(std::abs(sum) > 0) || !std::isfinite(sum)) return {};
  for (double& w : weights) w /= sum;
  return weights;
}

/// @return half the sum of curvature times squared step: at most what the objective fell by
double ResidualDescent::sweep(std::span<const std::uint32_t> columns, Penalty penalty) {
  double fall = 0;
  for (const std::uint32_t j : columns) {
    const double curvature = design_.curvature(j), before = coefficients_[j];
    const double to = best_coefficient(before, design_.gradient(j, residual_), curvature, penalty);
    if (to == before) continue;
    design_.subtract(j, to - before, residual_);
    coefficients_[j] = to;
    fall += 0.5 * (curvature + penalty.l2) * (to - before) * (to - before);
  }
  return fall;
}

void ResidualDescent::solve(std::span<const std::uint32_t> working, Penalty penalty, double enough) {
  constexpr int kMostRounds = 1000;
  for (int round = 0; round < kMostRounds; ++round) {
    const double fall = sweep(working, penalty);
    if (fall <= enough && gap(working, penalty) <= enough) return;
    if (!(fall > 1e-16 * design_.mean_square(residual_))) return;
    support_.clear();
    for (const std::uint32_t j : working) {
      if (coefficients_[j] != 0) support_.push_back(j);
    }
    sweep_support(penalty, std::min(0.1 * enough, 0.1 * fall));
  }
}

void ResidualDescent::sweep_support(Penalty penalty, double enough) {
  constexpr int kMostSweeps = 20;
  history_.assign(1, now());
  for (int k = 0; k < kMostSweeps; ++k) {
    if (sweep(support_, penalty) <= enough) return;
    history_.push_back(now());
    if (history_.size() <= kDepth) continue;
    extrapolate(penalty);
    history_.assign(1, now());
  }
}

std::vector<double> ResidualDescent::now() const {
  std::vector<double> values;
  values.reserve(support_.size());
  for (const std::uint32_t j : support_) values.push_back(coefficients_[j]);
  return values;
}

bool ResidualDescent::extrapolate(Penalty penalty) {
  const std::vector<double> weights = anderson_weights(history_), before = history_.back();
  if (weights.empty()) return false;
  std::vector<double> target(before.size(), 0.0);
  for (std::size_t k = 0; k < weights.size(); ++k) {
    for (std::size_t i = 0; i < target.size(); ++i) target[i] += weights[k] * history_[k + 1][i];
  }
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (before[i] == 0) target[i] = 0;
    if (target[i] * before[i] < 0) return false;  // beyond a change of sign the sequence tends elsewhere
  }
  const double value = objective(penalty);
  go_to(target);
  if (objective(penalty) < value) return true;
  go_to(before);
  return false;
}

void ResidualDescent::go_to(std::span<const double> target) {
  for (std::size_t i = 0; i < target.size(); ++i) {
    const std::uint32_t j = support_[i];
    if (target[i] != coefficients_[j]) design_.subtract(j, target[i] - coefficients_[j], residual_);
    coefficients_[j] = target[i];
  }
}

double ResidualDescent::gap(std::span<const std::uint32_t> working, Penalty penalty) const {
  GapSums sums;
  sums.square = design_.mean_square(residual_);
  for (const std::uint32_t j : working) sums.add(coefficients_[j], design_.gradient(j, residual_), penalty);
  return primal_value(sums, penalty) - dual_value(sums, penalty);
}

double ResidualDescent::objective(Penalty penalty) const {
  GapSums sums;
  sums.square = design_.mean_square(residual_);
  for (const std::uint32_t j : support_) sums.add(coefficients_[j], 0, penalty);
  return primal_value(sums, penalty);
}

}  // namespace orrery::lasso
