#include "engine/data/draws.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/assert.h"
#include "engine/data/portable_math.h"

namespace orrery {

AliasTable::AliasTable(std::span<const double> weights) : accept_(weights.size()), alias_(weights.size()) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  ORRERY_CHECK(total > 0);
  std::vector<std::uint32_t> small, large;
  for (std::uint32_t i = 0; i < weights.size(); ++i) {
    accept_[i] = weights[i] * static_cast<double>(weights.size()) / total;
    alias_[i] = i;
    (accept_[i] < 1 ? small : large).push_back(i);
  }
  while (!small.empty() && !large.empty()) {
    const std::uint32_t poor = small.back(), rich = large.back();
    small.pop_back();
    alias_[poor] = rich;
    accept_[rich] -= 1 - accept_[poor];
    if (accept_[rich] < 1) {
      large.pop_back();
      small.push_back(rich);
    }
  }
  for (const std::uint32_t i : small) accept_[i] = 1;  // rounding left them
  for (const std::uint32_t i : large) accept_[i] = 1;
}

std::vector<double> zipf_weights(std::size_t count, double exponent) {
  std::vector<double> weights(count);
  for (std::size_t i = 0; i < count; ++i) {
    weights[i] = portable_exp(-exponent * portable_log(static_cast<double>(i + 1)));
  }
  return weights;
}

double draw_gamma(double shape, RandomStream& random) {
  if (shape < 1) {
    const double boost = portable_exp(portable_log(1 - random.uniform()) / shape);
    return draw_gamma(shape + 1, random) * boost;
  }
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  while (true) {
    const double x = random.normal();
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    const double u = 1 - random.uniform();  // in (0, 1]
    if (portable_log(u) < 0.5 * x * x + d - d * v + d * portable_log(v)) return d * v;
  }
}

std::vector<double> draw_dirichlet(std::span<const double> parameters, RandomStream& random) {
  std::vector<double> parts;
  double total = 0;
  for (const double parameter : parameters) total += parts.emplace_back(draw_gamma(parameter, random));
  if (total == 0) {  // tiny parameters: every part underflowed; the limit is one whole part
    parts[static_cast<std::size_t>(random.below(parts.size()))] = total = 1;
  }
  for (double& part : parts) part /= total;
  return parts;
}

std::vector<double> draw_dirichlet(std::size_t size, double alpha, RandomStream& random) {
  return draw_dirichlet(std::vector<double>(size, alpha), random);
}

std::uint64_t draw_poisson(double mean, RandomStream& random) {
  constexpr double kStep = 500;
  std::uint64_t total = 0;
  for (double left = mean; left > 0; left -= kStep) {
    const double limit = portable_exp(-std::min(left, kStep));
    double product = 1 - random.uniform();
    while (product > limit) {
      ++total;
      product *= 1 - random.uniform();
    }
  }
  return total;
}

}  // namespace orrery
