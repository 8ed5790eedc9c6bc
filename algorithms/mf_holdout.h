// Held-out ratings, grouped as the grid is, so that they are measured in parallel and summed in a fixed order (design,
// section 9). Of several nodes each has those of its own stripes, and the last those of unseen users. Ratings of users
// or items without a training rating are predicted from what is known: the mean and the bias of the side that is known.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/mf_kernels.h"
#include "algorithms/mf_layout.h"
#include "algorithms/mf_state.h"
#include "engine/collective.h"
#include "engine/data/parallel_for.h"
#include "engine/data/rating_store.h"

namespace orrery::mf {

/// The transformation between ratings as people give them and the values that kernels see: value = (rating - mean) /
/// scale.
struct Scaling {
  double mean = 0;
  double scale = 1;
  float lowest = 0, highest = 0;  ///< of the training ratings
  bool clip = false;              ///< predictions are cut to [lowest, highest]

  float value(double rating) const { return static_cast<float>((rating - mean) / scale); }
  double rating(double value) const;
};

class Holdout {
 public:
  Holdout() = default;
  /// Takes ratings whose user and item are external ids of the axes, or IdMap::kUnseen. Consumes them.
  Holdout(RatingStore&& ratings, const CellGrid& grid, const Scaling& scaling);

  /// Of all nodes.
  std::uint64_t size() const noexcept { return count_; }
  /// Σ e² and Σ |e| in rating units. Collective. Cost: one inner product for each rating.
  ErrorSums measure(const MfState& state, const Kernels& kernels, const ParallelFor& parallel,
                    const Collective& nodes = {}) const;

 private:
  struct Group {
    std::vector<std::uint32_t> rows, columns;  ///< local to stripe and block
    std::vector<float> values;
  };
  ErrorSums measure_group(std::size_t g, const MfState& state, const Kernels& kernels) const;

  // Group (stripe, block) of the stripes that are here; one more stripe and block stand for "unseen".
  std::size_t stripes_ = 0, blocks_ = 0, first_group_ = 0;
  std::vector<Group> groups_;
  std::uint64_t count_ = 0;
  Scaling scaling_;
};

}  // namespace orrery::mf
