// The Lasso on a working set with the residual kept up to date (Friedman, Hastie and Tibshirani, J. Stat. Softw. 2010):
// a coordinate costs a pass over its column, so this is for columns that are short against their number.
//
// A round computes all gradients of the working set, which is work for all threads, and from them the gap. Descent then
// goes once over the columns that are not 0 or will not stay there, one after the other, which finds the support; and a
// Newton step solves for the coefficients on it, in products that all threads share (lasso_newton.h).
//
// Where that step did not get far, or the support is too small for threads, it is descended on before or instead: every
// five sweeps, with signs unchanged, the sequence is extrapolated to where it tends (Anderson acceleration of
// coordinate descent; Bertrand and Massias, AISTATS 2021), which is kept if the objective is lower there.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "algorithms/lasso_design.h"
#include "algorithms/lasso_gap.h"
#include "algorithms/lasso_newton.h"

namespace orrery::lasso {

/// Goes on in rounds of parts, as a Newton step does: whoever has threads shares parts out between calls of next().
class ResidualDescent {
 public:
  /// Borrows all but the numbers; `coefficients` are by column. Will descend until the gap on the working set is at
  /// most `enough`, or no step helps.
  ResidualDescent(const Design& design, std::vector<double>& coefficients, Residual& residual,
                  std::span<const std::uint32_t> working, Penalty penalty, double enough);

  /// @return the number of parts to run before the next call; 0: it is over
  std::size_t next();
  /// Parts of a round may overlap in time, and any number of threads gives the same bits.
  void run(std::size_t part);
  /// All that is left, on this thread.
  void run_all();

 private:
  static constexpr std::size_t kDepth = 5;
  enum class Round : std::uint8_t { none, gradients, newton };

  std::size_t start_gradients();
  std::size_t start_newton();
  void find_support();
  double close() const;
  std::uint64_t support_entries() const;
  double move(std::uint32_t j);
  double sweep();
  void sweep_support(double enough);
  std::vector<double> now() const;
  bool extrapolate();
  void go_to(std::span<const double> target);
  double gap() const;
  double objective() const;

  const Design& design_;
  std::vector<double>& coefficients_;
  Residual& residual_;
  const std::span<const std::uint32_t> working_;
  const Penalty penalty_;
  const double enough_;
  Round round_ = Round::none, round_before_ = Round::none;
  int rounds_ = 0, stalled_ = 0;  ///< rounds on end in which the gap fell by little
  double gap_ = std::numeric_limits<double>::infinity();
  double fall_ = 0;                   ///< of the objective, in the round
  std::vector<std::uint32_t> first_;  ///< of the working set, by part
  std::vector<double> gradient_;      ///< by place in the working set
  std::vector<std::uint32_t> support_;
  std::vector<std::vector<double>> history_;  ///< coefficients on the support after each sweep
  SupportNewton newton_;
  bool is_newton_hard_ = false;
};

/// Weights c with Σ c = 1 for which |Σ c_k (history[k + 1] − history[k])| is least; empty if they are not determined.
std::vector<double> anderson_weights(std::span<const std::vector<double>> history);

}  // namespace orrery::lasso
