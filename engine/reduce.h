// Sums in one fixed order. Design section 5: every sum over workers or chunks of data follows one binary tree over
// their ids, on one thread too, so that no number of threads, domains or ranks can change a bit.
#pragma once

#include <cstddef>
#include <span>

namespace orrery {

/// Combines values[0..n) along the tree in which node j of a level is combine(2j, 2j+1) of the level below; an odd last
/// one moves up as it is. Leaves values in an unspecified state. An aligned power-of-two range of ids is a complete
/// subtree: who holds such a range may combine it alone and hand in one value. @return T{} when there are none.
template <class T, class Combine>
T tree_combine(std::span<T> values, Combine&& combine) {
  if (values.empty()) return T{};
  for (std::size_t n = values.size(); n > 1; n = (n + 1) / 2) {
    for (std::size_t j = 0; j < n / 2; ++j) values[j] = combine(values[2 * j], values[2 * j + 1]);
    if (n % 2 == 1) values[n / 2] = values[n - 1];
  }
  return values[0];
}

/// The sum along that tree.
template <class T>
T tree_sum(std::span<T> values) {
  return tree_combine(values, [](const T& a, const T& b) { return a + b; });
}

}  // namespace orrery
