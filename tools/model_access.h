// A model read back, with the algorithm that wrote it, and the check of a finished run from its files.
#pragma once

#include <memory>
#include <string>

#include "algorithms/algorithm.h"
#include "engine/engine.h"

namespace orrery::tools {

/// @throws Error (data) when there is no model in `directory` (of a run, or model/ itself), it is damaged, or this
/// build does not know its algorithm.
std::unique_ptr<Model> open_model(const std::string& directory);

/// `orrery verify` and --verify: all findings of the algorithm on the run in `directory`, printed unless quiet; true
/// when none failed. @throws Error (usage) for an unfinished run, (data) for files that cannot be read or are damaged.
bool verify_run(const std::string& directory, Engine& engine, bool quiet);

}  // namespace orrery::tools
