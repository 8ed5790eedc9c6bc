// Cyclic coordinate descent on a working set with the residual kept up to date (Friedman, Hastie and Tibshirani, J.
// Stat. Softw. 2010): a coordinate costs a pass over its column, so this is for columns that are short against their
// number.
//
// A sweep over the whole working set finds who moves; then those that are not 0 are swept by themselves. Every five of
// these sweeps, with signs unchanged, the sequence is extrapolated to where it tends (Anderson acceleration of
// coordinate descent; Bertrand and Massias, AISTATS 2021), which is kept if the objective is lower there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/lasso_design.h"
#include "algorithms/lasso_gap.h"

namespace orrery::lasso {

class ResidualDescent {
 public:
  /// Borrows all three; `coefficients` are by column.
  ResidualDescent(const Design& design, std::vector<double>& coefficients, Residual& residual)
      : design_(design), coefficients_(coefficients), residual_(residual) {}

  /// Descends until the gap on the working set is at most `enough`, or no step helps.
  void solve(std::span<const std::uint32_t> working, Penalty penalty, double enough);

 private:
  static constexpr std::size_t kDepth = 5;

  double sweep(std::span<const std::uint32_t> columns, Penalty penalty);
  void sweep_support(Penalty penalty, double enough);
  double gap(std::span<const std::uint32_t> working, Penalty penalty) const;
  double objective(Penalty penalty) const;
  bool extrapolate(Penalty penalty);
  void go_to(std::span<const double> target);
  std::vector<double> now() const;

  const Design& design_;
  std::vector<double>& coefficients_;
  Residual& residual_;
  std::vector<std::uint32_t> support_;
  std::vector<std::vector<double>> history_;  ///< coefficients on the support after each sweep
};

/// Weights c with Σ c = 1 for which |Σ c_k (history[k + 1] − history[k])| is least; empty if they are not determined.
std::vector<double> anderson_weights(std::span<const std::vector<double>> history);

}  // namespace orrery::lasso
