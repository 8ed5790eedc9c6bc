#include "algorithms/lasso_columns.h"

#include <algorithm>
#include <utility>

#include "engine/wire.h"

namespace orrery::lasso {

ColumnLoans::ColumnLoans(Design& design) : design_(design), is_lent_(design.columns(), 0) {}

bool ColumnLoans::want(std::span<const std::uint32_t> columns) {
  std::vector<std::uint32_t> wanted(columns.begin(), columns.end());
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  std::uint64_t entries = 0;
  for (const std::uint32_t j : wanted) entries += design_.length(j);
  if (entries_ > 2 * entries) forget_all_but(wanted);
  missing_.clear();
  for (const std::uint32_t j : wanted) {
    if (is_lent_[j] != 0) continue;
    missing_.push_back(j);
    lent_.push_back(j);
    is_lent_[j] = 1;
    entries_ += design_.length(j);
  }
  return !missing_.empty();
}

void ColumnLoans::forget_all_but(std::span<const std::uint32_t> columns) {
  std::vector<std::uint32_t> kept;
  for (const std::uint32_t j : lent_) {
    if (std::binary_search(columns.begin(), columns.end(), j)) {
      kept.push_back(j);
      continue;
    }
    is_lent_[j] = 0;
    entries_ -= design_.length(j);
    if (!design_.is_here(j)) design_.take_back(j);
  }
  lent_ = std::move(kept);
}

Bytes ColumnLoans::pack() const {
  Bytes packed;
  for (const std::uint32_t j : missing_) {
    if (!design_.is_here(j)) continue;
    const ColumnView x = design_.view(j);
    put(packed, j);
    if (x.rows != nullptr) put_all(packed, std::span(x.rows, x.count));
    if (x.values != nullptr) put_all(packed, std::span(x.values, x.count));
  }
  return packed;
}

void ColumnLoans::take(std::span<const std::byte> packed) {
  WireReader in(packed);
  while (!in.empty()) {
    const auto j = in.take<std::uint32_t>();
    std::vector<std::uint32_t> rows(design_.is_dense() ? 0 : design_.length(j));
    std::vector<float> values(design_.is_all_ones() ? 0 : design_.length(j));
    in.take_all(std::span(rows));
    in.take_all(std::span(values));
    design_.lend(j, std::move(rows), std::move(values));
  }
}

void ColumnLoans::fetch(std::span<const std::uint32_t> columns, const Collective& nodes) {
  if (nodes.nodes() == 1 || !want(columns)) return;
  const std::vector<Bytes> packed = nodes.to_all(pack());
  for (NodeId node = 0; node < nodes.nodes(); ++node) {
    if (node != nodes.node()) take(packed[node]);
  }
}

}  // namespace orrery::lasso
