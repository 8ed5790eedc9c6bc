#include "algorithms/lda_alias.h"

#include <algorithm>

#include "engine/assert.h"

namespace orrery::lda {

void AliasTable::build(std::span<const float> weights) {
  const std::size_t n = weights.size();
  double sum = 0;
  for (const float weight : weights) sum += double{weight};
  ORRERY_CHECK(sum > 0);
  const double scale = static_cast<double>(n) * static_cast<double>(kColumn) / sum;
  shares_.resize(n);
  std::uint64_t given = 0;
  for (std::size_t i = 0; i < n; ++i) {
    shares_[i] = static_cast<std::uint64_t>(double{weights[i]} * scale);
    given += shares_[i];
  }
  // Modular, so it also takes back what rounding gave too much.
  shares_[static_cast<std::size_t>(std::max_element(weights.begin(), weights.end()) - weights.begin())] +=
      n * kColumn - given;
  columns_.resize(n);
  small_.clear();
  large_.clear();
  for (std::uint32_t i = 0; i < n; ++i) (shares_[i] < kColumn ? small_ : large_).push_back(i);
  while (!small_.empty()) {
    const std::uint32_t low = small_.back(), high = large_.back();
    small_.pop_back();
    columns_[low] = {static_cast<std::uint32_t>(shares_[low]), high};
    shares_[high] -= kColumn - shares_[low];
    if (shares_[high] >= kColumn) continue;
    large_.pop_back();
    small_.push_back(high);
  }
  for (const std::uint32_t full : large_) columns_[full] = {static_cast<std::uint32_t>(kColumn), full};
}

std::vector<std::uint64_t> AliasTable::cases() const {
  std::vector<std::uint64_t> cases(columns_.size(), 0);
  for (std::uint32_t i = 0; i < columns_.size(); ++i) {
    cases[i] += columns_[i].own;
    cases[columns_[i].other] += kColumn - columns_[i].own;
  }
  return cases;
}

}  // namespace orrery::lda
