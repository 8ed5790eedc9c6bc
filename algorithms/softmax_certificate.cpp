#include "algorithms/softmax_certificate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/data/portable_math.h"
#include "engine/reduce.h"

namespace orrery::softmax {
namespace {

/// Of a piece of the rows.
struct Sums {
  double loss = 0;
  std::vector<double> probability;  ///< Σ p, by class
  std::vector<double> pull, own;    ///< Σ (p − e_y) x and Σ e_y x, by column and class
  std::vector<double> entries;      ///< Σ x, by column
};

/// A point of the dual: q = t p + shift, then s q + (1 − s) e_y.
struct DualPoint {
  double t = 1, s = 1;
  std::vector<double> shift;
};

class Proof {
 public:
  Proof(const SparseRows& rows, std::span<const std::uint32_t> labels, const Fitted& fitted, newton::Penalty penalty,
        const ParallelFor& parallel)
      : rows_(rows), labels_(labels), fitted_(fitted), penalty_(penalty), parallel_(parallel) {
    const std::uint64_t parameters = std::max<std::uint64_t>(1, rows.column_count * fitted.classes);
    pieces_ = static_cast<std::size_t>(std::clamp<std::uint64_t>(rows.entries() / parameters, 1, 16));
  }

  Certificate certify() const {
    const Sums sums = add_up();
    Certificate out;
    out.objective = sums.loss * per_row();
    for (const float w : fitted_.weights) out.objective += penalty_at(double{w}, penalty_);
    const std::vector<double> shares = class_shares();
    out.gradient = least_subgradient(sums, shares);
    out.gap = std::numeric_limits<double>::quiet_NaN();
    if (penalty_.l1 > 0 || penalty_.l2 > 0) out.gap = out.objective - dual_value(sums, shares);
    return out;
  }

 private:
  double per_row() const { return 1.0 / static_cast<double>(rows_.rows()); }
  std::uint64_t first_row(std::size_t piece) const { return rows_.rows() * piece / pieces_; }

  /// The row's probabilities. @return its loss
  double probabilities(std::uint64_t row, std::span<double> p) const {
    for (std::size_t k = 0; k < p.size(); ++k) p[k] = fitted_.intercepts.empty() ? 0.0 : double{fitted_.intercepts[k]};
    for (std::uint64_t i = rows_.starts[row]; i < rows_.starts[row + 1]; ++i) {
      const std::size_t at = rows_.columns[i] * p.size();
      if (at >= fitted_.weights.size()) continue;
      for (std::size_t k = 0; k < p.size(); ++k) p[k] += double{fitted_.weights[at + k]} * double{rows_.values[i]};
    }
    const double own = p[labels_[row]];
    return to_probabilities(p) - own;
  }

  Sums add_up_piece(std::size_t piece) const {
    const std::size_t classes = fitted_.classes;
    Sums sums;
    sums.probability.assign(classes, 0.0);
    sums.pull.assign(rows_.column_count * classes, 0.0);
    sums.own.assign(rows_.column_count * classes, 0.0);
    sums.entries.assign(rows_.column_count, 0.0);
    std::vector<double> p(classes);
    for (std::uint64_t row = first_row(piece); row < first_row(piece + 1); ++row) {
      sums.loss += probabilities(row, p);
      for (std::size_t k = 0; k < classes; ++k) sums.probability[k] += p[k];
      p[labels_[row]] -= 1;
      for (std::uint64_t i = rows_.starts[row]; i < rows_.starts[row + 1]; ++i) {
        const std::size_t at = rows_.columns[i] * classes;
        const double x = double{rows_.values[i]};
        for (std::size_t k = 0; k < classes; ++k) sums.pull[at + k] += p[k] * x;
        sums.own[at + labels_[row]] += x;
        sums.entries[rows_.columns[i]] += x;
      }
    }
    return sums;
  }

