// exp and log of our own. The C library picks its code by processor, so its last bit may differ between machines; a
// generated data set must not (design section 5: what changes bits may not depend on the machine).
#pragma once

#include <cmath>

namespace orrery {

/// Natural logarithm of a positive finite number, to about 1 ulp: x = 2^e m, log m = 2 atanh((m − 1) / (m + 1)).
inline double portable_log(double x) {
  constexpr double kLog2 = 0.6931471805599453094;
  int exponent = 0;
  double m = 2.0 * std::frexp(x, &exponent);
  --exponent;
  if (m > 1.4142135623730950488) {
    m *= 0.5;
    ++exponent;
  }
  const double t = (m - 1.0) / (m + 1.0);
  const double square = t * t;
  double sum = 0.0;
  for (int k = 25; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return exponent * kLog2 + 2.0 * t * sum;
}

/// Exponential, to about 2 ulp for |x| < 700: x = k log 2 + r with |r| ≤ 0.35, Taylor series of exp r.
inline double portable_exp(double x) {
  if (x < -745.0) return 0.0;
  const double k = std::floor(x * 1.4426950408889634074 + 0.5);
  const double r = (x - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10;  // log 2 in two parts
  double sum = 1.0;
  for (int i = 17; i >= 1; --i) sum = 1.0 + sum * r / i;
  return std::ldexp(sum, static_cast<int>(k));
}

}  // namespace orrery
