// Who watches a run of `orrery train` from within (orrery profile): stands between the engine and what is trained, and
// hears when files may be written and when the run is over.
#pragma once

#include "algorithms/algorithm.h"
#include "engine/engine.h"
#include "engine/run_record.h"

namespace orrery::tools {

/// All calls come from the thread in TrainRun::run(), in this order.
class RunProbe {
 public:
  virtual ~RunProbe() = default;
  /// Everything is laid out. @return what is trained in the place of the training's trainee; must outlive the run.
  virtual Trainee& watch(const Engine& engine, const Algorithm& algorithm, const Training& training,
                         WorkerId workers) = 0;
  /// The input is good: the run begins to write.
  virtual void begin() = 0;
  /// The run went to its end; the record holds what came of it. Not called for one that was interrupted.
  virtual void finish(const RunRecord& record) = 0;
};

}  // namespace orrery::tools
