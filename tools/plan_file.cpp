#include "tools/plan_file.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "engine/checksum.h"
#include "engine/error.h"
#include "engine/json.h"
#include "engine/metrics.h"
#include "engine/run_directory.h"
#include "tools/output.h"

namespace orrery::tools {
namespace {

namespace fs = std::filesystem;

// Nothing is lost by it that was not given up, and what cannot be written is said before the training.
void check_plan_out(const RunOptions& options, const SessionOptions& session, const std::vector<std::string>& inputs) {
  const fs::path file = options.plan_out;
  if (file.empty()) return;
  std::error_code error;  // what cannot be looked at cannot be written either, which is said in the end
  // Absolute first: what is not there would stay relative, and a mere name has no folder.
  const fs::path place = fs::weakly_canonical(fs::absolute(file), error);
  const fs::path run = fs::weakly_canonical(fs::absolute(fs::path(options.out) / "x"), error).parent_path();
  const auto [of_run, of_file] = std::mismatch(run.begin(), run.end(), place.begin(), place.end());
  const bool is_in_run = of_run == run.end() && of_file != place.end();
  if (is_in_run && RunDirectory::writes(of_file->string())) {
    throw usage_error("--plan-out: " + file.string() + " is a name that the run itself writes; choose another name");
  }
  const bool will_be_there = is_in_run && place.parent_path() == run;
  if (!will_be_there) {
    if (!fs::is_directory(place.parent_path(), error)) throw output_error(file.string(), ENOENT);
    require_writable(place.parent_path().string(), file.string());
  }
  check_not_of_run("--plan-out", file.string(), options.init);
  for (const auto& [option, other] : {std::pair{"--out", options.out}, {"--dump-config", session.dump_config}}) {
    if (other.empty() || !is_same_file(file, other)) continue;
    throw usage_error("--plan-out: " + file.string() + " is also what " + option + " writes; choose another name");
  }
  if (!fs::exists(file, error)) return;
  check_not_read("--plan-out", file, inputs);
  if (!fs::is_regular_file(file, error)) throw usage_error("--plan-out: " + file.string() + " is no regular file");
  if (session.overwrite) return;
  throw usage_error("--plan-out: " + file.string() + " is there; choose another name or say --overwrite");
}

const char* plan_reason(const AccessCounts& counts, bool is_on) {
  if (!is_on) return "--plan off: rows are found by hash";
  if (counts.reads + counts.adds == 0) return "not accessed by any iteration of this process: nothing is planned";
  if (counts.adds == 0) return "only read: the cache is read in place";
  if (counts.replicated > 0) {
    return "rows that are added to again are found by slot; workers that touch most rows have one for every row";
  }
  if (counts.rows == 0) return "what is accessed does not repeat: left unplanned, rows are found by hash";
  return "rows that are added to again are found by slot";
}

}  // namespace

void check_plan_words(const RunOptions& options, const SessionOptions& session, const std::vector<std::string>& inputs,
                      bool several) {
  for (const auto& [name, file] : {std::pair{"--plan-out", options.plan_out}, {"--plan-in", options.plan_in}}) {
    if (file.empty()) continue;
    if (!options.plan) throw usage_error(std::string{name} + " needs --plan on");
    if (!options.simulate.empty() || several) {
      throw usage_error(std::string{name} + ": a plan of one node, and here are several");
    }
  }
  if (session.overwrite && is_same_file(options.plan_in, fs::path(options.out) / "plan.bin")) {
    throw usage_error("--plan-in: " + options.plan_in + " belongs to the run that --overwrite removes; move it first");
  }
  check_plan_out(options, session, inputs);
}

Fingerprint plan_fingerprint(const Algorithm& algorithm, WorkerId workers) {
  Fingerprint all;
  all.add("file", "access plan 1")
      .add("algorithm", algorithm.info().name)
      .add("data", checksum_text(algorithm.data_summary().checksum))
      .add("workers", std::to_string(workers));
  return all;
}

void follow_plan_file(const RunOptions& options, const Fingerprint& fingerprint, Trainee& trainee, Engine& engine) {
  if (trainee.accesses().empty()) {
    constexpr const char* kNothing = "nothing here is in tables, so there is no access to plan";
    if (options.params.was_set("plan")) engine.warn(std::string{"--plan: "} + kNothing);
    if (!options.plan_out.empty()) throw usage_error(std::string{"--plan-out: "} + kNothing);
    if (!options.plan_in.empty()) throw usage_error(std::string{"--plan-in: "} + kNothing);
    return;
  }
  if (options.plan_in.empty()) return;
  try {
    trainee.follow_plans(read_checkpoint(options.plan_in, fingerprint).sections);
  } catch (const Error& error) {
    throw Error(error.kind(), std::string{"--plan-in (a plan file is a checkpoint of a plan): "} + error.what());
  }
}

bool has_accessed(const Trainee& trainee) {
  const auto all = trainee.accesses();
  return std::any_of(all.begin(), all.end(), [](const auto& one) { return one.second.reads + one.second.adds > 0; });
}

std::string plan_json(const Trainee& trainee, const Engine& engine, const TrainResult& result, PlanScope scope,
                      bool is_on) {
  Json tables = Json::array();
  for (const auto& [name, counts] : trainee.accesses()) {
    tables.push_back({{"name", name},
                      {"reads", counts.reads},
                      {"adds", counts.adds},
                      {"misses", counts.misses},
                      {"planned_rows", counts.rows},
                      {"extensions", counts.extensions},
                      {"replicating_workers", counts.replicated},
                      {"reason", plan_reason(counts, is_on)}});
  }
  Json plan{{"on", is_on},
            {"rank", scope.rank},
            {"since_iteration", scope.since_iteration},
            {"costs", parse_json(to_json(named(engine.access_costs())))},
            {"tables", std::move(tables)}};
  if (result.first_iteration_seconds && result.later_iteration_seconds) {
    plan["first_iteration_seconds"] = *result.first_iteration_seconds;
    plan["later_iteration_seconds"] = *result.later_iteration_seconds;
  }
  return json_text(plan);
}

}  // namespace orrery::tools
