// What to change about a run, judged from its profile: each piece of advice names the number that it rests on, and a
// change that can be tried is judged anew by what came of the trial. Pure functions; thresholds stand here and nowhere
// else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/types.h"

namespace orrery {

/// What advice is judged from. Shares are in [0, 1].
struct ProfileFacts {
  Clock iterations = 0;  ///< that were looked at
  unsigned threads = 1;
  WorkerId workers = 1;
  std::uint32_t groups = 1;  ///< of a hybrid schedule: workers are a multiple of them
  DomainId domains = 1;
  Clock staleness = 0;  ///< kNoBound: async
  std::string schedule;
  std::vector<std::string> schedules;  ///< that the algorithm offers
  bool has_tables = false, has_blocks = false;
  bool is_cut = false;    ///< accesses to tables are missing, so that what is said of rows is not known
  double idle = 0;        ///< of thread time: nothing ran
  double clock_wait = 0;  ///< of worker time
  double block_wait = 0;
  double longest_over_share = 0;       ///< a clock's longest worker over the clock's compute divided by threads; mean
  double mean_lag = 0;                 ///< clocks that reads were behind
  double adds_to_shared = 0;           ///< of adds: to rows that several workers add to
  double rows_of_one_domain = 0;       ///< of rows that are touched
  std::uint64_t moved = 0, least = 0;  ///< bytes between domains in a clock, as it is and at the least
};

/// One option of a run, to be said otherwise.
struct Change {
  std::string option;  ///< "workers", "staleness", "schedule"
  std::string value;
  std::string text() const { return "--" + option + " " + value; }
};

struct Advice {
  std::string about;     ///< "workers", "staleness", "placement", "schedule"
  std::string what;      ///< a sentence
  std::string evidence;  ///< what was measured, with the number
  /// What the advice is to do, where that can be tried; and what to say instead if it does not pay.
  std::optional<Change> change = {};
  std::string otherwise = {};
};
/// One for each of the four subjects, also where everything is well.
std::vector<Advice> advise(const ProfileFacts& facts);

/// Short runs of the training in turns, as it was and with the change of an advice, over as many iterations.
struct Trial {
  Clock iterations = 0;
  /// Of an iteration after the first: the fastest and the slowest run with the change, and without.
  double fastest = 0, slowest = 0, fastest_before = 0, slowest_before = 0;
  double objective = 0, objective_before = 0;
};
/// The advice, with what came of it; or that it is better left, unless every run with it was faster than all without.
Advice judged(const Advice& advice, const Trial& trial);
/// The same for a change that could not be tried: `reason` is a clause.
Advice untried(const Advice& advice, const std::string& reason);

}  // namespace orrery
