#include "algorithms/certificate.h"

#include <algorithm>
#include <cmath>

#include "engine/params.h"

namespace orrery {

double squared_subgradient(double weight, double slope, newton::Penalty penalty) {
  double g = slope + penalty.l2 * weight;
  if (weight != 0) {
    g += weight > 0 ? penalty.l1 : -penalty.l1;
  } else {
    g = std::max(std::abs(g) - penalty.l1, 0.0);
  }
  return g * g;
}

double penalty_at(double weight, newton::Penalty penalty) {
  return penalty.l1 * std::abs(weight) + 0.5 * penalty.l2 * weight * weight;
}

std::vector<Check> compare(const Certificate& reached, const Certificate& now) {
  constexpr double kSame = 1e-9;
  std::vector<Check> checks;
  checks.push_back({"objective is the one that was reached", agree(now.objective, reached.objective, kSame, 0),
                    expected_and_found(reached.objective, now.objective)});
  checks.push_back({"least subgradient is the one that was reached",
                    agree(now.gradient, reached.gradient, kSame, kSame),
                    "norm: " + expected_and_found(reached.gradient, now.gradient)});
  checks.push_back({"distance from the minimum is at most the one that was reached",
                    agree(now.gap, reached.gap, kSame, kSame * std::abs(now.objective)),
                    std::isnan(now.gap) ? "no bound without a penalty"
                                        : "duality gap " + shortest_text(now.gap) + ", " +
                                              shortest_text(now.relative_gap()) + " of the objective"});
  return checks;
}

bool agree(double a, double b, double relative, double absolute) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b)) + absolute;
}

std::string expected_and_found(double expected, double got) {
  return "expected " + shortest_text(expected) + ", found " + shortest_text(got);
}

}  // namespace orrery
