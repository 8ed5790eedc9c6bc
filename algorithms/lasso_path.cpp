#include "algorithms/lasso_path.h"

#include <cmath>

#include "engine/data/portable_math.h"

namespace orrery::lasso {
namespace {

constexpr double kStep = 0.62;  // between two penalties on the way to one

/// base to the power of share, the same on every processor.
double power(double base, double share) { return share == 0 ? 1.0 : portable_exp(share * portable_log(base)); }

std::vector<Stage> approach(double lambda, double largest) {
  std::vector<Stage> stages;
  if (lambda > 0) {
    const int steps = static_cast<int>(std::floor(portable_log(lambda / largest) / portable_log(kStep)));
    for (int k = 1; k <= steps; ++k) {
      stages.push_back({largest * power(lambda / largest, static_cast<double>(k) / (steps + 1)), false});
    }
  }
  stages.push_back({lambda, true});
  return stages;
}

}  // namespace

std::vector<Stage> stages_of(const PathRequest& request, double largest, bool is_long_way) {
  if (request.lambda) {
    return is_long_way && *request.lambda < largest ? approach(*request.lambda, largest)
                                                    : std::vector<Stage>{{*request.lambda, true}};
  }
  std::vector<Stage> stages;
  for (const double lambda : request.lambdas) stages.push_back({lambda, true});
  if (!stages.empty()) return stages;
  for (std::int64_t k = 0; k < request.points; ++k) {
    const double share = request.points == 1 ? 0.0 : static_cast<double>(k) / static_cast<double>(request.points - 1);
    stages.push_back({largest * power(request.smallest, share), true});
    if (largest == 0) break;  // all penalties are the same
  }
  return stages;
}

}  // namespace orrery::lasso
