// The columns of a regression as the Lasso sees them: centred, scaled to unit variance, and yet as sparse as they came.
//
// With m_j the mean of column j and s_j its standard deviation (1/n), the standardised column is (x_j − m_j) / s_j. It
// is never formed. A residual is kept as y − Σ x_j b_j over the raw columns, b_j = β_j / s_j, together with its sum S;
// the true residual lacks the mean, so a product with a standardised column is (x_j·raw − m_j S) / s_j, and a step of
// β_j touches only the rows where x_j is not 0. Without an intercept nothing is centred (m_j = 0), with
// --no-standardize nothing is scaled (s_j = 1); a constant column beside an intercept counts for nothing.
//
// Of several nodes each keeps the entries of its workers' columns; what is known of a column (length, mean, scale) all
// of them know. Entries of other columns come when they are needed (lasso_columns.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/data_parts.h"
#include "algorithms/lasso_kernels.h"
#include "engine/collective.h"
#include "engine/data/parallel_for.h"
#include "engine/data/sparse_rows.h"
#include "engine/types.h"

namespace orrery::lasso {

/// What is left of the response. True values are raw_i − sum / n with an intercept, else raw_i.
struct Residual {
  std::vector<double> raw;
  double sum = 0;
};

/// Whether columns are kept with their zeros.
bool is_worth_dense(std::uint64_t rows, std::uint64_t columns, std::uint64_t entries);

/// What is known of all columns before anybody has them: how long they are.
struct ColumnLengths {
  std::uint64_t rows = 0;
  std::vector<std::uint64_t> start;  ///< Σ of the lengths before, and of all: entries that are not 0
  bool is_all_ones = false;          ///< every one of these is 1

  std::uint32_t columns() const { return static_cast<std::uint32_t>(start.size() - 1); }
};
ColumnLengths lengths_of(const SparseRows& rows);
/// The same of rows that nodes have shared out. Collective.
ColumnLengths lengths_of(const SharedRows& rows, const Collective& nodes);

/// Which of several nodes this is, and how many workers the columns are dealt to.
struct Dealing {
  WorkerId workers = 1;
  NodeId nodes = 1, node = 0;
};

class Design {
 public:
  /// Columns are dealt in blocks of so many.
  static constexpr std::size_t kBlock = 64;

  /// Copies the entries by column: in single precision as they are, 8 bytes each, or 4 where a fifth of them or more
  /// are not 0, which are then all kept. Of several nodes each has all rows here, looks at every column once, those of
  /// one node at a time, and keeps its own.
  Design(const SparseRows& rows, bool has_intercept, bool standardise, const Kernels& kernels,
         const ParallelFor& parallel, const Dealing& dealing = {});

  /// Of several nodes, each with its share of the rows, of which it sees those of others as they pass. Collective.
  Design(const SharedRows& rows, bool has_intercept, bool standardise, const Kernels& kernels,
         const ParallelFor& parallel, const Dealing& dealing, const Collective& nodes);

  /// Some columns of another design, numbered anew, with every row times the root of its weight (> 0): those of a
  /// weighted Lasso. They are centred by the weighted means and keep their scales. A residual is as long as before;
  /// true values are raw_i − root_i · sum / (sum of the weights), where the sum has the roots as factors.
  Design(const Design& of, std::span<const std::uint32_t> columns, std::span<const double> weights);

  /// Of a weighted design: a constant for each column that makes its gradient at `r` what is given. Its values are in
  /// single precision, and would move the minimum by their rounding.
  void correct(std::span<const double> gradients, const Residual& r);

  std::uint64_t rows() const { return rows_; }
  std::uint32_t columns() const { return static_cast<std::uint32_t>(mean_.size()); }
  bool is_dense() const { return is_dense_; }
  bool has_intercept() const { return has_intercept_; }
  /// Entries that a pass over the column reads.
  std::uint64_t length(std::uint32_t j) const { return is_dense() ? rows_ : start_[j + std::size_t{1}] - start_[j]; }
  std::uint64_t entries() const { return is_dense() ? rows_ * columns() : start_.back(); }
  /// Mean and standard deviation, as above: 0 and 1 where nothing is centred or scaled.
  double mean(std::uint32_t j) const { return mean_[j]; }
  /// 1 / s_j; 0: the column counts for nothing.
  double inverse_scale(std::uint32_t j) const { return inverse_scale_[j]; }
  /// |x̃_j|² / n of the standardised column.
  double curvature(std::uint32_t j) const { return curvature_[j]; }
  bool is_usable(std::uint32_t j) const { return curvature_[j] > 0; }

