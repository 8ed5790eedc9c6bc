// report.html of `orrery profile`: one page without scripts or anything from elsewhere, for wide and narrow screens,
// light and dark; every chart has a title, a description and its numbers as a table beside it.
#pragma once

#include <string>

#include "engine/json.h"

namespace orrery::tools {

/// `report`: of profile_json().
std::string profile_page(const Json& report);

}  // namespace orrery::tools
