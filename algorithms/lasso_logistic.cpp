#include "algorithms/lasso_logistic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "algorithms/lasso_descent.h"
#include "algorithms/lasso_gram.h"
#include "algorithms/lasso_state.h"
#include "engine/data/portable_math.h"

namespace orrery::lasso {
namespace {

constexpr double kLeastWeight = 1e-9;  // of a row that is certain, so that every column keeps a curvature
constexpr double kLargestShift = 40;   // of log-odds: beyond, probabilities are 0 and 1

struct InterceptSlope {
  double slope = 0, curvature = 0;
};

InterceptSlope slope_of_intercept(std::span<const double> margins, std::span<const float> signs, double shift) {
  InterceptSlope sums;
  for (std::size_t i = 0; i < margins.size(); ++i) {
    const double wrong = logistic_row(margins[i] + shift, double{signs[i]}).wrong;
    sums.slope += double{signs[i]} * wrong;
    sums.curvature += wrong * (1 - wrong);
  }
  return sums;
}

double penalty_on(std::span<const double> values, Penalty penalty) {
  double sum = 0;
  for (const double b : values) sum += penalty.l1 * std::abs(b) + 0.5 * penalty.l2 * b * b;
  return sum;
}

std::vector<double> values_at(std::span<const std::uint32_t> working, std::span<const double> coefficients) {
  std::vector<double> values;
  for (const std::uint32_t j : working) values.push_back(coefficients[j]);
  return values;
}

/// Σ x̃_j step_j by row, but for a constant.
std::vector<double> direction_of(const Design& design, std::span<const std::uint32_t> columns,
                                 std::span<const double> steps) {
  Residual rows{std::vector<double>(design.rows(), 0.0), 0};
  for (std::size_t k = 0; k < columns.size(); ++k) {
    if (steps[k] != 0) design.subtract(columns[k], -steps[k], rows);
  }
  return std::move(rows.raw);
}

}  // namespace

LogisticRow logistic_row(double margin, double sign) {
  const double z = sign * margin, e = portable_exp(-std::abs(z));
  return {portable_log(1 + e) + std::max(-z, 0.0), (z < 0 ? 1.0 : e) / (1 + e)};
}

double mean_log_loss(std::span<const double> margins, std::span<const float> signs) {
  double sum = 0;
  for (std::size_t i = 0; i < margins.size(); ++i) sum += logistic_row(margins[i], double{signs[i]}).loss;
  return sum / static_cast<double>(margins.size());
}

double coin_entropy(double b) { return b <= 0 || b >= 1 ? 0.0 : -b * portable_log(b) - (1 - b) * portable_log(1 - b); }

LogisticFit::LogisticFit(const Design& design, std::span<const float> signs)
    : design_(design), signs_(signs), margins_(design.rows(), 0.0) {}

double LogisticFit::dual(const GapSums& sums, Penalty penalty, const Residual& residual) const {
  const auto value = [&](double t) {
    double sum = 0;
    for (const double r : residual.raw) sum += coin_entropy(t * std::abs(r));
    return sum / static_cast<double>(residual.raw.size());
  };
  const double shrink = sums.largest > penalty.l1 ? penalty.l1 / sums.largest : 1.0;
  const double shrunk = value(shrink);
  return penalty.l2 > 0 && shrink < 1 ? std::max(shrunk, value(1) - 0.5 * sums.beyond / penalty.l2) : shrunk;
}

void LogisticFit::rebuild(std::span<const double> coefficients, Residual& residual) {
  std::vector<std::uint32_t> columns(coefficients.size());
  std::iota(columns.begin(), columns.end(), 0U);
  margins_ = direction_of(design_, columns, coefficients);
  double constant = 0;
  for (std::uint32_t j = 0; j < coefficients.size(); ++j) {
    constant += coefficients[j] * design_.mean(j) * design_.inverse_scale(j);
  }
  for (double& margin : margins_) margin -= constant;
  intercept_ = 0;
  settle_intercept();
  take_margins(residual);
}

/// Newton's method in one number, from where the last one was; a step that makes the slope larger is halved.
void LogisticFit::settle_intercept() {
  if (!design_.has_intercept()) return;
  constexpr int kMostSteps = 100;
  const double enough = 1e-14 * static_cast<double>(margins_.size());
  double shift = 0;
  InterceptSlope at = slope_of_intercept(margins_, signs_, shift);
  double step = 0;
  for (int k = 0; k < kMostSteps && std::abs(at.slope) > enough; ++k) {
    if (step == 0) step = at.curvature > 0 ? at.slope / at.curvature : std::copysign(kLargestShift, at.slope);
    step = std::clamp(step, -kLargestShift, kLargestShift);
    const double to = std::clamp(shift + step, -kLargestShift - intercept_, kLargestShift - intercept_);
    if (to == shift) break;
    const InterceptSlope there = slope_of_intercept(margins_, signs_, to);
    if (std::abs(there.slope) < std::abs(at.slope)) {
      shift = to;
      at = there;
      step = 0;
    } else {
      step *= 0.5;
      if (std::abs(step) < 1e-15 * (1 + std::abs(intercept_ + shift))) break;
    }
  }
  intercept_ += shift;
  for (double& margin : margins_) margin += shift;
}

void LogisticFit::take_margins(Residual& residual) {
  residual.raw.resize(margins_.size());
  double loss = 0, sum = 0;
  for (std::size_t i = 0; i < margins_.size(); ++i) {
    const LogisticRow row = logistic_row(margins_[i], double{signs_[i]});
    loss += row.loss;
    residual.raw[i] = double{signs_[i]} * row.wrong;
    sum += residual.raw[i];
  }
  residual.sum = sum;
  loss_ = loss / static_cast<double>(margins_.size());
}

void LogisticFit::save(std::vector<StateSection>& sections) const {
  sections.push_back(section_of<double>("margins", margins_));
  sections.push_back(section_of<double>("logistic", std::array{intercept_, loss_}));
}

void LogisticFit::load(const std::vector<StateSection>& sections) {
  copy_section<double>(sections, "margins", margins_);
  std::array<double, 2> numbers{};
  copy_section<double>(sections, "logistic", numbers);
  intercept_ = numbers[0];
  loss_ = numbers[1];
}

GapSums LogisticFit::sums_of(std::span<const std::uint32_t> working, std::span<const double> coefficients,
                             const Residual& residual, Penalty penalty) const {
  GapSums sums;
  for (const std::uint32_t j : working) {
    const double gradient = design_.gradient(j, residual);
    sums.add_coefficient(coefficients[j], gradient);
    sums.add_inactive(gradient, gradient, penalty);
  }
  return sums;
}

void LogisticFit::solve(std::span<const std::uint32_t> working, std::vector<double>& coefficients, Residual& residual,
                        Penalty penalty, double enough) {
  constexpr int kMostSteps = 50;
  constexpr double kForcing = 0.03;  // of the gap: how near its minimum a model is solved
  for (int k = 0; k < kMostSteps; ++k) {
    const GapSums sums = sums_of(working, coefficients, residual, penalty);
    const double gap = loss_ + penalised(sums, penalty) - dual(sums, penalty, residual);
    const bool is_bounded = penalty.l1 > 0 || penalty.l2 > 0;
    if (is_bounded && gap <= enough) return;
    const double goal = is_bounded ? std::max(0.3 * enough, kForcing * gap) : 0.01 * enough;
    const std::vector<double> target = model_minimum(working, coefficients, residual, penalty, goal);
    if (!step(working, target, coefficients, residual, penalty)) return;
  }
}

/// The minimum of the quadratic model around the present point, by place in the working set.
std::vector<double> LogisticFit::model_minimum(std::span<const std::uint32_t> working,
                                               std::span<const double> coefficients, const Residual& residual,
                                               Penalty penalty, double enough) const {
  std::vector<double> weights(margins_.size());
  Residual model{std::vector<double>(margins_.size()), residual.sum};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double wrong = std::abs(residual.raw[i]);
    weights[i] = std::max(wrong * (1 - wrong), kLeastWeight);
    model.raw[i] = residual.raw[i] / std::sqrt(weights[i]);
  }
  Design weighted(design_, working, weights);
  std::vector<double> gradients;
  for (const std::uint32_t j : working) gradients.push_back(design_.gradient(j, residual));
  weighted.correct(gradients, model);
  std::vector<double> target = values_at(working, coefficients);
  std::vector<std::uint32_t> all(working.size());
  std::iota(all.begin(), all.end(), 0U);
  if (!is_worth_products(weighted, all)) {
    ResidualDescent(weighted, target, model, all, penalty, enough).run_all();
    return target;
  }
  Gram gram(weighted);
  gram.admit(all);
  gram.fill(0, 1);
  gram.settle();
  GramDescent descent(gram, weighted);
  descent.working = all;
  descent.coefficients = std::move(target);
  descent.square = weighted.mean_square(model);
  descent.gradient = std::move(gradients);
  descent.solve(penalty, enough);
  return descent.coefficients;
}

