#include "algorithms/lasso_support.h"

#include <algorithm>

namespace orrery::lasso {

std::vector<std::uint32_t> cut_into_parts(std::span<const std::uint64_t> start) {
  constexpr std::uint64_t kWorkOfPart = 8192, kMostParts = 64;  // entries: ten microseconds, far above a hand-over
  const std::uint64_t items = start.size() - 1, work = start.back() - start.front();
  const std::uint64_t parts = std::clamp<std::uint64_t>(work / kWorkOfPart, 1, kMostParts);
  std::vector<std::uint32_t> first{0};
  for (std::uint64_t part = 1; part < parts; ++part) {
    const auto at = std::lower_bound(start.begin(), start.end(), start.front() + work * part / parts);
    first.push_back(std::max(first.back(), static_cast<std::uint32_t>(at - start.begin())));
  }
  first.push_back(static_cast<std::uint32_t>(items));
  return first;
}

void SupportColumns::lay_out(std::span<const std::uint32_t> columns) {
  columns_.assign(columns.begin(), columns.end());
  column_start_.assign(1, 0);
  for (const std::uint32_t j : columns_) column_start_.push_back(column_start_.back() + design_.length(j));
  first_column_ = cut_into_parts(column_start_);
  if (!design_.is_dense()) {
    number_rows();
    lay_out_rows();
    first_place_ = cut_into_parts(row_start_);
    return;
  }
  places_ = static_cast<std::size_t>(design_.rows());
  std::vector<std::uint64_t> start;
  for (std::size_t i = 0; i <= places_; ++i) start.push_back(i * columns_.size());
  first_place_ = cut_into_parts(start);
}

void SupportColumns::number_rows() {
  std::fill(place_of_row_.begin(), place_of_row_.end(), 0U);
  for (const std::uint32_t j : columns_) {
    const ColumnView x = design_.view(j);
    for (std::size_t i = 0; i < x.count; ++i) ++place_of_row_[x.rows[i]];
  }
  rows_.clear();
  row_start_.assign(1, 0);
  for (std::uint32_t row = 0; row < place_of_row_.size(); ++row) {
    const std::uint32_t entries = place_of_row_[row];
    if (entries == 0) continue;
    rows_.push_back(row);
    row_start_.push_back(row_start_.back() + entries);
    place_of_row_[row] = static_cast<std::uint32_t>(rows_.size());
  }
  places_ = rows_.size();
}

void SupportColumns::lay_out_rows() {
  place_.resize(column_start_.back());
  column_.resize(column_start_.back());
  const bool has_values = !design_.is_all_ones();
  value_.resize(has_values ? column_start_.back() : 0);
  std::vector<std::uint64_t> next(row_start_.begin(), row_start_.end() - 1);
  for (std::uint32_t k = 0; k < columns_.size(); ++k) {
    const ColumnView x = design_.view(columns_[k]);
    std::uint32_t* places = place_.data() + column_start_[k];
    for (std::size_t i = 0; i < x.count; ++i) {
      places[i] = place_of_row_[x.rows[i]] - 1;
      const std::uint64_t to = next[places[i]]++;
      column_[to] = k;
      if (has_values) value_[to] = x.values[i];
    }
  }
}

void SupportColumns::multiply(std::size_t part, std::span<const double> weights, std::span<double> out) const {
  const Kernels& kernels = design_.kernels();
  const std::size_t first = first_place_[part], last = first_place_[part + 1];
  if (design_.is_dense()) {
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(first), out.begin() + static_cast<std::ptrdiff_t>(last), 0.0);
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      if (weights[k] == 0) continue;
      kernels.add_row(design_.view(columns_[k]).values + first, weights[k], out.data() + first, last - first);
    }
    return;
  }
  for (std::size_t place = first; place < last; ++place) {
    const std::uint64_t begin = row_start_[place];
    const ColumnView row{column_.data() + begin, value_.empty() ? nullptr : value_.data() + begin,
                         static_cast<std::size_t>(row_start_[place + 1] - begin)};
    out[place] = kernels.dot(row, weights.data());
  }
}

double SupportColumns::dot(std::size_t k, std::span<const double> values) const {
  ColumnView x = design_.view(columns_[k]);
  if (!design_.is_dense()) x.rows = place_.data() + column_start_[k];
  return design_.kernels().dot(x, values.data());
}

}  // namespace orrery::lasso
