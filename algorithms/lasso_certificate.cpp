#include "algorithms/lasso_certificate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "algorithms/lasso_logistic.h"
#include "engine/data/portable_math.h"
#include "engine/reduce.h"

namespace orrery::lasso {
namespace {

constexpr std::size_t kColumnsEach = 256;

struct Part {
  GapSums sums;
  double subgradient = 0;  ///< squared
};

Part add(const Part& a, const Part& b) {
  Part both = a;
  both.sums.product += b.sums.product;
  both.sums.absolute += b.sums.absolute;
  both.sums.norm += b.sums.norm;
  both.sums.largest = std::max(a.sums.largest, b.sums.largest);
  both.sums.beyond += b.sums.beyond;
  both.subgradient += b.subgradient;
  return both;
}

}  // namespace

Response::Response(std::span<const double> labels, bool with_intercept)
    : values(labels.begin(), labels.end()), has_intercept(with_intercept) {
  const auto n = static_cast<double>(labels.size());
  if (has_intercept) {
    for (const double y : labels) mean += y / n;
    for (double& y : values) y -= mean;
    const bool is_constant = std::all_of(labels.begin(), labels.end(), [&](double y) { return y == labels[0]; });
    if (is_constant) std::fill(values.begin(), values.end(), 0.0);
  }
  double sum = 0;
  for (const double y : values) sum += y * y;
  square = sum / n;
}

Response::Response(std::vector<float> classes, bool with_intercept)
    : Response(std::vector<double>(classes.begin(), classes.end()), with_intercept) {
  signs = std::move(classes);
  for (double& y : values) y *= 0.5;
  mean = 0.5 * (1 + mean);
  square *= 0.25;
}

double empty_objective(const Response& response) {
  if (response.signs.empty()) return 0.5 * response.square;
  return response.has_intercept ? coin_entropy(response.mean) : portable_log(2.0);
}

namespace {

/// The gradients of all columns at `residual`, of which each node finds its own.
std::vector<double> gradients_at(const Residual& residual, const Design& design, const ParallelFor& parallel,
                                 const Collective& nodes) {
  const std::size_t begin = design.first_here(), end = design.last_here();
  std::vector<double> here(end - begin, 0.0);
  parallel((here.size() + kColumnsEach - 1) / kColumnsEach, [&](std::size_t part) {
    const std::size_t last = std::min(end, begin + (part + 1) * kColumnsEach);
    for (std::size_t column = begin + part * kColumnsEach; column < last; ++column) {
      const auto j = static_cast<std::uint32_t>(column);
      if (design.is_usable(j)) here[j - begin] = design.gradient(j, residual);
    }
  });
  return nodes.joined(std::move(here));
}

/// The sums that visit(part, column) makes of all usable columns, along the fixed tree.
template <class Visit>
Part sum_over_columns(const Design& design, const ParallelFor& parallel, Visit&& visit) {
  std::vector<Part> parts((design.columns() + kColumnsEach - 1) / kColumnsEach);
  parallel(parts.size(), [&](std::size_t part) {
    const std::size_t first = part * kColumnsEach, last = std::min<std::size_t>(design.columns(), first + kColumnsEach);
    for (std::size_t column = first; column < last; ++column) {
      const auto j = static_cast<std::uint32_t>(column);
      if (design.is_usable(j)) visit(parts[part], j);
    }
  });
  return tree_combine(std::span{parts}, add);
}

Certificate certify_squares(const Design& design, const Response& response, std::span<const double> coefficients,
                            Penalty penalty, const ParallelFor& parallel, const Collective& nodes) {
  Residual residual;
  design.rebuild(response.values, coefficients, residual);
  const std::vector<double> gradients = gradients_at(residual, design, parallel, nodes);
  Part all = sum_over_columns(design, parallel, [&](Part& part, std::uint32_t j) {
    part.sums.add(coefficients[j], gradients[j], penalty);
    part.subgradient += squared_subgradient(coefficients[j], -gradients[j], penalty);
  });
  all.sums.square = design.mean_square(residual);
  Certificate out;
  out.objective = primal_value(all.sums, penalty);
  out.gradient = std::sqrt(all.subgradient);
  const bool is_penalised = penalty.l1 > 0 || penalty.l2 > 0;
  out.gap = is_penalised ? out.objective - dual_value(all.sums, penalty) : std::numeric_limits<double>::quiet_NaN();
  return out;
}

/// What rows of one class have of wrong probability, as a residual: 0 for rows of the other one.
struct ClassPull {
  Residual residual;
  double scale = 1;  ///< that makes it a point of the dual, beside an intercept
};

/// Wrong probabilities by class, negative first. The class that has more of them is scaled down to the other, for the
/// dual asks for Σ b_i y_i = 0 beside an intercept.
std::array<ClassPull, 2> pulls_of(std::span<const double> margins, const Response& response) {
  std::array<ClassPull, 2> pulls;
  for (ClassPull& pull : pulls) pull.residual.raw.assign(margins.size(), 0.0);
  for (std::size_t i = 0; i < margins.size(); ++i) {
    Residual& residual = pulls[response.signs[i] > 0 ? 1 : 0].residual;
    residual.raw[i] = logistic_row(margins[i], double{response.signs[i]}).wrong;
    residual.sum += residual.raw[i];
  }
  if (!response.has_intercept) return pulls;
  const double least = std::min(pulls[0].residual.sum, pulls[1].residual.sum);
  for (ClassPull& pull : pulls) pull.scale = pull.residual.sum > 0 ? least / pull.residual.sum : 0.0;
  return pulls;
}

Certificate certify_classes(const Design& design, const Response& response, std::span<const double> coefficients,
                            double intercept, Penalty penalty, const ParallelFor& parallel, const Collective& nodes) {
  Residual fit{std::vector<double>(design.rows(), intercept), 0};
  for (std::uint32_t j = 0; j < design.columns(); ++j) {
    if (coefficients[j] == 0) continue;
    design.subtract(j, -coefficients[j], fit);
    const double constant = coefficients[j] * design.mean(j) * design.inverse_scale(j);
    for (double& margin : fit.raw) margin -= constant;
  }
  const std::array<ClassPull, 2> pulls = pulls_of(fit.raw, response);
  const std::vector<double> down = gradients_at(pulls[0].residual, design, parallel, nodes);
  const std::vector<double> up = gradients_at(pulls[1].residual, design, parallel, nodes);
  const Part all = sum_over_columns(design, parallel, [&](Part& part, std::uint32_t j) {
    const double pull = pulls[1].scale * up[j] - pulls[0].scale * down[j];
    part.sums.add_coefficient(coefficients[j], pull);
    part.sums.add_inactive(pull, pull, penalty);
    part.subgradient += squared_subgradient(coefficients[j], down[j] - up[j], penalty);
  });
  const double per_row = 1.0 / static_cast<double>(design.rows());
  const double of_intercept = response.has_intercept ? per_row * (pulls[0].residual.sum - pulls[1].residual.sum) : 0.0;
  const auto dual_at = [&](double t) {
    double sum = 0;
    for (const ClassPull& pull : pulls) {
      for (const double b : pull.residual.raw) sum += coin_entropy(t * pull.scale * b);
    }
    return sum * per_row;
  };
  Certificate out;
  out.objective = mean_log_loss(fit.raw, response.signs) + penalised(all.sums, penalty);
  out.gradient = std::sqrt(all.subgradient + of_intercept * of_intercept);
  out.gap = std::numeric_limits<double>::quiet_NaN();
  if (!(penalty.l1 > 0 || penalty.l2 > 0)) return out;
  double dual = dual_at(all.sums.largest > penalty.l1 ? penalty.l1 / all.sums.largest : 1.0);
  if (penalty.l2 > 0) dual = std::max(dual, dual_at(1) - 0.5 * all.sums.beyond / penalty.l2);
  out.gap = out.objective - dual;
  return out;
}

}  // namespace

Certificate certify(const Design& design, const Response& response, std::span<const double> coefficients,
                    double intercept, Penalty penalty, const ParallelFor& parallel, const Collective& nodes) {
  return response.signs.empty() ? certify_squares(design, response, coefficients, penalty, parallel, nodes)
                                : certify_classes(design, response, coefficients, intercept, penalty, parallel, nodes);
}

}  // namespace orrery::lasso
