#include "algorithms/lasso_descent.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "algorithms/lasso_support.h"

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

ResidualDescent::ResidualDescent(const Design& design, std::vector<double>& coefficients, Residual& residual,
                                 std::span<const std::uint32_t> working, Penalty penalty, double enough)
    : design_(design),
      coefficients_(coefficients),
      residual_(residual),
      working_(working),
      penalty_(penalty),
      enough_(enough),
      gradient_(working.size()),
      newton_(design, coefficients, residual) {
  std::vector<std::uint64_t> start{0};
  for (const std::uint32_t j : working) start.push_back(start.back() + design.length(j));
  first_ = cut_into_parts(start);
}

std::size_t ResidualDescent::start_gradients() {
  round_before_ = round_;
  round_ = Round::gradients;
  return first_.size() - 1;
}

std::size_t ResidualDescent::next() {
  if (round_ == Round::none) return start_gradients();
  if (round_ == Round::gradients) return start_newton();
  if (const std::size_t parts = newton_.next()) return parts;
  fall_ += newton_.fall();
  is_newton_hard_ = newton_.was_hard();
  if (is_newton_hard_) stalled_ = 0;
  return start_gradients();
}

void ResidualDescent::run(std::size_t part) {
  if (round_ == Round::newton) return newton_.run(part);
  for (std::size_t k = first_[part]; k < first_[part + 1]; ++k) gradient_[k] = design_.gradient(working_[k], residual_);
}

void ResidualDescent::run_all() {
  while (const std::size_t parts = next()) {
    for (std::size_t part = 0; part < parts; ++part) run(part);
  }
}

/// From the gradients of the whole working set: is it over, and if it is not, the next support.
std::size_t ResidualDescent::start_newton() {
  constexpr std::uint64_t kLeastEntries = 16384;  // of a support whose products two threads can share
  constexpr int kMostRounds = 1000, kPatience = 4;
  constexpr double kRounding = 1e-16;  // of the residual, squared
  constexpr double kGain = 0.5;        // of the gap, in a round that was worth its while
  const double gap_before = std::exchange(gap_, gap());
  if (gap_ <= enough_ || ++rounds_ > kMostRounds) return 0;
  stalled_ = gap_ > kGain * gap_before ? stalled_ + 1 : 0;
  if (rounds_ > 1 && !(fall_ > kRounding * design_.mean_square(residual_))) {
    if (round_before_ == Round::newton) return 0;
    stalled_ = kPatience;
  }
  fall_ = sweep();
  find_support();
  const bool is_small = support_entries() < kLeastEntries;
  if (is_small || is_newton_hard_) {
    sweep_support(std::min(0.1 * enough_, 0.1 * fall_));
    find_support();
    if (is_small && stalled_ < kPatience) return start_gradients();
  }
  newton_.begin(support_, penalty_, close());
  round_ = Round::newton;
  return newton_.next();
}

/// Slopes that cost no more than a part of the gap that is wanted: one of δ on a support shrinks the dual point so that
/// the gap grows by up to δ |β|₁.
double ResidualDescent::close() const {
  constexpr double kPart = 0.1;
  double absolute = 0;
  for (const std::uint32_t j : support_) absolute += std::abs(coefficients_[j]);
  return absolute > 0 ? kPart * enough_ / absolute : 0.0;
}

void ResidualDescent::find_support() {
  support_.clear();
  for (const std::uint32_t j : working_) {
    if (coefficients_[j] != 0) support_.push_back(j);
  }
}

std::uint64_t ResidualDescent::support_entries() const {
  std::uint64_t entries = 0;
  for (const std::uint32_t j : support_) entries += design_.length(j);
  return entries;
}

/// @return half of curvature times squared step: at most what the objective fell by
double ResidualDescent::move(std::uint32_t j) {
  const double curvature = design_.curvature(j), before = coefficients_[j];
  const double to = best_coefficient(before, design_.gradient(j, residual_), curvature, penalty_);
  if (to == before) return 0;
  design_.subtract(j, to - before, residual_);
  coefficients_[j] = to;
  return 0.5 * (curvature + penalty_.l2) * (to - before) * (to - before);
}

double ResidualDescent::sweep() {
  double fall = 0;
  for (std::size_t k = 0; k < working_.size(); ++k) {
    const std::uint32_t j = working_[k];
    if (coefficients_[j] != 0 || std::abs(gradient_[k]) > penalty_.l1) fall += move(j);
  }
  return fall;
}

void ResidualDescent::sweep_support(double enough) {
  constexpr int kMostSweeps = 20;
  history_.assign(1, now());
  for (int k = 0; k < kMostSweeps; ++k) {
    double fall = 0;
    for (const std::uint32_t j : support_) fall += move(j);
    if (fall <= enough) return;
    history_.push_back(now());
    if (history_.size() <= kDepth) continue;
    extrapolate();
    history_.assign(1, now());
  }
}

std::vector<double> ResidualDescent::now() const {
  std::vector<double> values;
  values.reserve(support_.size());
  for (const std::uint32_t j : support_) values.push_back(coefficients_[j]);
  return values;
}

bool ResidualDescent::extrapolate() {
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
  const double value = objective();
  go_to(target);
  if (objective() < value) return true;
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

double ResidualDescent::gap() const {
  GapSums sums;
  sums.square = design_.mean_square(residual_);
  for (std::size_t k = 0; k < working_.size(); ++k) sums.add(coefficients_[working_[k]], gradient_[k], penalty_);
  return primal_value(sums, penalty_) - dual_value(sums, penalty_);
}

double ResidualDescent::objective() const {
  GapSums sums;
  sums.square = design_.mean_square(residual_);
  for (const std::uint32_t j : support_) sums.add(coefficients_[j], 0, penalty_);
  return primal_value(sums, penalty_);
}

}  // namespace orrery::lasso
