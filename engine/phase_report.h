// Where the time of a training went (design section 1, user 3), from the records of a ProfiledTrainee: by phase and
// worker, by clock, as a timeline; and how blocks travelled between domains. Pure functions.
//
// A unit begins when its worker is free, the clocks that it depends on are finished, what is done between clocks is
// done, its blocks have come, and a thread takes it. The stretch between two units of a worker is cut at these moments,
// in this order; each part is named by what it ended with. Slices of a worker that overlap count once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/clock.h"
#include "engine/profiled_trainee.h"
#include "engine/types.h"

namespace orrery {

/// What a worker's time went to.
enum class Activity : std::uint8_t {
  compute,     ///< a unit ran
  flush,       ///< its updates were handed over
  clock_wait,  ///< other workers had not finished a clock that it must not run ahead of; or a cut
  commit,      ///< settlement and commit between two clocks
  block_wait,  ///< a block was with another worker
  queued,      ///< ready, but no thread took it
};
inline constexpr std::size_t kActivities = 6;
const char* to_string(Activity activity);

/// Of one worker, from `start` to `end` in seconds of training: cuts (evaluations, checkpoints) take no time.
struct Stretch {
  Activity activity = Activity::compute;
  WorkerId worker = 0;
  Clock clock = 0;  ///< of the unit that ran or was next
  double start = 0, end = 0;
};

struct WorkerTime {
  std::array<double, kActivities> seconds{};  ///< by Activity
  std::uint64_t units = 0;
};

/// Phases of one clock. At staleness 0 clocks do not overlap.
struct ClockTime {
  Clock clock = 0;
  double seconds = 0;                ///< since the clock before was over
  double compute = 0;                ///< over all workers
  double longest = 0, shortest = 0;  ///< of a worker's compute
  double settle = 0, commit = 0, flush = 0;
};

struct PhaseReport {
  double seconds = 0;  ///< of training that was looked at
  std::vector<WorkerTime> workers;
  std::vector<ClockTime> clocks;
  std::vector<Stretch> stretches;  ///< by start; settle and commit have none of their own
  double settle_thread_seconds = 0, commit_seconds = 0;
  double evaluate_seconds = 0;  ///< not in `seconds`
  double busy_seconds = 0;      ///< thread time in any phase but evaluation
};
/// `bound`: how far apart clocks may be.
PhaseReport phases_of(const PhaseTrace& trace, const WorkerMap& map, Clock bound);

/// How blocks went from domain to domain in one clock.
struct BlockClock {
  Clock clock = 0;
  std::uint64_t visits = 0;
  std::uint64_t moves = 0;  ///< visits in another domain than the one before
  std::uint64_t bytes = 0;  ///< of those
};
struct BlockTravel {
  std::vector<BlockClock> clocks;
  std::vector<std::vector<std::uint32_t>> visits;  ///< by block and worker
  std::uint64_t least_moves_of_clock =
      0;  ///< if every block went through all domains that visit it, one after the other
};
/// `bytes`: by block; its size is the number of blocks.
BlockTravel travel_of(const PhaseTrace& trace, const WorkerMap& map, const std::vector<std::size_t>& bytes);

}  // namespace orrery
