// What an update does to a row of a table: it is added; or it is a gradient, and the row takes an adaptive step that
// accounts for how late the gradient is.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace orrery {

struct UpdateRule {
  enum class Kind {
    add,
    /// x takes a step against the gradient, of a length that falls with the gradients seen so far; when gradients have
    /// overtaken this one, their steps are re-priced. McMahan and Streeter, "Delay-tolerant algorithms for asynchronous
    /// distributed online learning", NIPS 2014, algorithm 3 (AdaptiveRevision). Without delay it is AdaGrad. The values
    /// must be floating-point.
    adaptive_revision
  };
  Kind kind = Kind::add;
  double rate = 0;  ///< adaptive_revision: the length of a first step, > 0
};

/// The rule on one row of `width` values. Its state: the values, then for adaptive_revision as many each of the sum of
/// gradients, the sum of squares revised, and the highest that was. All start at 0.
template <class T>
class RowRule {
 public:
  /// `late`: updates may be overtaken by others, so each carries the sum of gradients that its author had seen.
  RowRule(const UpdateRule& rule, std::uint32_t width, bool late)
      : width_(width),
        is_adaptive_(rule.kind == UpdateRule::Kind::adaptive_revision),
        carries_seen_(is_adaptive_ && late),
        rate_(static_cast<T>(rule.rate)) {}

  std::uint32_t state_width() const noexcept { return is_adaptive_ ? 4 * width_ : width_; }
  /// Of an update: what is added, and what carries_seen() says.
  std::uint32_t update_width() const noexcept { return carries_seen_ ? 2 * width_ : width_; }
  bool is_adaptive() const noexcept { return is_adaptive_; }
  bool carries_seen() const noexcept { return carries_seen_; }
  /// The sum of gradients in the state.
  const T* gradients(const T* state) const noexcept { return state + width_; }

  /// An update of update_width() values meets the row.
  void apply(T* state, const T* update) const { apply(state, update, carries_seen_ ? update + width_ : nullptr); }
  /// What is added alone, not overtaken by anything; and one value of it.
  void apply_fresh(T* state, const T* added) const { apply(state, added, nullptr); }
  void apply_fresh(T* state, std::uint32_t column, T added) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (is_adaptive_) return step(state + column, added, state[width_ + column]);
    }
    state[column] += added;
  }

 private:
  void apply(T* state, const T* added, const T* seen) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (is_adaptive_) {
        for (std::uint32_t d = 0; d < width_; ++d) {
          step(state + d, added[d], seen == nullptr ? state[width_ + d] : seen[d]);
        }
        return;
      }
    }
    for (std::uint32_t d = 0; d < width_; ++d) state[d] += added[d];
  }

  void step(T* state, T gradient, T seen) const {
    T& value = state[0];
    T& gradients = state[width_];
    T& squares = state[2 * width_];
    T& most = state[3 * width_];
    constexpr T kFirst = 1;  // so that the first step is finite
    const T overtook = gradients - seen;
    const T length_before = rate_ / std::sqrt(most + kFirst);
    squares += gradient * gradient + 2 * gradient * overtook;
    most = std::max(most, squares);
    const T length = rate_ / std::sqrt(most + kFirst);
    value -= length * gradient + (length - length_before) * overtook;
    gradients += gradient;
  }

  std::uint32_t width_;
  bool is_adaptive_, carries_seen_;
  T rate_;
};

}  // namespace orrery
