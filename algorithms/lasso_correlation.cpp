#include "algorithms/lasso_correlation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace orrery::lasso {
namespace {

/// Columns under way by row.
class SharedRowsFilter final : public DependenceFilter {
 public:
  SharedRowsFilter(const Design& design, const CoordinateModel& model, double most)
      : design_(design), model_(model), most_(most), newest_(design.rows(), kNone) {}

  void expect(std::span<const std::uint32_t> candidates) override;
  bool is_free(std::uint32_t candidate) override;
  void take(std::uint32_t coordinate) override;
  void keep(std::span<const std::uint32_t> under_way) override;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Entry {
    std::uint32_t row = 0, column = 0;  ///< column: its place in `columns_`
    float value = 0;
    std::uint32_t older = kNone;  ///< of the same row
  };
  /// What a correlation is made of beside the product of raw values.
  struct Column {
    std::uint32_t column;
    double mean, factor;  ///< factor: 1 / s_j over the root of the curvature
    double offset() const { return std::abs(mean) * factor; }
  };

  Column describe(std::uint32_t j) const {
    return {j, design_.mean(j), design_.inverse_scale(j) / std::sqrt(design_.curvature(j))};
  }
  bool is_far_from(const Column& candidate, std::size_t place, double product) const;

  const Design& design_;
  const CoordinateModel& model_;
  const double most_;
  std::vector<std::uint32_t> newest_;  ///< by row: its last entry
  std::vector<Entry> entries_;
  std::vector<Column> columns_;
  std::vector<double> products_;    ///< by place in `columns_`; 0 between calls
  std::vector<std::uint32_t> met_;  ///< places whose products are not 0
  double largest_offset_ = 0;
};

bool SharedRowsFilter::is_far_from(const Column& candidate, std::size_t place, double product) const {
  const Column& other = columns_[place];
  const double centred = product / static_cast<double>(design_.rows()) - candidate.mean * other.mean;
  return std::abs(centred) * candidate.factor * other.factor < most_;
}

// Where entries lie is known only when the first fetch has come, so there are two turns.
void SharedRowsFilter::expect(std::span<const std::uint32_t> candidates) {
  for (const std::uint32_t j : candidates) design_.fetch_description(j);
  for (const std::uint32_t j : candidates) design_.fetch_entries(j);
}

bool SharedRowsFilter::is_free(std::uint32_t j) {
  if (!design_.is_usable(j)) return true;
  const Column candidate = describe(j);
  if (candidate.offset() * largest_offset_ >= most_) {  // far means correlate without any row in common
    return std::all_of(columns_.begin(), columns_.end(),
                       [&](const Column& other) { return model_.dependence(j, other.column) < most_; });
  }
  const ColumnView x = design_.view(j);
  met_.clear();
  for (std::size_t i = 0; i < x.count; ++i) {
    for (std::uint32_t e = newest_[x.rows[i]]; e != kNone; e = entries_[e].older) {
      const Entry& entry = entries_[e];
      if (products_[entry.column] == 0) met_.push_back(entry.column);
      products_[entry.column] += double{entry.value} * (x.values == nullptr ? 1.0 : double{x.values[i]});
    }
  }
  bool is_free = true;
  for (const std::uint32_t place : met_) {
    is_free = is_free && is_far_from(candidate, place, products_[place]);
    products_[place] = 0;
  }
  return is_free;
}

void SharedRowsFilter::take(std::uint32_t j) {
  if (!design_.is_usable(j)) return;  // it depends on nobody
  const auto place = static_cast<std::uint32_t>(columns_.size());
  columns_.push_back(describe(j));
  products_.push_back(0);
  largest_offset_ = std::max(largest_offset_, columns_.back().offset());
  const ColumnView x = design_.view(j);
  const std::size_t first = entries_.size();
  entries_.resize(first + x.count);
  for (std::size_t i = 0; i < x.count; ++i) {
    std::uint32_t& newest = newest_[x.rows[i]];
    entries_[first + i] = {x.rows[i], place, x.values == nullptr ? 1.0F : x.values[i], newest};
    newest = static_cast<std::uint32_t>(first + i);
  }
}

void SharedRowsFilter::keep(std::span<const std::uint32_t> under_way) {
  for (const Entry& entry : entries_) newest_[entry.row] = kNone;
  entries_.clear();
  columns_.clear();
  products_.clear();
  largest_offset_ = 0;
  for (const std::uint32_t j : under_way) take(j);
}

}  // namespace

ColumnCorrelation::ColumnCorrelation(const Design& design) : design_(design) {}

std::unique_ptr<DependenceFilter> ColumnCorrelation::filter(double most_dependence) const {
  if (design_.is_dense()) return CoordinateModel::filter(most_dependence);
  return std::make_unique<SharedRowsFilter>(design_, *this, most_dependence);
}

/// Takes the column that is spread away and spreads another one. Cost: their entries.
void ColumnCorrelation::spread(std::uint32_t column) const {
  if (spread_.empty()) spread_.assign(design_.rows(), 0.0);
  if (design_.is_dense()) {
    std::fill(spread_.begin(), spread_.end(), 0.0);
  } else if (spread_column_ != kNoColumn) {
    const ColumnView before = design_.view(spread_column_);
    for (std::size_t i = 0; i < before.count; ++i) spread_[before.rows[i]] = 0;
  }
  design_.kernels().add(design_.view(column), 1.0, spread_.data());
  spread_column_ = column;
}

double ColumnCorrelation::compute(std::uint32_t a, std::uint32_t b) const {
  const double size = std::sqrt(design_.curvature(a) * design_.curvature(b));
  if (!(size > 0)) return 0;
  if (a != spread_column_) spread(a);
  ++computed_;
  const double raw = design_.kernels().dot(design_.view(b), spread_.data()) / static_cast<double>(design_.rows());
  // Symmetric to the last bit, so that it does not matter for which order of the two it was kept.
  const double scales = design_.inverse_scale(a) * design_.inverse_scale(b);
  const double product = (raw - design_.mean(a) * design_.mean(b)) * scales;
  return std::min(std::abs(product) / size, 1.0);
}

double ColumnCorrelation::dependence(std::uint32_t a, std::uint32_t b) const {
  if (!design_.is_dense()) return compute(a, b);
  constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio (Knuth's multiplicative hashing)
  if (kept_.empty()) kept_.resize(kKeptPairs);
  const auto [first, second] = std::minmax(a, b);
  const std::uint64_t key = std::uint64_t{first} << 32 | second;
  Pair& pair = kept_[(key * kSpread) >> (64 - std::bit_width(kKeptPairs - 1))];
  if (pair.first != first || pair.second != second) pair = {first, second, compute(a, b)};
  return pair.value;
}

}  // namespace orrery::lasso
