// Coordinate descent and Newton steps on a working set whose inner products are kept (glmnet's "covariance" updates;
// Friedman, Hastie and Tibshirani, J. Stat. Softw. 2010), for columns that are long against their number.
//
// A coordinate that stays at 0 then costs O(1) instead of a pass over its column, and one that moves costs a row of the
// Gram matrix. On strongly correlated columns descent alone needs hundreds of sweeps; between sweeps the smooth problem
// on the support, signs held, is therefore solved at once by a Cholesky factor. Coefficients that would change sign are
// set to 0 if that still descends, else the step ends where the first one vanishes.
//
// Products are in single precision: they are a model of the problem around a gradient that is exact, and the outer loop
// computes gradient and gap anew from the columns themselves, so their rounding costs steps and not accuracy.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/lasso_design.h"
#include "algorithms/lasso_gap.h"
#include "engine/message.h"
#include "engine/wire.h"

namespace orrery::lasso {

/// Inner products of the columns that were active so far. A slot is a column's place.
class Gram {
 public:
  static constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};
  static constexpr std::size_t kMostSlots = 4096;  ///< 64 MiB

  explicit Gram(const Design& design);

  std::size_t size() const { return columns_.size(); }
  std::uint32_t slot(std::uint32_t column) const { return slot_[column]; }
  std::uint32_t column(std::size_t slot) const { return columns_[slot]; }
  std::span<const std::uint32_t> columns() const { return columns_; }
  const float* row(std::size_t slot) const { return products_.data() + slot * capacity_; }

  /// Gives the columns (at most kMostSlots) slots, forgetting others if they do not fit beside. Products with new ones
  /// are missing until every part of fill() has run and settle() was called. @return the number of products that miss
  std::uint64_t admit(std::span<const std::uint32_t> columns);
  /// Computes one part of the missing products; parts may overlap in time, and any number of them gives the same bits.
  void fill(std::uint32_t part, std::uint32_t parts);
  /// What that part of the missing products has come to, for other nodes, and taking it there.
  void pack(std::uint32_t part, std::uint32_t parts, Bytes& out) const;
  void take(std::uint32_t part, std::uint32_t parts, WireReader& in);
  void settle() { filled_ = columns_.size(); }

 private:
  void keep_only(std::span<const std::uint32_t> columns);
  void reserve(std::size_t slots);
  void fill_dense(std::size_t first, std::size_t last);
  void fill_sparse(std::size_t first, std::size_t last, std::span<double> scratch);
  void set(std::size_t a, std::size_t b, double product);
  template <class Visit>
  void for_new_slots(std::uint32_t part, std::uint32_t parts, Visit&& visit) const;

  const Design& design_;
  std::vector<std::uint32_t> slot_;     ///< by column
  std::vector<std::uint32_t> columns_;  ///< by slot
  std::vector<float> products_;
  std::size_t capacity_ = 0, filled_ = 0;
};

/// A row of products for every column of a working set: whether columns are long enough against their number.
bool is_worth_products(const Design& design, std::span<const std::uint32_t> working);

/// The quadratic model on slots. Coefficients and gradients are by slot; the gradient need be right on `working` only.
class GramDescent {
 public:
  GramDescent(const Gram& gram, const Design& design) : gram_(gram), design_(design) {}

  std::vector<double> coefficients, gradient;
  double square = 0;                   ///< |r|² / n, carried along
  std::vector<std::uint32_t> working;  ///< slots that may move, ascending

  /// Descends until the gap on the working set is at most `enough`, or no step helps. Cost: see above.
  void solve(Penalty penalty, double enough);

 private:
  double sweep(Penalty penalty);
  void move(std::uint32_t slot, double step);
  double gap(Penalty penalty) const;
  bool newton(Penalty penalty);
  bool factorise(Penalty penalty);
  void solve_factored(std::span<double> vector) const;
  double objective(Penalty penalty) const;
  bool take(std::span<const double> target, double before, Penalty penalty);

  const Gram& gram_;
  const Design& design_;
  std::vector<std::uint32_t> support_;
  std::vector<float> factor_;
};

}  // namespace orrery::lasso
