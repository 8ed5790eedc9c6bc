#include "engine/error.h"

#include <cstdio>
#include <cstring>

namespace orrery {

Error usage_error(std::string message) { return {ErrorKind::usage, std::move(message)}; }

Error data_error(std::string_view file, std::uint64_t line, std::uint64_t column, std::string_view expected,
                 std::string_view got) {
  std::string text{file};
  if (line != 0) text += ":" + std::to_string(line);
  if (column != 0) text += ":" + std::to_string(column);
  text += ": expected ";
  text += expected;
  text += ", got ";
  text += quoted(got);
  return {ErrorKind::data, std::move(text)};
}

Error data_error(std::string_view file, std::string_view what) {
  return {ErrorKind::data, std::string{file} + ": " + std::string{what}};
}

Error output_error(std::string_view file, int error_number) {
  return {ErrorKind::output, "cannot write " + std::string{file} + ": " + std::strerror(error_number)};
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kMost = 40;
  if (text.empty()) return "nothing";
  std::string out = "'";
  for (const char c : text.substr(0, kMost)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      char escaped[5];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
      out += escaped;
    } else {
      out += c;
    }
  }
  out += text.size() > kMost ? "…'" : "'";
  return out;
}

}  // namespace orrery
