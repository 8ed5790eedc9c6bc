#include "engine/phase_report.h"

#include <algorithm>
#include <limits>
#include <map>

namespace orrery {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// The records without cuts, whose time is taken out, and when those were; by start.
struct Running {
  std::vector<PhaseRecord> records;
  std::vector<double> cuts;
  double evaluated = 0;
};

// Nothing runs at a cut: it lasts from the end of the last phase before an evaluation to the first start after it.
Running without_cuts(const PhaseTrace& trace) {
  const std::vector<PhaseRecord>& all = trace.records;
  std::vector<double> next_start(all.size() + 1, kNever);
  for (std::size_t i = all.size(); i-- > 0;) {
    const bool runs = all[i].phase != Phase::evaluate;
    next_start[i] = runs ? std::min(next_start[i + 1], all[i].start) : next_start[i + 1];
  }
  Running out;
  double last_end = next_start[0], removed = next_start[0];
  bool at_cut = false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    PhaseRecord record = all[i];
    if (record.phase == Phase::evaluate) {
      out.evaluated += record.end - record.start;
      at_cut = true;
      continue;
    }
    if (at_cut) {
      out.cuts.push_back(last_end - removed);
      removed += next_start[i] - last_end;
      at_cut = false;
    }
    last_end = std::max(last_end, record.end);
    record.start -= removed;
    record.end -= removed;
    out.records.push_back(record);
  }
  std::stable_sort(out.records.begin(), out.records.end(),
                   [](const PhaseRecord& a, const PhaseRecord& b) { return a.start < b.start; });
  return out;
}

/// When the clocks were finished: by all workers, and with what follows.
class ClockEnds {
 public:
  explicit ClockEnds(const std::vector<PhaseRecord>& records) {
    for (const PhaseRecord& record : records) {
      const bool is_workers = record.phase == Phase::compute || record.phase == Phase::flush;
      double& end = (is_workers ? worked_ : settled_).try_emplace(record.clock, 0.0).first->second;
      end = std::max(end, record.end);
    }
  }
  double worked(Clock clock) const { return value(worked_, clock); }
  double settled(Clock clock) const { return value(settled_, clock); }

 private:
  static double value(const std::map<Clock, double>& ends, Clock clock) {
    const auto found = ends.find(clock);
    return found == ends.end() ? 0 : found->second;
  }
  std::map<Clock, double> worked_, settled_;
};

/// Goes through the records by start and cuts each worker's time.
class Timeline {
 public:
  Timeline(const Running& running, const PhaseTrace& trace, const WorkerMap& map, Clock bound)
      : running_(running),
        trace_(trace),
        ends_(running.records),
        first_worker_(map.first_worker(map.this_node())),
        bound_(bound),
        free_(map.first_worker(map.this_node() + 1) - first_worker_, 0) {
    report_.workers.resize(free_.size());
  }

  PhaseReport report() {
    double end = 0;
    for (const PhaseRecord& record : running_.records) {
      end = std::max(end, record.end);
      take(record);
    }
    for (std::size_t w = 0; w < free_.size(); ++w) {
      stretch(Activity::clock_wait, first_worker_ + static_cast<WorkerId>(w), last_clock_, free_[w], end);
    }
    report_.seconds = end;
    report_.evaluate_seconds = running_.evaluated;
    std::stable_sort(report_.stretches.begin(), report_.stretches.end(),
                     [](const Stretch& a, const Stretch& b) { return a.start < b.start; });
    return std::move(report_);
  }

 private:
  void take(const PhaseRecord& record) {
    const double seconds = record.end - record.start;
    report_.busy_seconds += seconds;
    if (record.phase == Phase::settle) report_.settle_thread_seconds += seconds;
    if (record.phase == Phase::commit) report_.commit_seconds += seconds;
    if (record.phase == Phase::compute) take_unit(record);
    if (record.phase == Phase::flush) run(Activity::flush, record, free_[record.worker - first_worker_]);
  }

  void take_unit(const PhaseRecord& unit) {
    last_clock_ = std::max(last_clock_, unit.clock);
    ++report_.workers[unit.worker - first_worker_].units;
    double at = free_[unit.worker - first_worker_];
    const auto wait = [&](Activity what, double until) {
      until = std::min(until, unit.start);
      if (until <= at) return;
      stretch(what, unit.worker, unit.clock, at, until);
      at = until;
    };
    const double clocks = bound_ < unit.clock ? ends_.worked(unit.clock - bound_ - 1) : 0;
    wait(Activity::clock_wait, clocks);
    if (bound_ == 0 && unit.clock > 0) wait(Activity::commit, ends_.settled(unit.clock - 1));
    wait(Activity::clock_wait, last_cut(unit.start));
    double blocks = 0;
    for (std::size_t b = 0; b < unit.blocks; ++b) {
      double& left = left_.try_emplace({unit.group, trace_.blocks[unit.first_block + b]}, 0.0).first->second;
      blocks = std::max(blocks, left);
      left = unit.end;
    }
    wait(Activity::block_wait, blocks);
    wait(Activity::queued, unit.start);
    run(Activity::compute, unit, unit.start);
  }

