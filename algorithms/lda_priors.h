// The Dirichlet priors: α over the topics of a document, β over the words of a topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace orrery::lda {

struct Priors {
  std::vector<double> alpha;  ///< by topic, > 0
  double beta = 0.01;         ///< of every word, if word_beta is empty
  std::vector<double> word_beta;

  double alpha_sum() const;
  /// β̄ over `words` words.
  double beta_sum(std::size_t words) const;
  double beta_of(std::uint32_t word) const { return word_beta.empty() ? beta : word_beta[word]; }
  bool symmetric_alpha() const;
};

/// A prior as people write it: one positive number for all, or a file with `count` positive numbers, one a line.
/// @throws Error (usage) naming `option` for a number that is not positive, (data) for a bad line or another count.
std::vector<double> parse_prior(const std::string& option, const std::string& text, std::size_t count);

/// ln Γ, x > 0, to about 1e-14 relative; the same on every machine.
double log_gamma(double x);
/// ln Γ(x + n) − ln Γ(x), for n = 0, 1, …, kept for small n. Not for two threads while it is made.
class RisingLogs {
 public:
  explicit RisingLogs(double x);
  double operator()(std::int64_t n) const {
    return n < static_cast<std::int64_t>(table_.size()) ? table_[static_cast<std::size_t>(n)] : beyond(n);
  }

 private:
  double beyond(std::int64_t n) const;
  double x_, at_x_;
  std::vector<double> table_;
};
/// The same without a table.
double log_rising(double x, std::int64_t n);
/// Σ_(j < n) 1 / (x + j) = ψ(x + n) − ψ(x).
double reciprocal_sum(double x, std::int64_t n);

}  // namespace orrery::lda
