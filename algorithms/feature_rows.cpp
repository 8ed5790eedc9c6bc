#include "algorithms/feature_rows.h"

#include <algorithm>

namespace orrery {
namespace {

constexpr std::uint64_t kRowsEach = 4096;

}  // namespace

FeatureRows::FeatureRows(const SparseRows& rows)
    : rows_(rows), only_ones_(std::all_of(rows.values.begin(), rows.values.end(), [](float x) { return x == 1.0F; })) {}

RowsView FeatureRows::view(std::uint64_t first, std::uint64_t last) const {
  return {rows_.starts.data() + first, rows_.columns.data(), only_ones_ ? nullptr : rows_.values.data(),
          static_cast<std::size_t>(last - first)};
}

std::vector<std::uint64_t> FeatureRows::deal(WorkerId workers, std::uint64_t row_cost) const {
  const auto cost = [&](std::uint64_t row) { return rows_.starts[row] + row_cost * row; };
  std::vector<std::uint64_t> first;
  std::uint64_t row = 0;
  for (std::uint64_t w = 0; w < workers; ++w) {
    while (row < rows() && cost(row) * workers < cost(rows()) * w) ++row;
    first.push_back(row);
  }
  first.push_back(rows());
  return first;
}

std::uint64_t row_pieces(std::uint64_t rows) { return (rows + kRowsEach - 1) / kRowsEach; }

void for_row_pieces(std::uint64_t rows, const ParallelFor& parallel,
                    const std::function<void(std::size_t, std::uint64_t, std::uint64_t)>& body) {
  parallel(row_pieces(rows), [&](std::size_t piece) {
    const std::uint64_t first = piece * kRowsEach;
    body(piece, first, std::min(rows, first + kRowsEach));
  });
}

}  // namespace orrery
