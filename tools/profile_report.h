// The numbers of `orrery profile`, from a run that was watched: report.json, from which the text and the page are made,
// so that all three say the same.
#pragma once

#include <string>

#include "algorithms/algorithm.h"
#include "engine/engine.h"
#include "engine/json.h"
#include "engine/profiled_trainee.h"
#include "engine/run_record.h"

namespace orrery::tools {

class ProfileTrials;

/// A watched training that is over. Everything must outlive what is made of it.
struct ProfiledRun {
  const Engine& engine;
  const Algorithm& algorithm;
  const Training& training;
  const ProfiledTrainee& trainee;
  const WorkerMap& map;
  Clock bound = 0;                  ///< how far apart clocks were allowed to be
  Clock recorded_iterations = 0;    ///< whose accesses were recorded
  std::size_t recorded_bytes = 0;   ///< the limit for them
  ProfileTrials* trials = nullptr;  ///< null: nothing that is recommended is tried
};

/// Keys only get added, never renamed.
Json profile_json(const ProfiledRun& run, const RunRecord& record);
/// For standard output.
std::string profile_text(const Json& report);

// --- words for numbers, shared by text and page ----------------------------------------------------------------------

/// "1.20 M", "312"
std::string count_text(double value);
/// "1.20 MB"
std::string bytes_text(double bytes);
/// "1.20 ms"
std::string seconds_text(double seconds);
/// "12.3 %"; "–" of nothing
std::string share_text(double part, double whole);

}  // namespace orrery::tools