/// Goes towards the target as far as the objective falls by a part of what the slope promises (Armijo).
/// @return false when it falls nowhere
bool LogisticFit::step(std::span<const std::uint32_t> working, std::span<const double> target,
                       std::vector<double>& coefficients, Residual& residual, Penalty penalty) {
  constexpr double kPart = 1e-3, kRounding = 1e-14;  // of the objective: what sums over rows may lack
  constexpr int kMostHalvings = 30;
  const std::vector<double> from = values_at(working, coefficients), margins_before = margins_;
  const double before = penalty_on(from, penalty), loss_before = loss_, intercept_before = intercept_;
  std::vector<double> steps(from.size());
  double promised = 0;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    steps[k] = target[k] - from[k];
    if (steps[k] == 0) continue;
    // Column by column, for what is promised near the minimum is far below the rounding of the whole penalty.
    promised += penalty.l1 * (std::abs(target[k]) - std::abs(from[k])) +
                0.5 * penalty.l2 * steps[k] * (target[k] + from[k]) - steps[k] * design_.gradient(working[k], residual);
  }
  if (!(promised < 0)) return false;
  const std::vector<double> direction = direction_of(design_, working, steps);
  double constant = 0;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    constant += steps[k] * design_.mean(working[k]) * design_.inverse_scale(working[k]);
  }
  std::vector<double> to(from.size());
  double length = 1;
  for (int k = 0; k < kMostHalvings; ++k, length *= 0.5) {
    for (std::size_t c = 0; c < to.size(); ++c) to[c] = length == 1 ? target[c] : from[c] + length * steps[c];
    for (std::size_t i = 0; i < margins_.size(); ++i) {
      margins_[i] = margins_before[i] + length * (direction[i] - constant);
    }
    intercept_ = intercept_before;
    settle_intercept();
    take_margins(residual);
    const double most = (loss_before + before) * (1 + kRounding) + kPart * length * promised;
    if (loss_ + penalty_on(to, penalty) <= most) {
      for (std::size_t c = 0; c < to.size(); ++c) coefficients[working[c]] = to[c];
      return true;
    }
  }
  margins_ = margins_before;
  intercept_ = intercept_before;
  take_margins(residual);
  return false;
}

}  // namespace orrery::lasso
