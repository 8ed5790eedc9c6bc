// Access plans on the side of the command line (design section 6): the files of --plan-out and --plan-in, and what
// run.json says of the plan that a run learned.
#pragma once

#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "engine/checkpoint_store.h"
#include "engine/engine.h"
#include "engine/training.h"
#include "tools/run_options.h"

namespace orrery::tools {

/// Before anything is read. `inputs`: files that the run reads, beside a plan. @throws Error (usage) for words that do
/// not go together and for a file that must not be written, (output) for one that cannot be.
void check_plan_words(const RunOptions& options, const SessionOptions& session, const std::vector<std::string>& inputs,
                      bool several);

/// What a plan depends on: who touches which rows. A plan changes no bit, so nothing else belongs here.
Fingerprint plan_fingerprint(const Algorithm& algorithm, WorkerId workers);

/// Follows the plan of --plan-in, if there is one, before the first clock. @throws Error (usage) where there is nothing
/// to plan, (data) for a file that is damaged or of another program, data or number of workers.
void follow_plan_file(const RunOptions& options, const Fingerprint& fingerprint, Trainee& trainee, Engine& engine);

/// Has this process accessed a table, so that there is something to plan?
bool has_accessed(const Trainee& trainee);

/// Of whose accesses a plan tells: a rank knows of its own workers, a process of what it ran itself.
struct PlanScope {
  NodeId rank = 0;
  Clock since_iteration = 0;
};
/// `plan` of run.json.
std::string plan_json(const Trainee& trainee, const Engine& engine, const TrainResult& result, PlanScope scope,
                      bool is_on);

}  // namespace orrery::tools
