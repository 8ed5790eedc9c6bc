// What a pass over rows adds up. A header of its own, free of code, because kernels are compiled with it for more than
// the baseline processor.
#pragma once

#include <limits>

namespace orrery::newton {

/// First derivative of the sum of losses by a coefficient, and the second.
struct Slope {
  double gradient = 0, curvature = 0;
};

/// What a pass over rows adds up beside the slopes.
struct RowSums {
  double loss = 0;
  double curvature = 0;                                           ///< second derivatives by the scores of a row
  double least_margin = std::numeric_limits<double>::infinity();  ///< > 0: every row is classified correctly
};

}  // namespace orrery::newton
