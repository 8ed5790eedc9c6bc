#include "engine/data/scan.h"

#include <limits>

namespace orrery {

NumberFault parse_float_slow(const char* p, const char* limit, float& value, const char*& end) {
  if (*p == '+' && p[1] != '-') ++p;
  auto [stop, error] = std::from_chars(p, limit, value);
  if (error == std::errc::invalid_argument) return NumberFault::not_a_number;
  if (error == std::errc::result_out_of_range) {  // too large, or so small that it is zero
    double wide = 0;
    const auto [wide_stop, wide_error] = std::from_chars(p, limit, wide);
    if (wide_error != std::errc{} || std::fabs(wide) > 1) return NumberFault::out_of_range;
    value = static_cast<float>(wide);
    stop = wide_stop;
  }
  if (!std::isfinite(value)) return NumberFault::not_finite;
  end = stop;
  return NumberFault::none;
}

NumberFault parse_double_slow(const char* p, const char* limit, double& value, const char*& end) {
  if (*p == '+' && p[1] != '-') ++p;
  const auto [stop, error] = std::from_chars(p, limit, value);
  if (error == std::errc::invalid_argument) return NumberFault::not_a_number;
  if (error == std::errc::result_out_of_range) return NumberFault::out_of_range;
  if (!std::isfinite(value)) return NumberFault::not_finite;
  end = stop;
  return NumberFault::none;
}

}  // namespace orrery
