// JSON as every record of the project uses it. Reading and printing are compiled here once: instantiated wherever they
// are used they were the dearest part of a build.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace orrery {

/// Keeps the order in which keys were written, so that records read as they were meant.
using Json = nlohmann::ordered_json;

/// @return the value, or a discarded one (`is_discarded()`) when `text` is no JSON: the caller knows what to say.
Json parse_json(std::string_view text);

/// On one line, or broken and indented by `indent` columns. Bytes that are no UTF-8 become U+FFFD.
std::string json_text(const Json& value, int indent = -1);

}  // namespace orrery
