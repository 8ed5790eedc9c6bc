// What happens at the cuts of a training: a line in metrics.jsonl, the status line, a checkpoint written behind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint_store.h"
#include "engine/metrics.h"
#include "engine/progress.h"
#include "engine/training.h"

namespace orrery::tools {

class RunObserver final : public TrainingObserver {
 public:
  /// `checkpoints` may be null when they are off. `iterations` is the limit, for the status line; `valid_name` names
  /// what Evaluation::valid is, empty without held-out data. `items` of `item_name` are worked through in an iteration
  /// (Training::items_per_iteration).
  RunObserver(MetricsFile& metrics, CheckpointStore* checkpoints, Progress& progress, Clock iterations,
              std::string valid_name, std::uint64_t items, std::string item_name)
      : metrics_(metrics),
        checkpoints_(checkpoints),
        progress_(progress),
        iterations_(iterations),
        valid_name_(std::move(valid_name)),
        items_(items),
        item_name_(std::move(item_name)) {}

  void evaluated(const ProgressPoint& point) override;
  void checkpoint(Clock iteration, std::vector<StateSection>&& state) override;

 private:
  std::string status(const ProgressPoint& point, double rate) const;
  /// Items a second since the last evaluation; 0 when it cannot be said.
  double rate(const ProgressPoint& point);

  MetricsFile& metrics_;
  CheckpointStore* checkpoints_;
  Progress& progress_;
  Clock iterations_;
  std::string valid_name_;
  std::uint64_t items_;
  std::string item_name_;
  std::optional<ProgressPoint> last_;
};

/// `value` with `digits` after the point, for people.
std::string fixed_text(double value, int digits);

}  // namespace orrery::tools
