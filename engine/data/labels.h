// What the labels of a regression or classification data set look like. cli.md: labels −1/1, 0/1 and 1..K are
// recognised and recorded.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace orrery {

enum class LabelKind { real, plus_minus_one, zero_one, one_to_k };

struct Labels {
  LabelKind kind = LabelKind::real;
  std::uint32_t classes = 0;  ///< 0 for real labels

  /// "-1/1", "0/1", "1..7" or "real".
  std::string describe() const;
};

/// Recognises labels: exactly the values −1 and 1; exactly 0 and 1; all the integers 1 to K with 2 ≤ K ≤ 10000; else
/// real. One value alone (all 1) counts as the first kind that it fits. Cost: O(labels).
Labels recognise_labels(std::span<const double> labels);

}  // namespace orrery
