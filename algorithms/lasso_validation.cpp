#include "algorithms/lasso_validation.h"

#include <algorithm>
#include <cmath>

#include "engine/random.h"

namespace orrery::lasso {

std::vector<std::uint32_t> deal_folds(std::uint64_t rows, std::uint32_t folds, std::uint64_t seed) {
  std::vector<std::uint32_t> fold_of(rows);
  for (std::uint64_t r = 0; r < rows; ++r) fold_of[r] = static_cast<std::uint32_t>(r % folds);
  Random(seed, Purpose::data_split).shuffle(std::span<std::uint32_t>{fold_of}, 0, 0);
  return fold_of;
}

void apply_rules(CvTable& table) {
  const std::vector<CvTable::Point>& points = table.points;
  const auto best = std::min_element(
      points.begin(), points.end(), [](const CvTable::Point& a, const CvTable::Point& b) { return a.error < b.error; });
  const double most = best->error + best->standard_error;
  const auto first =
      std::find_if(points.begin(), points.end(), [&](const CvTable::Point& p) { return p.error <= most; });
  table.least = static_cast<std::size_t>(best - points.begin());
  table.one_se = static_cast<std::size_t>(first - points.begin());
}

CvTable summarise(std::span<const std::vector<double>> errors, std::span<const double> weights) {
  double rows = 0;
  for (const double weight : weights) rows += weight;
  CvTable table;
  for (std::size_t k = 0; k < errors[0].size(); ++k) {
    CvTable::Point point;
    for (std::size_t f = 0; f < errors.size(); ++f) point.error += weights[f] / rows * errors[f][k];
    double spread = 0;
    for (std::size_t f = 0; f < errors.size(); ++f) {
      spread += weights[f] / rows * (errors[f][k] - point.error) * (errors[f][k] - point.error);
    }
    point.standard_error = std::sqrt(spread / static_cast<double>(errors.size() - 1));
    table.points.push_back(point);
  }
  apply_rules(table);
  return table;
}

}  // namespace orrery::lasso