  Sums add_up() const {
    std::vector<Sums> pieces(pieces_);
    parallel_(pieces_, [&](std::size_t piece) { pieces[piece] = add_up_piece(piece); });
    std::vector<Sums*> parts;
    for (Sums& piece : pieces) parts.push_back(&piece);
    const auto add = [](std::vector<double>& a, const std::vector<double>& b) {
      for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    };
    return std::move(*tree_combine(std::span{parts}, [&](Sums* a, const Sums* b) {
      a->loss += b->loss;
      add(a->probability, b->probability);
      add(a->pull, b->pull);
      add(a->own, b->own);
      add(a->entries, b->entries);
      return a;
    }));
  }

  std::vector<double> class_shares() const {
    std::vector<double> shares(fitted_.classes, 0.0);
    for (const std::uint32_t label : labels_) ++shares[label];
    for (double& share : shares) share *= per_row();
    return shares;
  }

  double least_subgradient(const Sums& sums, std::span<const double> shares) const {
    double squares = 0;
    for (std::size_t j = 0; j < sums.pull.size(); ++j) {
      const double w = j < fitted_.weights.size() ? double{fitted_.weights[j]} : 0.0;
      squares += squared_subgradient(w, sums.pull[j] * per_row(), penalty_);
    }
    for (std::size_t k = 0; k < fitted_.intercepts.size(); ++k) {
      const double slope = sums.probability[k] * per_row() - shares[k];
      squares += slope * slope;
    }
    return std::sqrt(squares);
  }

  DualPoint balance(const Sums& sums, std::span<const double> shares) const {
    DualPoint point;
    point.shift.assign(shares.size(), 0.0);
    if (fitted_.intercepts.empty()) return point;
    for (std::size_t k = 0; k < shares.size(); ++k) {
      const double mean = sums.probability[k] * per_row();
      if (point.t * mean > shares[k]) point.t = shares[k] / mean;
    }
    for (std::size_t k = 0; k < shares.size(); ++k) {
      point.shift[k] = std::max(0.0, shares[k] - point.t * sums.probability[k] * per_row());
    }
    return point;
  }

  double dual_value(const Sums& sums, std::span<const double> shares) const {
    DualPoint point = balance(sums, shares);
    std::vector<double> v(sums.pull.size());
    double largest = 0;
    for (std::size_t j = 0; j < v.size(); ++j) {
      const double shifted = point.shift[j % shares.size()] * sums.entries[j / shares.size()];
      v[j] = (point.t * sums.pull[j] + (point.t - 1.0) * sums.own[j] + shifted) * per_row();
      largest = std::max(largest, std::abs(v[j]));
    }
    double conjugate = 0;
    for (std::size_t j = 0; j < v.size() && penalty_.l2 > 0; ++j) {
      const double over = std::max(std::abs(v[j]) - penalty_.l1, 0.0);
      conjugate += over * over / (2.0 * penalty_.l2);
    }
    if (penalty_.l2 == 0 && largest > penalty_.l1) point.s = penalty_.l1 / largest;
    return mean_entropy(point) - conjugate;
  }

  double mean_entropy(const DualPoint& point) const {
    std::vector<double> sums(pieces_, 0.0);
    parallel_(pieces_, [&](std::size_t piece) {
      std::vector<double> p(fitted_.classes);
      for (std::uint64_t row = first_row(piece); row < first_row(piece + 1); ++row) {
        probabilities(row, p);
        for (std::size_t k = 0; k < p.size(); ++k) {
          const double q = point.s * (point.t * p[k] + point.shift[k]) + (k == labels_[row] ? 1.0 - point.s : 0.0);
          if (q > 0) sums[piece] -= q * portable_log(q);
        }
      }
    });
    return tree_sum(std::span<double>{sums}) * per_row();
  }

  const SparseRows& rows_;
  const std::span<const std::uint32_t> labels_;
  const Fitted& fitted_;
  const newton::Penalty penalty_;
  const ParallelFor& parallel_;
  std::size_t pieces_ = 1;
};

}  // namespace

Certificate certify(const SparseRows& rows, std::span<const std::uint32_t> labels, const Fitted& fitted,
                    newton::Penalty penalty, const ParallelFor& parallel) {
  return Proof(rows, labels, fitted, penalty, parallel).certify();
}

}  // namespace orrery::softmax
