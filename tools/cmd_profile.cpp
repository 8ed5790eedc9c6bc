// `orrery profile`: trains as `orrery train` does, watched, and says what was accessed by whom and where time went
// (design section 1, user 3). Keeps the promises of files: the report appears whole, after the run it is of.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "engine/atomic_file.h"
#include "engine/error.h"
#include "engine/interrupt.h"
#include "engine/params.h"
#include "engine/progress.h"
#include "tools/commands.h"
#include "tools/nodes.h"
#include "tools/output.h"
#include "tools/profile_page.h"
#include "tools/profile_report.h"
#include "tools/profile_trials.h"
#include "tools/train_run.h"
#include "tools/train_words.h"

namespace orrery::tools {

namespace fs = std::filesystem;

namespace {

struct ProfileOptions {
  ProfileOptions() {
    params.add("report", report, "directory of the report: report.json, report.html")
        .add("record", record, "iterations whose accesses to tables are recorded, from the first", between(1, 1e6))
        .add("record-memory", record_memory, "most memory for that record (512M, 4G)")
        .add_choice("trials", trials, "try what is recommended, in short runs with it and without",
                    {{"on", true}, {"off", false}});
  }
  ProfileOptions(const ProfileOptions&) = delete;
  ProfileOptions& operator=(const ProfileOptions&) = delete;

  std::string report;
  std::int64_t record = 2;
  std::string record_memory = "256M";
  bool trials = true;
  ParamSet params;
};

class Profiler final : public RunProbe {
 public:
  Profiler(const ProfileOptions& options, std::uint64_t most_bytes, TrainWords& said, const InterruptGuard& interrupt,
           Progress& progress)
      : options_(options), most_bytes_(most_bytes), said_(said), interrupt_(interrupt), progress_(progress) {}

  fs::path json_file() const { return fs::path(options_.report) / "report.json"; }
  fs::path page_file() const { return fs::path(options_.report) / "report.html"; }

  Trainee& watch(const Engine& engine, const Algorithm& algorithm, const Training& training,
                 WorkerId workers) override {
    engine_ = &engine;
    algorithm_ = &algorithm;
    training_ = training;
    map_.emplace(workers, 1, 0, engine.domains());
    trainee_ = std::make_unique<ProfiledTrainee>(
        *training.trainee, ProfileLimits{.recorded_clocks = options_.record * training.clocks_per_iteration,
                                         .recorded_bytes = most_bytes_});
    return *trainee_;
  }

  // An old report would be one of another run from now on.
  void begin() override {
    std::error_code error;
    fs::create_directories(options_.report, error);
    if (error) throw output_error(options_.report, error.value());
    require_writable(options_.report, page_file().string());
    remove_orphans(options_.report);
    for (const fs::path& file : {json_file(), page_file()}) {
      fs::remove(file, error);
      if (error) throw output_error(file.string(), error.value());
    }
  }

  void finish(const RunRecord& record) override {
    ProfileTrials trials(said_.request, *said_.options, map_->workers(), *record.result, interrupt_.flag(), progress_);
    const ProfiledRun run{.engine = *engine_,
                          .algorithm = *algorithm_,
                          .training = training_,
                          .trainee = *trainee_,
                          .map = *map_,
                          .bound = trainee_->clock_bound(engine_->clock_bound()),
                          .recorded_iterations = std::min(options_.record, record.result->iterations),
                          .recorded_bytes = most_bytes_,
                          .trials = options_.trials ? &trials : nullptr};
    const Json report = profile_json(run, record);
    progress_.clear();
    if (!said_.session.quiet) print("\n" + profile_text(report));  // first: it needs no disk
    // Both are on disk before one has its name: a disk that fills up leaves no half of a report.
    AtomicFile json(json_file()), page(page_file());
    json.write(json_text(report, 1) + "\n");
    page.write(profile_page(report));
    json.flush();
    page.flush();
    json.commit();
    page.commit();
    if (!said_.session.quiet) print("report in " + page_file().string() + "\n");
  }

 private:
  const ProfileOptions& options_;
  const std::uint64_t most_bytes_;
  TrainWords& said_;
  const InterruptGuard& interrupt_;
  Progress& progress_;
  const Engine* engine_ = nullptr;
  const Algorithm* algorithm_ = nullptr;
  Training training_;
  std::optional<WorkerMap> map_;
  std::unique_ptr<ProfiledTrainee> trainee_;
};

}  // namespace

int profile_command(Words words) {
  ProfileOptions options;
  TrainWords said("profile", "Trains ALGORITHM on DATA and says what it accesses, in which order, and where time goes.",
                  &options.params);
  if (!said.parse(words)) return kDone;
  if (options.report.empty()) throw usage_error("--report is missing: the directory of the report");
  const std::uint64_t most_bytes = parse_bytes("--record-memory", options.record_memory);
  if (!said.options->simulate.empty()) {
    throw usage_error("--simulate: a profile is of time and memory as they are on this machine; leave it out");
  }
  InterruptGuard interrupt;
  Progress progress(2, said.session.progress, said.session.quiet);
  Profiler profiler(options, most_bytes, said, interrupt, progress);
  for (const fs::path& file : {profiler.json_file(), profiler.page_file()}) {
    std::error_code error;  // what cannot be looked at is said when it is to be written
    for (const std::string& other : {said.options->plan_out, said.session.dump_config, said.request.data,
                                     said.options->valid, said.options->init}) {
      if (!is_same_file(other, file)) continue;
      throw usage_error("--report: the report would be written over " + other + "; choose another directory or name");
    }
    if (!said.session.overwrite && fs::exists(file, error)) {
      throw usage_error("--report: " + options.report + " holds a report; choose another directory or say --overwrite");
    }
  }
  if (said.options->out.empty()) said.options->out = options.report;  // the run lies beside its report
  said.request.probe = &profiler;
  Nodes nodes(interrupt.terminated());  // one: see orrery.cpp
  return TrainRun(said.request, *said.options, said.session, progress, nodes, interrupt).run();
}

}  // namespace orrery::tools
