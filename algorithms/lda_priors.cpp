#include "algorithms/lda_priors.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <numeric>

#include "engine/data/portable_math.h"
#include "engine/error.h"

namespace orrery::lda {
namespace {

bool parse_positive(const std::string& text, double& value) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc{} && end == text.data() + text.size() && std::isfinite(value) && value > 0;
}

/// Arguments from which the asymptotic series are exact to double precision.
constexpr double kLarge = 16;

double digamma_of_large(double x) {
  const double r = 1 / (x * x);
  return portable_log(x) - 0.5 / x - r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r / 132))));
}

}  // namespace

double Priors::alpha_sum() const { return std::accumulate(alpha.begin(), alpha.end(), 0.0); }

double Priors::beta_sum(std::size_t words) const {
  return word_beta.empty() ? beta * static_cast<double>(words)
                           : std::accumulate(word_beta.begin(), word_beta.end(), 0.0);
}

bool Priors::symmetric_alpha() const {
  return std::all_of(alpha.begin(), alpha.end(), [&](double a) { return a == alpha[0]; });
}

std::vector<double> parse_prior(const std::string& option, const std::string& text, std::size_t count) {
  double value = 0;
  if (parse_positive(text, value)) return {value};
  double any = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), any).ptr == text.data() + text.size()) {
    throw usage_error(option + ": expected a number above 0 or a file of them, got " + orrery::quoted(text));
  }
  std::vector<std::string> lines;
  std::ifstream file(text);
  if (!file) throw data_error(text, "cannot be read; " + option + " takes a number above 0 or a file of them");
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  if (lines.size() != count) {
    throw data_error(text, "expected " + std::to_string(count) + " numbers, one a line, got " +
                               std::to_string(lines.size()) + " lines");
  }
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (!parse_positive(lines[i], values[i])) throw data_error(text, i + 1, 1, "a number above 0", lines[i]);
  }
  return values;
}

double log_gamma(double x) {
  double product = 1;
  while (x < kLarge) product *= x++;
  const double r = 1 / (x * x);
  const double series = (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r * (1.0 / 1680 - r / 1188)))) / x;
  return (x - 0.5) * portable_log(x) - x + 0.91893853320467274178 + series - portable_log(product);
}

RisingLogs::RisingLogs(double x) : x_(x), at_x_(log_gamma(x)), table_(4096) {
  for (std::size_t n = 1; n < table_.size(); ++n) {
    table_[n] = table_[n - 1] + portable_log(x + static_cast<double>(n - 1));
  }
}

double RisingLogs::beyond(std::int64_t n) const { return log_gamma(x_ + static_cast<double>(n)) - at_x_; }

double log_rising(double x, std::int64_t n) {
  constexpr std::int64_t kFew = 8;
  if (n > kFew) return log_gamma(x + static_cast<double>(n)) - log_gamma(x);
  double product = 1;
  for (std::int64_t j = 0; j < n; ++j) product *= x + static_cast<double>(j);
  return portable_log(product);
}

double reciprocal_sum(double x, std::int64_t n) {
  double sum = 0;
  for (; n > 0 && x < kLarge; --n, ++x) sum += 1 / x;
  return n == 0 ? sum : sum + digamma_of_large(x + static_cast<double>(n)) - digamma_of_large(x);
}

}  // namespace orrery::lda
