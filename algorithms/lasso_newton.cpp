#include "algorithms/lasso_newton.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace orrery::lasso {
namespace {

constexpr int kMostStages = 5, kMostIterations = 100;
constexpr double kForcing = 1e-2;  // of the first slope, squared: how near its minimum a stage is solved
constexpr double kFlat = 1e-10;    // of the curvature that separate columns would have: rounding

}  // namespace

void SupportNewton::begin(std::span<const std::uint32_t> columns, Penalty penalty, double close) {
  penalty_ = penalty;
  close_ = close;
  columns_.assign(columns.begin(), columns.end());
  support_.lay_out(columns_);
  is_held_.assign(columns_.size(), 0);
  diagonal_.clear();
  for (const std::uint32_t j : columns_) diagonal_.push_back(design_.curvature(j) + penalty.l2);
  product_.resize(support_.places());
  for (auto* values : {&gradient_, &trial_, &step_, &slope_, &scaled_slope_, &direction_, &weights_}) {
    values->assign(columns_.size(), 0.0);
  }
  fall_ = 0;
  was_hard_ = false;
  stage_ = 0;
  round_ = Round::none;
}

std::size_t SupportNewton::next() {
  switch (round_) {
    case Round::none:
      return columns_.empty() ? 0 : start_stage();
    case Round::slopes:
      return start_descent();
    case Round::rows:
      return go_along(curvature_of(summed()));
    case Round::columns:
      return go_on();
    case Round::trial:
      return end_trial();
    case Round::move:
      return end_move();
  }
  return 0;
}

void SupportNewton::run(std::size_t part) {
  double sum = 0;
  if (round_ == Round::slopes || round_ == Round::columns) {
    for (std::size_t k = support_.first_column(part); k < support_.first_column(part + 1); ++k) {
      if (is_held_[k] != 0) continue;
      const std::uint32_t j = columns_[k];
      if (round_ == Round::slopes) {
        gradient_[k] = design_.gradient(j, residual_);
        continue;
      }
      const double curved = (support_.dot(k, product_) - design_.mean(j) * weighted_mean_) * design_.inverse_scale(j) *
                                design_.per_row() +
                            penalty_.l2 * direction_[k];
      step_[k] += length_ * direction_[k];
      slope_[k] -= length_ * curved;
      scaled_slope_[k] = slope_[k] / diagonal_[k];
      sum += slope_[k] * scaled_slope_[k];
    }
  } else {
    if (round_ != Round::move) support_.multiply(part, weights_, product_);
    for (std::size_t i = support_.first_place(part); i < support_.first_place(part + 1); ++i) {
      sum += product_[i] * product_[i];
      if (round_ == Round::move) residual_.raw[support_.row(i)] -= product_[i];
    }
  }
  sums_[part] = sum;
}

bool SupportNewton::is_close() const {
  return std::all_of(slope_.begin(), slope_.end(), [&](double slope) { return std::abs(slope) <= close_; });
}

double SupportNewton::summed() const { return std::accumulate(sums_.begin(), sums_.end(), 0.0); }

/// |X̃ d|² / n from the same of the raw columns.
double SupportNewton::curvature_of(double square) const {
  return (square - (design_.has_intercept() ? weighted_mean_ * weighted_mean_ / design_.mass() : 0.0)) *
         design_.per_row();
}

void SupportNewton::weigh(std::span<const double> steps) {
  weighted_mean_ = 0;
  for (std::size_t k = 0; k < columns_.size(); ++k) {
    weights_[k] = steps[k] * design_.inverse_scale(columns_[k]);
    weighted_mean_ += weights_[k] * design_.mean(columns_[k]) * design_.mass();
  }
  sums_.assign(support_.row_parts(), 0.0);
}

std::size_t SupportNewton::start_stage() {
  round_ = Round::slopes;
  sums_.assign(support_.column_parts(), 0.0);
  return support_.column_parts();
}

