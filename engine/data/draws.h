// What the generators draw beyond the uniform and normal numbers of engine/random.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/random.h"

namespace orrery {

/// Draws from a fixed discrete distribution in constant time. Method: A. J. Walker's aliases, in the form of M. D.
/// Vose, "A linear algorithm for generating random numbers with a given distribution" (1991). 12 bytes an outcome.
class AliasTable {
 public:
  AliasTable() = default;
  /// Weights are at least 0 and not all 0.
  explicit AliasTable(std::span<const double> weights);
  std::uint32_t draw(RandomStream& random) const {
    const auto i = static_cast<std::uint32_t>(random.below(accept_.size()));
    return random.uniform() < accept_[i] ? i : alias_[i];
  }
  std::size_t size() const { return accept_.size(); }

 private:
  std::vector<double> accept_;
  std::vector<std::uint32_t> alias_;
};

/// Weights (rank + 1)^−exponent, rank = 0 … count − 1.
std::vector<double> zipf_weights(std::size_t count, double exponent);

/// A gamma variate of scale 1. Method: G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables"
/// (2000); shapes below 1 by the boost of the same paper.
double draw_gamma(double shape, RandomStream& random);

/// A Dirichlet variate with these parameters, or with all of them `alpha`.
std::vector<double> draw_dirichlet(std::span<const double> parameters, RandomStream& random);
std::vector<double> draw_dirichlet(std::size_t size, double alpha, RandomStream& random);

/// A Poisson variate, by inversion in steps of at most 500. Cost: O(mean).
std::uint64_t draw_poisson(double mean, RandomStream& random);

}  // namespace orrery
