// Newton's step on the support of a Lasso: with signs held, the problem on the coefficients that are not 0 is smooth
// and quadratic, and conjugate gradients solve it from products with the columns alone (Hestenes and Stiefel, J. Res.
// NBS 1952), preconditioned by the curvatures. Where descent moves columns that share their only rows by little at a
// time, these go there at once; and unlike descent, in which each coordinate rests on the one before, a product is
// work for all threads.
//
// Coefficients that would change sign become 0 and the others are solved for again from there, a few times over. Each
// time the way is halved until the objective falls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/lasso_design.h"
#include "algorithms/lasso_gap.h"
#include "algorithms/lasso_support.h"

namespace orrery::lasso {

/// A step that goes on in rounds: next() alone says of how many parts the following one is, run() does one of them.
class SupportNewton {
 public:
  /// Borrows all three; `coefficients` are by column.
  SupportNewton(const Design& design, std::vector<double>& coefficients, Residual& residual)
      : design_(design), coefficients_(coefficients), residual_(residual), support_(design) {}

  /// Starts on these columns, whose coefficients are not 0. Slopes of at most `close` are as good as none: below what
  /// matters, the method would follow rounding in directions that are nearly flat.
  void begin(std::span<const std::uint32_t> columns, Penalty penalty, double close);
  /// @return the number of parts to run before the next call; 0: the step is over
  std::size_t next();
  /// Parts of a round may overlap in time, and any number of threads gives the same bits.
  void run(std::size_t part);
  /// What the objective fell by in a step that is over; 0 when nothing was gained, and nothing moved.
  double fall() const { return fall_; }
  /// Whether the way to a solution had to be cut short: signs were far from right.
  bool was_hard() const { return was_hard_; }

 private:
  enum class Round : std::uint8_t { none, slopes, rows, columns, trial, move };

  std::size_t start_stage();
  std::size_t start_descent();
  std::size_t go_along(double curved);
  std::size_t go_on();
  std::size_t start_trial(double length);
  std::size_t end_trial();
  std::size_t end_move();
  std::size_t end();
  double change() const;
  void weigh(std::span<const double> steps);
  void add_up_to_first_zero();
  double curvature_of(double square) const;
  double summed() const;
  bool is_close() const;

  const Design& design_;
  std::vector<double>& coefficients_;
  Residual& residual_;
  SupportColumns support_;
  Penalty penalty_;
  Round round_ = Round::none;
  int stage_ = 0, iterations_ = 0;
  double fall_ = 0, close_ = 0;
  bool was_hard_ = false;
  std::vector<std::uint32_t> columns_;
  std::vector<char> is_held_;  ///< at 0, by place in the support, as all that follows
  std::vector<double> gradient_, diagonal_;
  std::vector<double> trial_;                                    ///< step along the solution, held at signs
  std::vector<double> step_, slope_, scaled_slope_, direction_;  ///< x, r, z and d of the method
  std::vector<double> weights_;                                  ///< of raw columns, in a product
  double weighted_mean_ = 0;                                     ///< what a product has for a sum over rows
  double slope_square_ = 0, first_square_ = 0, length_ = 0, trial_length_ = 1, change_ = 0;
  std::vector<double> product_;  ///< by place
  std::vector<double> sums_;     ///< by part
};

}  // namespace orrery::lasso