  // Slices of a worker may overlap: its time is that in which one at least runs.
  void run(Activity what, const PhaseRecord& record, double start) {
    double& free = free_[record.worker - first_worker_];
    stretch(what, record.worker, record.clock, std::max(start, free), record.end);
    free = std::max(free, record.end);
  }

  void stretch(Activity what, WorkerId worker, Clock clock, double start, double end) {
    if (end <= start) return;
    report_.stretches.push_back({what, worker, clock, start, end});
    report_.workers[worker - first_worker_].seconds[static_cast<std::size_t>(what)] += end - start;
  }

  double last_cut(double before) const {
    const auto next = std::upper_bound(running_.cuts.begin(), running_.cuts.end(), before);
    return next == running_.cuts.begin() ? 0 : *(next - 1);
  }

  const Running& running_;
  const PhaseTrace& trace_;
  const ClockEnds ends_;
  const WorkerId first_worker_;
  const Clock bound_;
  std::vector<double> free_;                                  ///< by worker of this node: the end of what it did last
  std::map<std::pair<std::uint32_t, BlockId>, double> left_;  ///< the end of a block's last visit
  Clock last_clock_ = 0;
  PhaseReport report_;
};

std::vector<ClockTime> clock_times(const std::vector<PhaseRecord>& records, const WorkerMap& map) {
  struct Sums {
    ClockTime time;
    double end = 0;
    std::vector<double> compute;
  };
  const WorkerId first = map.first_worker(map.this_node());
  std::map<Clock, Sums> clocks;
  for (const PhaseRecord& record : records) {
    Sums& sums = clocks[record.clock];
    const double seconds = record.end - record.start;
    sums.end = std::max(sums.end, record.end);
    sums.compute.resize(map.first_worker(map.this_node() + 1) - first, 0);
    if (record.phase == Phase::compute) sums.compute[record.worker - first] += seconds;
    if (record.phase == Phase::flush) sums.time.flush += seconds;
    if (record.phase == Phase::settle) sums.time.settle += seconds;
    if (record.phase == Phase::commit) sums.time.commit += seconds;
  }
  std::vector<ClockTime> out;
  double before = 0;
  for (auto& [clock, sums] : clocks) {
    if (*std::max_element(sums.compute.begin(), sums.compute.end()) == 0) continue;  // what follows the last clock
    sums.time.clock = clock;
    sums.time.seconds = std::max(0.0, sums.end - before);
    for (const double seconds : sums.compute) sums.time.compute += seconds;
    const auto [least, most] = std::minmax_element(sums.compute.begin(), sums.compute.end());
    sums.time.shortest = *least;
    sums.time.longest = *most;
    before = std::max(before, sums.end);
    out.push_back(sums.time);
  }
  return out;
}

}  // namespace

const char* to_string(Activity activity) {
  constexpr std::array<const char*, kActivities> kNames{
      "compute", "flush", "wait for a clock", "settle and commit", "wait for a block", "no thread free"};
  return kNames[static_cast<std::size_t>(activity)];
}

PhaseReport phases_of(const PhaseTrace& trace, const WorkerMap& map, Clock bound) {
  const Running running = without_cuts(trace);
  if (running.records.empty()) return {};
  PhaseReport report = Timeline(running, trace, map, bound).report();
  report.clocks = clock_times(running.records, map);
  return report;
}

BlockTravel travel_of(const PhaseTrace& trace, const WorkerMap& map, const std::vector<std::size_t>& bytes) {
  BlockTravel out;
  const WorkerId first = map.first_worker(map.this_node());
  out.visits.assign(bytes.size(), std::vector<std::uint32_t>(map.first_worker(map.this_node() + 1) - first, 0));
  std::map<std::pair<std::uint32_t, BlockId>, DomainId> lies_in;
  std::map<Clock, BlockClock> clocks;
  for (const PhaseRecord& unit : trace.records) {
    for (std::size_t b = 0; b < unit.blocks; ++b) {
      const BlockId block = trace.blocks[unit.first_block + b];
      BlockClock& clock = clocks[unit.clock];
      ++clock.visits;
      ++out.visits[block][unit.worker - first];
      const auto [lay, is_first] = lies_in.try_emplace({unit.group, block}, unit.domain);
      if (!is_first && lay->second != unit.domain) {
        ++clock.moves;
        clock.bytes += bytes[block];
      }
      lay->second = unit.domain;
    }
  }
  for (auto& [number, clock] : clocks) {
    clock.clock = number;
    out.clocks.push_back(clock);
  }
  for (const std::vector<std::uint32_t>& visits : out.visits) {
    std::uint64_t domains = 0;
    DomainId last = kNoDomain;
    for (WorkerId w = 0; w < visits.size(); ++w) {
      if (visits[w] == 0 || map.domain_of(first + w) == last) continue;
      last = map.domain_of(first + w);
      ++domains;
    }
    out.least_moves_of_clock += domains > 0 ? domains - 1 : 0;
  }
  return out;
}

}  // namespace orrery
