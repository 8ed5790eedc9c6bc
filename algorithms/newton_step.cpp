#include "algorithms/newton_step.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>

namespace orrery::newton {
namespace {

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

void Preconditioner::set_diagonal(std::span<const double> diagonal) {
  factor_.clear();
  inverse_.resize(diagonal.size());
  for (std::size_t i = 0; i < diagonal.size(); ++i) inverse_[i] = diagonal[i] > 0 ? 1.0 / diagonal[i] : 1.0;
}

void Preconditioner::set_dense(std::span<const double> lower) {
  constexpr double kLift = 1e-7;  // of a unit diagonal: far below what the rows determine, far above rounding
  const auto n = static_cast<std::size_t>(std::sqrt(static_cast<double>(lower.size())) + 0.5);
  inverse_.assign(n, 1.0);
  for (std::size_t i = 0; i < n; ++i) {
    if (lower[i * n + i] > 0) inverse_[i] = 1.0 / std::sqrt(lower[i * n + i]);
  }
  factor_.assign(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) factor_[j * n + i] = lower[i * n + j] * inverse_[i] * inverse_[j];
    factor_[i * n + i] = 1.0 + kLift;
  }
  const auto size = static_cast<Eigen::Index>(n);
  Eigen::Map<Eigen::MatrixXd> matrix(factor_.data(), size, size);
  Eigen::Ref<Eigen::MatrixXd> in_place(matrix);
  const Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> cholesky(in_place);
}

void Preconditioner::apply(std::span<const double> in, std::span<double> out) const {
  for (std::size_t i = 0; i < in.size(); ++i) out[i] = in[i] * inverse_[i];
  if (factor_.empty()) return;
  const auto size = static_cast<Eigen::Index>(out.size());
  const Eigen::Map<const Eigen::MatrixXd> factor(factor_.data(), size, size);
  Eigen::Map<Eigen::VectorXd> vector(out.data(), size);
  factor.triangularView<Eigen::Lower>().solveInPlace(vector);
  factor.triangularView<Eigen::Lower>().transpose().solveInPlace(vector);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] *= inverse_[i];
}

bool ConjugateGradients::start(std::span<const double> gradient, const Preconditioner& preconditioner) {
  const std::size_t n = gradient.size();
  step_.assign(n, 0.0);
  scaled_.resize(n);
  residual_.resize(n);
  std::transform(gradient.begin(), gradient.end(), residual_.begin(), [](double g) { return -g; });
  preconditioner.apply(residual_, scaled_);
  direction_ = scaled_;
  size_ = first_size_ = dot(residual_, scaled_);
  return size_ > 0;
}

bool ConjugateGradients::advance(std::span<const double> product, double tolerance,
                                 const Preconditioner& preconditioner) {
  const double curvature = dot(direction_, product);
  if (!(curvature > 0)) {
    if (size_ == first_size_) step_ = direction_;  // flat at once: still a descent, which the line search shortens
    return true;
  }
  const double length = size_ / curvature;
  for (std::size_t i = 0; i < step_.size(); ++i) {
    step_[i] += length * direction_[i];
    residual_[i] -= length * product[i];
  }
  preconditioner.apply(residual_, scaled_);
  const double next = dot(residual_, scaled_);
  if (!(next > tolerance * tolerance * first_size_)) return true;
  for (std::size_t i = 0; i < step_.size(); ++i) direction_[i] = scaled_[i] + next / size_ * direction_[i];
  size_ = next;
  return false;
}

std::vector<double> coordinate_descent(std::span<const double> matrix, std::span<const double> gradient,
                                       std::span<const double> weights, std::size_t penalised, double l1) {
  constexpr int kMostSweeps = 1000;
  constexpr double kSettled = 1e-10;  // of the greatest decrease that a coordinate brought in the first sweep
  const std::size_t n = gradient.size();
  std::vector<double> at(weights.begin(), weights.end()), slope(gradient.begin(), gradient.end());
  double first = 0;
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    double greatest = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const double* row = matrix.data() + j * n;
      if (!(row[j] > 0)) continue;
      const double free = at[j] - slope[j] / row[j], shrink = j < penalised ? l1 / row[j] : 0.0;
      const double to = std::copysign(std::max(std::abs(free) - shrink, 0.0), free), move = to - at[j];
      if (move == 0) continue;
      at[j] = to;
      for (std::size_t k = 0; k < n; ++k) slope[k] += move * row[k];
      greatest = std::max(greatest, row[j] * move * move);
    }
    if (sweep == 0) first = greatest;
    if (!(greatest > kSettled * first)) break;
  }
  return at;
}

}  // namespace orrery::newton
