// Tries what a profile recommends (design section 1, user 3), so that nobody is sent after a change that costs time:
// short runs of the same training on the same data, with one option said otherwise and without.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "algorithms/algorithm.h"
#include "engine/profile_advice.h"
#include "engine/progress.h"
#include "engine/run_record.h"
#include "tools/run_options.h"
#include "tools/train_run.h"

namespace orrery::tools {

/// Runs nothing before it is asked. Writes no files.
class ProfileTrials {
 public:
  /// For a run of `workers` that came to `result`. Everything must outlive it; once `interrupted` is set nothing is
  /// tried any more.
  ProfileTrials(const TrainRequest& request, const RunOptions& options, WorkerId workers, const RunResult& result,
                const std::atomic<bool>& interrupted, Progress& progress);

  /// The advice as it stands after a trial; unchanged if there is nothing to try. Cost: six runs of about a quarter of
  /// the profile's iterations, or of a fifth of a second if that is longer, each with loading the data.
  Advice judge(const Advice& advice);

 private:
  struct Outcome {
    double fastest = 0, slowest = 0;  ///< of a later iteration, over the runs
    double objective = 0;
  };
  std::optional<std::string> obstacle() const;
  Trial compare(const Change& change);
  Outcome run(const Change* change) const;

  const TrainRequest& request_;
  const RunOptions& options_;
  const WorkerId workers_;
  const Clock iterations_;
  const std::atomic<bool>& interrupted_;
  Progress& progress_;
};

}  // namespace orrery::tools
