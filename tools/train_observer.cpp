#include "tools/train_observer.h"

#include <array>
#include <charconv>
#include <utility>

namespace orrery::tools {

std::string fixed_text(double value, int digits) {
  std::array<char, 512> buffer{};
  const auto result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, digits);
  return {buffer.data(), result.ptr};
}

void RunObserver::evaluated(const ProgressPoint& point) {
  ValueList line{{"iteration", point.iteration}, {"seconds", point.seconds}, {"objective", point.evaluation.objective}};
  if (point.evaluation.valid) line.push_back({"valid", *point.evaluation.valid});
  for (const auto& [name, value] : point.evaluation.extra) line.push_back({name, value});
  const double now = rate(point);
  if (items_ > 0) line.push_back({item_name_ + "_per_second", now});
  line.push_back({"staleness_mean", point.staleness_mean});
  line.push_back({"staleness_max", point.staleness_max});
  line.push_back({"wait_seconds", point.wait_seconds});
  line.push_back({"bytes_sent", static_cast<std::int64_t>(point.bytes_sent)});
  metrics_.append(line);
  if (progress_.due()) progress_.status(status(point, now));
}

double RunObserver::rate(const ProgressPoint& point) {
  const Clock iterations = point.iteration - (last_ ? last_->iteration : 0);
  const double seconds = point.seconds - (last_ ? last_->seconds : 0);
  last_ = point;
  return iterations > 0 && seconds > 0 ? static_cast<double>(items_) * static_cast<double>(iterations) / seconds : 0;
}

std::string RunObserver::status(const ProgressPoint& point, double rate) const {
  std::string text = "iteration " + std::to_string(point.iteration) + "/" + std::to_string(iterations_) +
                     "  objective " + fixed_text(point.evaluation.objective, 5);
  if (point.evaluation.valid) text += "  held-out " + valid_name_ + " " + fixed_text(*point.evaluation.valid, 5);
  if (rate > 0) text += "  " + fixed_text(rate / 1e6, 2) + " M " + item_name_ + "/s";
  return text + "  " + fixed_text(point.seconds, 1) + " s";
}

void RunObserver::checkpoint(Clock iteration, std::vector<StateSection>&& state) {
  if (checkpoints_ == nullptr) return;
  // The lines up to the checkpoint must survive whatever the checkpoint survives.
  metrics_.sync();
  checkpoints_->write_behind({.clock = iteration, .sections = std::move(state)});
}

}  // namespace orrery::tools
