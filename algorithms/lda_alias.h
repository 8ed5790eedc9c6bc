// Drawing from fixed weights in constant time. Source: A. Walker (1977); the partition is in integers, so what a table
// does can be said exactly.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/random.h"

namespace orrery::lda {

class AliasTable {
 public:
  /// Cases of one column. All of them are equally likely.
  static constexpr std::uint64_t kColumn = std::uint64_t{1} << 31;

  /// weights >= 0 with a positive sum. Each gets its share of size · kColumn cases, rounded down; what is left over is
  /// given to the largest, so that the cases add up exactly. Cost: O(n).
  void build(std::span<const float> weights);
  std::size_t size() const noexcept { return columns_.size(); }
  /// An index, with probability cases(index) / (size · kColumn).
  std::uint32_t draw(RandomStream& draws) const {
    const auto column = static_cast<std::uint32_t>(draws.below(columns_.size()));
    return (draws.next() >> 1) < columns_[column].own ? column : columns_[column].other;
  }
  /// How many cases lead to each index, counted in the finished table.
  std::vector<std::uint64_t> cases() const;

 private:
  struct Column {
    std::uint32_t own;  ///< cases that give the column's own index, the others give `other`
    std::uint32_t other;
  };
  std::vector<Column> columns_;
  std::vector<std::uint64_t> shares_;  ///< scratch
  std::vector<std::uint32_t> small_, large_;
};

}  // namespace orrery::lda
