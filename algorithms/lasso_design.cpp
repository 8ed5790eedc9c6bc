#include "algorithms/lasso_design.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/assert.h"
#include "engine/clock.h"
#include "engine/wire.h"

namespace orrery::lasso {
namespace {

constexpr std::uint64_t kDenseFrom = 5;  // entries that are not 0: one in so many makes the columns dense
constexpr std::size_t kColumnsOfPart = 256;

/// Calls visit(row, place, column) for every entry of the rows in columns [first, last).
template <class Visit>
void for_entries(const SparseRows& rows, std::uint32_t first, std::uint32_t last, Visit&& visit) {
  for (std::uint64_t r = 0; r + 1 < rows.starts.size(); ++r) {
    const auto begin = rows.columns.begin() + static_cast<std::ptrdiff_t>(rows.starts[r]);
    const auto end = rows.columns.begin() + static_cast<std::ptrdiff_t>(rows.starts[r + 1]);
    for (auto at = first == 0 ? begin : std::lower_bound(begin, end, first); at != end && *at < last; ++at) {
      visit(r, static_cast<std::size_t>(at - rows.columns.begin()), *at);
    }
  }
}

}  // namespace

ColumnLengths lengths_of(const SparseRows& rows) {
  ColumnLengths lengths{rows.rows(), std::vector<std::uint64_t>(rows.column_count + std::size_t{1}, 0)};
  for (const std::uint32_t c : rows.columns) ++lengths.start[c + std::size_t{1}];
  for (std::size_t j = 0; j < rows.column_count; ++j) lengths.start[j + 1] += lengths.start[j];
  lengths.is_all_ones = std::all_of(rows.values.begin(), rows.values.end(), [](float x) { return x == 1.0F; });
  return lengths;
}

ColumnLengths lengths_of(const SharedRows& rows, const Collective& nodes) {
  const ColumnLengths here = lengths_of(rows.here);
  Bytes mine;
  put(mine, here.is_all_ones);
  put_all(mine, std::span(here.start));
  ColumnLengths all{rows.all.rows.rows(), std::vector<std::uint64_t>(here.start.size(), 0), true};
  std::vector<std::uint64_t> start(here.start.size());
  for (const Bytes& said : nodes.to_all(std::move(mine))) {
    WireReader in(said);
    all.is_all_ones = in.take<bool>() && all.is_all_ones;
    in.take_all(std::span(start));
    for (std::size_t j = 0; j < start.size(); ++j) all.start[j] += start[j];
  }
  return all;
}

bool is_worth_dense(std::uint64_t rows, std::uint64_t columns, std::uint64_t entries) {
  return entries > 0 && entries >= rows * columns / kDenseFrom;
}

Design::Design(ColumnLengths lengths, bool has_intercept, const Kernels& kernels, const Dealing& dealing)
    : kernels_(&kernels),
      rows_(lengths.rows),
      per_row_(1.0 / static_cast<double>(lengths.rows)),
      mass_(static_cast<double>(lengths.rows)),
      has_intercept_(has_intercept),
      is_dense_(is_worth_dense(lengths.rows, lengths.columns(), lengths.start.back())),
      is_all_ones_(!is_dense_ && lengths.is_all_ones),
      dealing_(dealing),
      lent_(dealing.nodes > 1 ? lengths.columns() : 0),
      mean_(lengths.columns(), 0.0),
      inverse_scale_(lengths.columns(), 0.0),
      curvature_(lengths.columns(), 0.0) {
  if (!is_dense_) start_ = std::move(lengths.start);
}

Design::Design(const SparseRows& rows, bool has_intercept, bool standardise, const Kernels& kernels,
               const ParallelFor& parallel, const Dealing& dealing)
    : Design(lengths_of(rows), has_intercept, kernels, dealing) {
  for (NodeId turn = 1; turn <= dealing.nodes; ++turn) {  // this node's own columns come last and stay
    keep_columns_of((dealing.node + turn) % dealing.nodes);
    take_rows(rows);
    describe_here(standardise, parallel);
  }
  next_ = {};
}

Design::Design(const SharedRows& rows, bool has_intercept, bool standardise, const Kernels& kernels,
               const ParallelFor& parallel, const Dealing& dealing, const Collective& nodes)
    : Design(lengths_of(rows, nodes), has_intercept, kernels, dealing) {
  keep_columns_of(dealing.node);
  pass_round(rows.here, nodes, [&](const SparseRows& some) { take_rows(some); });
  describe_here(standardise, parallel);
  for (std::vector<double>* values : {&mean_, &inverse_scale_, &curvature_}) {
    *values = nodes.joined(std::vector<double>(values->begin() + first_here_, values->begin() + last_here_));
  }
  next_ = {};
}

Design::Design(const Design& of, std::span<const std::uint32_t> columns, std::span<const double> weights)
    : kernels_(of.kernels_),
      rows_(of.rows_),
      per_row_(of.per_row_),
      mass_(0),
      has_intercept_(of.has_intercept_),
      is_dense_(of.is_dense_),
      last_here_(static_cast<std::uint32_t>(columns.size())) {
  std::vector<double> roots;
  roots.reserve(weights.size());
  for (const double w : weights) {
    roots.push_back(std::sqrt(w));
    mass_ += w;
  }
  if (!of.is_dense()) start_.assign(1, 0);
  for (const std::uint32_t j : columns) take_weighted(of.view(j), of.inverse_scale(j), weights, roots);
}

void Design::correct(std::span<const double> gradients, const Residual& r) {
  std::vector<double> correction;
  for (std::uint32_t j = 0; j < columns(); ++j) correction.push_back(gradients[j] - gradient(j, r));
  correction_ = std::move(correction);
}

void Design::take_weighted(const ColumnView& x, double inverse_scale, std::span<const double> weights,
                           std::span<const double> roots) {
  const auto at = [&](std::size_t i) { return x.values == nullptr ? 1.0 : double{x.values[i]}; };
  const auto row = [&](std::size_t i) { return x.rows == nullptr ? i : std::size_t{x.rows[i]}; };
  double sum = 0, seen = 0;
  for (std::size_t i = 0; i < x.count; ++i) {
    sum += weights[row(i)] * at(i);
    seen += weights[row(i)];
  }
  const double mean = has_intercept_ ? sum / mass_ : 0.0;
  const bool is_whole = x.rows == nullptr;  // then the mean is taken out at once
  double spread = is_whole ? 0.0 : std::max(mass_ - seen, 0.0) * mean * mean;
  for (std::size_t i = 0; i < x.count; ++i) {
    const double centred = at(i) - mean;
    spread += weights[row(i)] * centred * centred;
    value_.push_back(static_cast<float>(roots[row(i)] * (is_whole ? centred : at(i))));
    if (!is_whole) row_.push_back(x.rows[i]);
  }
  if (!is_whole) start_.push_back(row_.size());
  mean_.push_back(is_whole ? 0.0 : mean);
  inverse_scale_.push_back(inverse_scale);
  curvature_.push_back(spread * per_row_ * inverse_scale * inverse_scale);
}

/// Those are the columns here from now on; their entries follow.
void Design::keep_columns_of(NodeId node) {
  const std::vector<std::uint32_t> first_of = deal(dealing_.workers);
  const WorkerMap map(dealing_.workers, dealing_.nodes, node, 1);
  first_here_ = first_of[map.first_worker(node)];
  last_here_ = first_of[map.first_worker(node + 1)];
  rows_taken_ = 0;
  if (is_dense_) {
    value_.assign(rows_ * (last_here_ - first_here_), 0.0F);
    return;
  }
  const std::uint64_t before = start_[first_here_], count = start_[last_here_] - before;
  row_.resize(count);
  value_.resize(is_all_ones_ ? 0 : count);
  next_.clear();
  for (std::uint32_t j = first_here_; j < last_here_; ++j) next_.push_back(start_[j] - before);
}

/// The next rows: what of them is in columns here.
void Design::take_rows(const SparseRows& rows) {
  for_entries(rows, first_here_, last_here_, [&](std::uint64_t r, std::size_t i, std::uint32_t j) {
    const std::uint64_t row = rows_taken_ + r;
    if (is_dense_) {
      value_[(j - first_here_) * rows_ + row] = rows.values[i];
      return;
    }
    const std::uint64_t to = next_[j - first_here_]++;
    row_[to] = static_cast<std::uint32_t>(row);
    if (!is_all_ones_) value_[to] = rows.values[i];
  });
  rows_taken_ += rows.starts.size() - 1;
}

void Design::describe_here(bool standardise, const ParallelFor& parallel) {
  parallel((last_here_ - first_here_ + kColumnsOfPart - 1) / kColumnsOfPart, [&](std::size_t part) {
    const std::size_t first = first_here_ + part * kColumnsOfPart;
    const std::size_t last = std::min<std::size_t>(last_here_, first + kColumnsOfPart);
    for (std::size_t j = first; j < last; ++j) describe(static_cast<std::uint32_t>(j), standardise);
  });
}

ColumnView Design::lent_view(std::uint32_t j) const {
  const Lent& lent = lent_[j];
  ORRERY_CHECK(lent.rows.size() + lent.values.size() >= length(j));
  if (is_dense()) return {nullptr, lent.values.data(), lent.values.size()};
  return {lent.rows.data(), is_all_ones_ ? nullptr : lent.values.data(), lent.rows.size()};
}

void Design::lend(std::uint32_t j, std::vector<std::uint32_t> rows, std::vector<float> values) {
  lent_[j] = {std::move(rows), std::move(values)};
}

void Design::take_back(std::uint32_t j) { lent_[j] = {}; }

std::uint64_t Design::lent_entries() const {
  std::uint64_t entries = 0;
  for (const Lent& lent : lent_) entries += std::max(lent.rows.size(), lent.values.size());
  return entries;
}

void Design::describe(std::uint32_t j, bool standardise) {
  const ColumnView x = view(j);
  const auto at = [&](std::size_t i) { return x.values == nullptr ? 1.0 : double{x.values[i]}; };
  const auto n = static_cast<double>(rows_), missing = static_cast<double>(rows_ - x.count);
  double sum = 0, square = 0, low = missing > 0 ? 0.0 : at(0), high = low;
  for (std::size_t i = 0; i < x.count; ++i) {
    sum += at(i);
    square += at(i) * at(i);
    low = std::min(low, at(i));
    high = std::max(high, at(i));
  }
  const double mean = sum / n;
  double spread = missing * mean * mean;
  for (std::size_t i = 0; i < x.count; ++i) spread += (at(i) - mean) * (at(i) - mean);
  const double variance = low == high ? 0.0 : spread / n;
  const double raw = has_intercept_ ? variance : square / n;
  mean_[j] = has_intercept_ ? mean : 0.0;
  inverse_scale_[j] = raw == 0 || (standardise && variance == 0) ? 0.0 : standardise ? 1.0 / std::sqrt(variance) : 1.0;
  curvature_[j] = raw * inverse_scale_[j] * inverse_scale_[j];
}

void Design::rebuild(std::span<const double> response, std::span<const double> coefficients, Residual& r) const {
  r.raw.assign(response.begin(), response.end());
  r.sum = 0;
  for (const double y : response) r.sum += y;
  for (std::uint32_t j = 0; j < columns(); ++j) {
    if (coefficients[j] != 0) subtract(j, coefficients[j], r);
  }
  recentre(r);
}

void Design::recentre(Residual& r) const {
  double sum = 0;
  for (const double x : r.raw) sum += x;
  r.sum = sum;
  if (!has_intercept_) return;
  const double mean = sum * per_row_;
  sum = 0;
  for (double& x : r.raw) {
    x -= mean;
    sum += x;
  }
  r.sum = sum;
}

double Design::mean_square(const Residual& r) const {
  const double square = kernels_->squares(r.raw.data(), r.raw.size());
  return has_intercept_ ? (square - r.sum * r.sum / mass_) * per_row_ : square * per_row_;
}

double Design::product(std::uint32_t j, std::uint32_t k, std::span<double> scratch) const {
  const ColumnView x = view(j);
  kernels_->add(x, 1.0, scratch.data());
  const double raw = kernels_->dot(view(k), scratch.data());
  if (x.rows == nullptr) {
    std::fill(scratch.begin(), scratch.end(), 0.0);
  } else {
    for (std::size_t i = 0; i < x.count; ++i) scratch[x.rows[i]] = 0;
  }
  return (raw * per_row_ - product_of_means(j, k)) * inverse_scale_[j] * inverse_scale_[k];
}

std::vector<std::uint32_t> Design::deal(std::uint32_t parts) const {
  constexpr std::uint64_t kColumnCost = 4;  // of looking at a column, in entries
  const auto cost = [&](std::uint64_t j) { return (is_dense() ? j * rows_ : start_[j]) + kColumnCost * j; };
  std::vector<std::uint32_t> first;
  std::uint64_t j = 0;
  for (std::uint64_t part = 0; part < parts; ++part) {
    while (j < columns() && cost(j) * parts < cost(columns()) * part) ++j;
    first.push_back(static_cast<std::uint32_t>(std::min<std::size_t>(columns(), (j + kBlock - 1) / kBlock * kBlock)));
  }
  first.push_back(columns());
  return first;
}

}  // namespace orrery::lasso
