// The Lasso written down from its definition: dense columns, plain cyclic coordinate descent (Friedman, Hastie and
// Tibshirani, J. Stat. Softw. 2010, section 2), every sweep over every column until nothing moves. Slow and short.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace orrery::lasso {

struct Oracle {
  std::vector<std::vector<double>> x;  ///< rows
  std::vector<double> y;
  bool intercept = true, standardize = true;

  struct Solution {
    std::vector<double> weights;  ///< on the scale of the data
    double intercept = 0, objective = 0;
  };

  std::size_t rows() const { return x.size(); }
  std::size_t columns() const { return x[0].size(); }

  double mean(std::size_t j) const {
    double sum = 0;
    for (const auto& row : x) sum += row[j];
    return sum / static_cast<double>(rows());
  }
  /// Standard deviation, or 1 where nothing is scaled.
  double scale(std::size_t j) const {
    if (!standardize) return 1;
    double sum = 0;
    for (const auto& row : x) sum += (row[j] - mean(j)) * (row[j] - mean(j));
    return std::sqrt(sum / static_cast<double>(rows()));
  }
  std::vector<double> standardised(std::size_t j) const {
    const double m = intercept ? mean(j) : 0, s = scale(j);
    std::vector<double> column;
    for (const auto& row : x) column.push_back(s > 0 ? (row[j] - m) / s : 0.0);
    return column;
  }
  double response_mean() const {
    double sum = 0;
    for (const double v : y) sum += v;
    return intercept ? sum / static_cast<double>(rows()) : 0.0;
  }

  double objective(const std::vector<double>& weights, double b, double lambda, double ratio) const {
    const auto n = static_cast<double>(rows());
    double sum = 0, penalty = 0;
    for (std::size_t i = 0; i < rows(); ++i) {
      double r = y[i] - b;
      for (std::size_t j = 0; j < columns(); ++j) r -= x[i][j] * weights[j];
      sum += r * r;
    }
    for (std::size_t j = 0; j < columns(); ++j) {
      const double c = weights[j] * scale(j);
      penalty += ratio * std::abs(c) + 0.5 * (1 - ratio) * c * c;
    }
    return sum / (2 * n) + lambda * penalty;
  }

  double largest_lambda() const {
    double largest = 0;
    for (std::size_t j = 0; j < columns(); ++j) {
      const std::vector<double> column = standardised(j);
      double sum = 0;
      for (std::size_t i = 0; i < rows(); ++i) sum += column[i] * (y[i] - response_mean());
      largest = std::max(largest, std::abs(sum) / static_cast<double>(rows()));
    }
    return largest;
  }

  /// Mean of log(1 + exp(−y m)), y = −1 or 1, and the penalty.
  double class_objective(const std::vector<double>& weights, double b, double lambda, double ratio) const {
    double loss = 0, penalty = 0;
    for (std::size_t i = 0; i < rows(); ++i) {
      double m = b;
      for (std::size_t j = 0; j < columns(); ++j) m += x[i][j] * weights[j];
      loss += std::log1p(std::exp(-y[i] * m)) / static_cast<double>(rows());
    }
    for (std::size_t j = 0; j < columns(); ++j) {
      const double c = weights[j] * scale(j);
      penalty += ratio * std::abs(c) + 0.5 * (1 - ratio) * c * c;
    }
    return loss + lambda * penalty;
  }

  /// Classes −1 and 1: every coordinate goes to the minimum of a parabola that lies above the objective, for the second
  /// derivative of a row's loss is 1/4 at most.
  Solution solve_classes(double lambda, double ratio = 1) const {
    const auto n = static_cast<double>(rows());
    std::vector<std::vector<double>> z;
    for (std::size_t j = 0; j < columns(); ++j) z.push_back(standardised(j));
    if (intercept) z.emplace_back(rows(), 1.0);
    std::vector<double> c(z.size(), 0.0), m(rows(), 0.0);
    for (int sweep = 0; sweep < 100000; ++sweep) {
      double moved = 0;
      for (std::size_t j = 0; j < z.size(); ++j) {
        double slope = 0, square = 0;
        for (std::size_t i = 0; i < rows(); ++i) {
          slope += z[j][i] * y[i] / (1 + std::exp(y[i] * m[i])) / n;
          square += z[j][i] * z[j][i] / n / 4;
        }
        if (square == 0) continue;
        const bool is_free = j == columns();
        const double wanted = slope + square * c[j];
        const double over = std::max(std::abs(wanted) - (is_free ? 0 : lambda * ratio), 0.0);
        const double to = std::copysign(over, wanted) / (square + (is_free ? 0 : lambda * (1 - ratio)));
        for (std::size_t i = 0; i < rows(); ++i) m[i] += z[j][i] * (to - c[j]);
        moved = std::max(moved, std::abs(to - c[j]));
        c[j] = to;
      }
      if (moved < 1e-12) break;
    }
    Solution out;
    out.intercept = intercept ? c.back() : 0;
    for (std::size_t j = 0; j < columns(); ++j) {
      out.weights.push_back(scale(j) > 0 ? c[j] / scale(j) : 0.0);
      if (intercept) out.intercept -= out.weights[j] * mean(j);
    }
    out.objective = class_objective(out.weights, out.intercept, lambda, ratio);
    return out;
  }

  Solution solve(double lambda, double ratio = 1) const {
    const auto n = static_cast<double>(rows());
    std::vector<std::vector<double>> z;
    for (std::size_t j = 0; j < columns(); ++j) z.push_back(standardised(j));
    std::vector<double> c(columns(), 0.0), r(y);
    for (double& v : r) v -= response_mean();
    for (int sweep = 0; sweep < 100000; ++sweep) {
      double moved = 0;
      for (std::size_t j = 0; j < columns(); ++j) {
        double product = 0, square = 0;
        for (std::size_t i = 0; i < rows(); ++i) {
          product += z[j][i] * r[i];
          square += z[j][i] * z[j][i];
        }
        if (square == 0) continue;
        const double free = product / n + square / n * c[j];
        const double over = std::max(std::abs(free) - lambda * ratio, 0.0);
        const double to = std::copysign(over, free) / (square / n + lambda * (1 - ratio));
        for (std::size_t i = 0; i < rows(); ++i) r[i] -= z[j][i] * (to - c[j]);
        moved = std::max(moved, std::abs(to - c[j]));
        c[j] = to;
      }
      if (moved < 1e-13) break;
    }
    Solution out;
    out.intercept = response_mean();
    for (std::size_t j = 0; j < columns(); ++j) {
      out.weights.push_back(scale(j) > 0 ? c[j] / scale(j) : 0.0);
      if (intercept) out.intercept -= out.weights[j] * mean(j);
    }
    out.objective = objective(out.weights, out.intercept, lambda, ratio);
    return out;
  }
};

}  // namespace orrery::lasso
