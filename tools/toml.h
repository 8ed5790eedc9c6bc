// The part of TOML that a run needs: `key = value` lines, [tables], comments, strings, numbers, booleans. Anything else
// (arrays, dates, nested tables) is refused with its line, so that no setting is read wrongly or lost.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::tools {

struct TomlEntry {
  std::string table;  ///< empty before the first [table]
  std::string key;
  std::string value;  ///< the text of the value: strings without quotes and escapes
  std::uint64_t line = 0;
};

/// @throws Error (data) with `file`, line and column. A key that stands twice in its table is an error.
std::vector<TomlEntry> parse_toml(std::string_view file, std::string_view text);
/// Reads a file whole, without a UTF-8 byte order mark. @throws Error (data) when it cannot be read or is UTF-16.
std::string read_text_file(const std::string& path);
/// `text` as a TOML string that parse_toml gives back.
std::string toml_string(std::string_view text);

}  // namespace orrery::tools
