#include "algorithms/lasso_certificate.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

Response::Response(std::span<const double> labels, bool has_intercept) : values(labels.begin(), labels.end()) {
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

Certificate certify(const Design& design, const Response& response, std::span<const double> coefficients,
                    Penalty penalty, const ParallelFor& parallel) {
  Residual residual;
  design.rebuild(response.values, coefficients, residual);
  std::vector<Part> parts((design.columns() + kColumnsEach - 1) / kColumnsEach);
  parallel(parts.size(), [&](std::size_t part) {
    const std::size_t first = part * kColumnsEach, last = std::min<std::size_t>(design.columns(), first + kColumnsEach);
    for (std::size_t column = first; column < last; ++column) {
      const auto j = static_cast<std::uint32_t>(column);
      if (!design.is_usable(j)) continue;
      const double gradient = design.gradient(j, residual);
      parts[part].sums.add(coefficients[j], gradient, penalty);
      parts[part].subgradient += squared_subgradient(coefficients[j], -gradient, penalty);
    }
  });
  Part all = tree_combine(std::span{parts}, add);
  all.sums.square = design.mean_square(residual);
  Certificate out;
  out.objective = primal_value(all.sums, penalty);
  out.gradient = std::sqrt(all.subgradient);
  const bool is_penalised = penalty.l1 > 0 || penalty.l2 > 0;
  out.gap = is_penalised ? out.objective - dual_value(all.sums, penalty) : std::numeric_limits<double>::quiet_NaN();
  return out;
}

}  // namespace orrery::lasso
