// The binomial family of the Lasso: log-odds b0 + x̃·β fitted by the mean of log(1 + exp(−y (b0 + x̃·β))), y = −1 or 1,
// and the same penalty (glmnet's objective).
//
// Working sets, deadlines and the path are those of squared errors: the slope by a coefficient is −x̃_j·r/n there too,
// with r = [y = 1] − p for the residual. What differs is the problem on a working set. It is solved by proximal Newton
// steps (Friedman, Hastie and Tibshirani, J. Stat. Softw. 2010, section 3; Lee, Sun and Saunders, SIAM J. Optim. 2014):
// the quadratic model of the loss is a Lasso of the same columns with the rows weighted by √(p (1 − p)), which the
// solvers of squared errors take (lasso_gram.h, lasso_descent.h); its minimum is a direction, along which the step is
// halved until the objective falls. The intercept, which carries no penalty, is always where its own slope is 0.
//
// Every t in [0, 1] gives a lower bound of the objective (Fenchel's dual, see logistic_certificate.h): with b = |r|,
//
//   D(t) = 1/n Σ H(t b_i) − Σ max(|t g_j| − l1, 0)² / (2 l2),  H(b) = −b log b − (1 − b) log(1 − b).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/lasso_design.h"
#include "algorithms/lasso_gap.h"
#include "engine/training.h"

namespace orrery::lasso {

/// The loss of log-odds, the row's class being ±1, and the probability that they give to the other class.
struct LogisticRow {
  double loss, wrong;
};
LogisticRow logistic_row(double margin, double sign);
/// Mean of the loss by row.
double mean_log_loss(std::span<const double> margins, std::span<const float> signs);
/// Entropy of a coin.
double coin_entropy(double b);

class LogisticFit {
 public:
  /// Borrows both; signs: −1 or 1 by row.
  LogisticFit(const Design& design, std::span<const float> signs);

  /// The mean loss where it stands.
  double loss() const { return loss_; }
  /// The constant beside centred columns.
  double intercept() const { return intercept_; }
  /// The better of D(1) and the D(t) that needs no squares. `sums`: of this point, with the largest |g|.
  double dual(const GapSums& sums, Penalty penalty, const Residual& residual) const;

  /// Goes to the coefficients (standardised, by column), from the beginning.
  void rebuild(std::span<const double> coefficients, Residual& residual);
  /// Descends on the working set until its gap is at most `enough`, or no step helps.
  void solve(std::span<const std::uint32_t> working, std::vector<double>& coefficients, Residual& residual,
             Penalty penalty, double enough);

  void save(std::vector<StateSection>& sections) const;
  void load(const std::vector<StateSection>& sections);

 private:
  GapSums sums_of(std::span<const std::uint32_t> working, std::span<const double> coefficients,
                  const Residual& residual, Penalty penalty) const;
  std::vector<double> model_minimum(std::span<const std::uint32_t> working, std::span<const double> coefficients,
                                    const Residual& residual, Penalty penalty, double enough) const;
  bool step(std::span<const std::uint32_t> working, std::span<const double> target, std::vector<double>& coefficients,
            Residual& residual, Penalty penalty);
  void settle_intercept();
  void take_margins(Residual& residual);

  const Design& design_;
  const std::span<const float> signs_;
  double loss_ = 0, intercept_ = 0;
  std::vector<double> margins_;  ///< by row
};

}  // namespace orrery::lasso