  /// x̃_j·r / n. Cost: length(j).
  double gradient(std::uint32_t j, const Residual& r) const {
    const double slope = (kernels_->dot(view(j), r.raw.data()) - mean_[j] * r.sum) * inverse_scale_[j] * per_row_;
    return correction_.empty() ? slope : slope + correction_[j];
  }
  /// r −= step x̃_j. Cost: length(j).
  void subtract(std::uint32_t j, double step, Residual& r) const {
    const double raw_step = step * inverse_scale_[j];
    kernels_->add(view(j), -raw_step, r.raw.data());
    r.sum -= raw_step * mean_[j] * mass_;
  }
  /// The residual of coefficients (standardised, by column), from the beginning. `response`: y, less its mean when
  /// there is an intercept.
  void rebuild(std::span<const double> response, std::span<const double> coefficients, Residual& r) const;
  /// Takes the mean out of the raw values, so that products lose nothing to it. Cost: rows.
  void recentre(Residual& r) const;
  /// |r|² / n.
  double mean_square(const Residual& r) const;
  /// x̃_j·x̃_k / n; `scratch` is as long as a column and all 0 before and after. Cost: both lengths.
  double product(std::uint32_t j, std::uint32_t k, std::span<double> scratch) const;

  /// What the means of two columns take from the product of their raw values, by row.
  double product_of_means(std::uint32_t j, std::uint32_t k) const { return mean_[j] * mean_[k] * mass_ * per_row_; }

  /// On one of several nodes: of a column that is here or was lent.
  ColumnView view(std::uint32_t j) const {
    if (!lent_.empty() && !is_here(j)) return lent_view(j);
    if (is_dense()) return {nullptr, value_.data() + (j - first_here_) * rows_, static_cast<std::size_t>(rows_)};
    const std::uint64_t begin = start_[j] - start_[first_here_];
    return {row_.data() + begin, value_.empty() ? nullptr : value_.data() + begin,
            static_cast<std::size_t>(start_[j + std::size_t{1}] - start_[j])};
  }

  const Dealing& dealing() const { return dealing_; }
  /// Whether this node keeps the column's entries for good.
  bool is_here(std::uint32_t j) const { return j >= first_here_ && j < last_here_; }
  std::uint32_t first_here() const { return first_here_; }
  std::uint32_t last_here() const { return last_here_; }
  /// Whether every entry that is not 0 is 1, in sparse columns, so that nobody keeps or sends values.
  bool is_all_ones() const { return is_all_ones_; }
  /// Entries of a column of another node, length(j) of them (`rows` only of sparse ones, `values` but for ones): they
  /// can be viewed until taken back. Between passes.
  void lend(std::uint32_t j, std::vector<std::uint32_t> rows, std::vector<float> values);
  void take_back(std::uint32_t j);
  std::uint64_t lent_entries() const;
  /// Fetch ahead, of a sparse column, what is known of it, and the first two lines of its rows and values: all of a
  /// short one, and a longer one streams.
  void fetch_description(std::uint32_t j) const {
    __builtin_prefetch(&start_[j]);
    for (const auto* array : {&mean_, &inverse_scale_, &curvature_}) __builtin_prefetch(&(*array)[j]);
  }
  void fetch_entries(std::uint32_t j) const {
    constexpr std::size_t kLine = 64 / sizeof(float);
    const ColumnView x = view(j);
    for (std::size_t i = 0; i < std::min(x.count, 2 * kLine); i += kLine) {
      __builtin_prefetch(x.rows + i);
      if (x.values != nullptr) __builtin_prefetch(x.values + i);
    }
  }
  const Kernels& kernels() const { return *kernels_; }
  /// 1 / rows, and the sum of the rows' weights: their number, but for a weighted design.
  double per_row() const { return per_row_; }
  double mass() const { return mass_; }

  /// The first column of each of `parts` ranges of whole blocks that cost about the same to pass over, and the number
  /// of columns.
  std::vector<std::uint32_t> deal(std::uint32_t parts) const;

 private:
  struct Lent {
    std::vector<std::uint32_t> rows;
    std::vector<float> values;
  };

  Design(ColumnLengths lengths, bool has_intercept, const Kernels& kernels, const Dealing& dealing);

  ColumnView lent_view(std::uint32_t j) const;
  void keep_columns_of(NodeId node);
  void take_rows(const SparseRows& rows);
  void describe_here(bool standardise, const ParallelFor& parallel);
  void describe(std::uint32_t j, bool standardise);
  void take_weighted(const ColumnView& x, double inverse_scale, std::span<const double> weights,
                     std::span<const double> roots);

  const Kernels* kernels_;
  std::uint64_t rows_;
  double per_row_;
  double mass_;  ///< of the rows' weights, which are 1 but for a weighted design
  bool has_intercept_;
  bool is_dense_ = false, is_all_ones_ = false;
  Dealing dealing_;
  std::uint32_t first_here_ = 0, last_here_ = 0;
  std::vector<std::uint64_t> start_;  ///< sparse: of all columns, as if they lay one behind the other
  std::vector<std::uint32_t> row_;    ///< sparse: of the columns here
  std::vector<float> value_;          ///< the same; dense: column after column; sparse: empty when all are 1
  std::vector<Lent> lent_;            ///< by column; empty on one node
  /// While rows are taken: how many were, and where each column here goes on, sparse.
  std::uint64_t rows_taken_ = 0;
  std::vector<std::uint64_t> next_;
  std::vector<double> mean_, inverse_scale_, curvature_;
  std::vector<double> correction_;  ///< empty: none
};

}  // namespace orrery::lasso
