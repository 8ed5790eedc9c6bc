// What cross-validation found, and the rules by which it chooses a penalty: lambda_min has the least mean error;
// lambda_1se is the largest penalty whose error is within one standard error of that, the simplest model that cannot be
// told from the best (Breiman, Friedman, Olshen, Stone, Classification and Regression Trees, 1984, section 3.4.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace orrery::lasso {

/// The fold of every row: as many rows in each, but for one, and drawn from the seed. Requires 2 <= folds <= rows.
std::vector<std::uint32_t> deal_folds(std::uint64_t rows, std::uint32_t folds, std::uint64_t seed);

/// By penalty, largest first.
struct CvTable {
  struct Point {
    double error = 0, standard_error = 0;
  };
  std::vector<Point> points;
  std::size_t least = 0, one_se = 0;  ///< where lambda_min and lambda_1se stand
};
/// Sets `least` and `one_se` from the points, of which there is one at least.
void apply_rules(CvTable& table);
/// errors[fold][penalty]: mean over the fold's rows; weights[fold]: the number of them. The standard error is that of
/// glmnet: of the folds' means, weighted by their rows.
CvTable summarise(std::span<const std::vector<double>> errors, std::span<const double> weights);

}  // namespace orrery::lasso
