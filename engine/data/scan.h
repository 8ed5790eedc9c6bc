// The small scanning steps that all readers share. Every one relies on text that ends in a newline (pieces.h), so that
// a scan needs no other bound.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace orrery {

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

inline const char* skip_blanks(const char* p) {
  while (is_blank(*p)) ++p;
  return p;
}

/// The line end at p: 1 for LF, 2 for CR LF, 0 when the line goes on.
inline int line_end_at(const char* p) {
  if (*p == '\n') return 1;
  return *p == '\r' && p[1] == '\n' ? 2 : 0;
}

inline const char* find_newline(const char* p) {
  while (*p != '\n') ++p;
  return p;
}

/// The text from p up to the next blank or line end: what an error shows.
inline std::string_view word_at(const char* p) {
  const char* end = p;
  while (!is_blank(*end) && line_end_at(end) == 0) ++end;
  return {p, static_cast<std::size_t>(end - p)};
}

enum class NumberFault { none, not_a_number, not_finite, out_of_range };

/// What the reader expected, for an error message: `what` is "a rating" or the like.
inline std::string expected_number(NumberFault fault, std::string_view what) {
  std::string text{what};
  if (fault == NumberFault::not_finite) text += " that is finite";
  if (fault == NumberFault::out_of_range) text += " that the number type can hold";
  return text;
}

/// Parses a decimal number that begins at p, correctly rounded. `end` is set behind it (unchanged on a fault).
NumberFault parse_float_slow(const char* p, const char* limit, float& value, const char*& end);

inline NumberFault parse_float(const char* p, const char* limit, float& value, const char*& end) {
  static constexpr float kPower[] = {1e0F, 1e1F, 1e2F, 1e3F, 1e4F, 1e5F, 1e6F, 1e7F, 1e8F, 1e9F, 1e10F};
  const char* q = p;
  const bool negative = *q == '-';
  if (negative) ++q;
  const char* digits = q;
  std::uint32_t mantissa = 0;
  for (; is_digit(*q); ++q) mantissa = mantissa * 10 + static_cast<unsigned char>(*q - '0');
  std::ptrdiff_t count = q - digits;
  std::ptrdiff_t places = 0;
  if (*q == '.') {
    const char* point = q++;
    for (; is_digit(*q); ++q) mantissa = mantissa * 10 + static_cast<unsigned char>(*q - '0');
    places = q - point - 1;
    count += places;
  }
  // Up to 7 digits and their power of ten are exact in single precision, so one division rounds correctly.
  if (count == 0 || count > 7 || *q == 'e' || *q == 'E') return parse_float_slow(p, limit, value, end);
  const float magnitude = static_cast<float>(mantissa) / kPower[places];
  value = negative ? -magnitude : magnitude;
  end = q;
  return NumberFault::none;
}

/// The same in double precision.
NumberFault parse_double_slow(const char* p, const char* limit, double& value, const char*& end);

inline NumberFault parse_double(const char* p, const char* limit, double& value, const char*& end) {
  static constexpr double kPower[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                      1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const char* q = p;
  const bool negative = *q == '-';
  if (negative) ++q;
  const char* digits = q;
  std::uint64_t mantissa = 0;
  for (; is_digit(*q); ++q) mantissa = mantissa * 10 + static_cast<unsigned char>(*q - '0');
  std::ptrdiff_t count = q - digits;
  std::ptrdiff_t places = 0;
  if (*q == '.') {
    const char* point = q++;
    for (; is_digit(*q); ++q) mantissa = mantissa * 10 + static_cast<unsigned char>(*q - '0');
    places = q - point - 1;
    count += places;
  }
  // Up to 15 digits and their power of ten are exact in double precision.
  if (count == 0 || count > 15 || *q == 'e' || *q == 'E') return parse_double_slow(p, limit, value, end);
  const double magnitude = static_cast<double>(mantissa) / kPower[places];
  value = negative ? -magnitude : magnitude;
  end = q;
  return NumberFault::none;
}

/// Parses a decimal integer of at most `most`. Digits only. False when there is none or it is larger.
inline bool parse_unsigned(const char* p, const char* limit, std::uint64_t most, std::uint64_t& value,
                           const char*& end) {
  const auto [stop, error] = std::from_chars(p, limit, value);
  if (error != std::errc{} || value > most) return false;
  end = stop;
  return true;
}

}  // namespace orrery