std::size_t SupportNewton::start_descent() {
  slope_square_ = 0;
  for (std::size_t k = 0; k < columns_.size(); ++k) {
    const double now = coefficients_[columns_[k]];
    step_[k] = 0;
    slope_[k] = is_held_[k] != 0 ? 0.0 : gradient_[k] - penalty_.l2 * now - std::copysign(penalty_.l1, now);
    direction_[k] = scaled_slope_[k] = slope_[k] / diagonal_[k];
    slope_square_ += slope_[k] * scaled_slope_[k];
  }
  first_square_ = slope_square_;
  iterations_ = 0;
  if (is_close()) return end();
  weigh(direction_);
  round_ = Round::rows;
  return support_.row_parts();
}

/// As far as the model falls along the direction.
std::size_t SupportNewton::go_along(double curved) {
  double norm = 0, apart = 0;
  for (std::size_t k = 0; k < columns_.size(); ++k) {
    norm += direction_[k] * direction_[k];
    apart += direction_[k] * direction_[k] * diagonal_[k];
  }
  curved += penalty_.l2 * norm;
  if (!(curved > kFlat * apart)) {
    add_up_to_first_zero();
    return start_trial(1);
  }
  length_ = slope_square_ / curved;
  round_ = Round::columns;
  sums_.assign(support_.column_parts(), 0.0);
  return support_.column_parts();
}

/// The model is flat in the penalty's slope, downhill: only a coefficient that vanishes ends that.
void SupportNewton::add_up_to_first_zero() {
  double length = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < columns_.size(); ++k) {
    const double now = coefficients_[columns_[k]] + step_[k];
    if (direction_[k] * now < 0) length = std::min(length, -now / direction_[k]);
  }
  if (!std::isfinite(length)) return;
  for (std::size_t k = 0; k < columns_.size(); ++k) step_[k] += length * direction_[k];
}

std::size_t SupportNewton::go_on() {
  const double square = summed();
  ++iterations_;
  if (square <= kForcing * first_square_ || iterations_ == kMostIterations || is_close()) return start_trial(1);
  const double share = square / slope_square_;
  slope_square_ = square;
  for (std::size_t k = 0; k < columns_.size(); ++k) direction_[k] = scaled_slope_[k] + share * direction_[k];
  weigh(direction_);
  round_ = Round::rows;
  return support_.row_parts();
}

/// So much of the way to the solution; coefficients that would change their signs there end at 0.
std::size_t SupportNewton::start_trial(double length) {
  trial_length_ = length;
  for (std::size_t k = 0; k < columns_.size(); ++k) {
    const double now = coefficients_[columns_[k]], step = length * step_[k];
    trial_[k] = (now + step) * now > 0 ? step : -now;
  }
  weigh(trial_);
  round_ = Round::trial;
  return support_.row_parts();
}

/// Of the objective, on the trial step.
double SupportNewton::change() const {
  double change = 0.5 * curvature_of(summed());
  for (std::size_t k = 0; k < columns_.size(); ++k) {
    const double now = coefficients_[columns_[k]], to = now + trial_[k];
    change += penalty_.l1 * (std::abs(to) - std::abs(now)) + 0.5 * penalty_.l2 * (to + now) * trial_[k] -
              trial_[k] * gradient_[k];
  }
  return change;
}

std::size_t SupportNewton::end_trial() {
  constexpr double kLeastLength = 1e-3;
  change_ = change();
  if (!(change_ < 0)) {
    was_hard_ = true;
    if (trial_length_ > kLeastLength) return start_trial(0.5 * trial_length_);
    return end();
  }
  round_ = Round::move;
  return support_.row_parts();
}

std::size_t SupportNewton::end_move() {
  bool has_lost = false;
  for (std::size_t k = 0; k < columns_.size(); ++k) {
    double& now = coefficients_[columns_[k]];
    if (is_held_[k] != 0) continue;
    now = trial_[k] == -now ? 0.0 : now + trial_[k];
    if (now != 0) continue;
    is_held_[k] = 1;
    has_lost = true;
  }
  residual_.sum -= weighted_mean_;
  fall_ -= change_;
  return has_lost && ++stage_ < kMostStages ? start_stage() : end();
}

std::size_t SupportNewton::end() {
  round_ = Round::none;
  return 0;
}

}  // namespace orrery::lasso
