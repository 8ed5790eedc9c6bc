#include "engine/profile_advice.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace orrery {
namespace {

// Below it a share of the time is not worth a change.
constexpr double kWorthwhile = 0.1;
// A worker that needs more than so many threads' shares of a clock keeps the others waiting.
constexpr double kTooLong = 1.15;
// Shared rows cost more than rotating them from about here on.
constexpr double kMuchShared = 0.2;
constexpr double kManyTimesTheLeast = 1.5;
// A trial has won if an iteration takes at most this part of the time: short runs differ by some per cent by
// themselves.
constexpr double kWon = 0.93;

std::string number(double value, int digits) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, digits).ptr;
  return {text.data(), end};
}
std::string percent(double share) { return number(100 * share, 1) + " %"; }

/// The next number of workers that can be dealt evenly to the groups.
std::string even(const ProfileFacts& f, unsigned workers) {
  return std::to_string((workers + f.groups - 1) / f.groups * f.groups);
}

Advice on_workers(const ProfileFacts& f) {
  const std::string idle = "threads had nothing to run for " + percent(f.idle) + " of their time";
  const std::string more = even(f, std::max<unsigned>(4 * f.threads, 2 * f.workers));
  const std::string keep = "keep " + std::to_string(f.workers) + " workers";
  if (f.workers < f.threads) {
    return {"workers", "use at least as many workers as threads: --workers " + more + " (it changes the bits)",
            std::to_string(f.workers) + " workers on " + std::to_string(f.threads) + " threads; " + idle,
            Change{"workers", more}, keep};
  }
  const std::string longest =
      "the longest worker of a clock takes " + number(f.longest_over_share, 2) + " times a thread's share of it; ";
  if (f.idle > kWorthwhile && f.longest_over_share > kTooLong) {
    return {"workers", "cut the work finer: --workers " + more + " (it changes the bits)", longest + idle,
            Change{"workers", more}, keep};
  }
  return {"workers", keep, longest + idle};
}

Advice on_staleness(const ProfileFacts& f) {
  const std::string wait = "workers waited for clocks of others for " + percent(f.clock_wait) +
                           " of their time, and threads had nothing to run for " + percent(f.idle);
  if (!f.has_tables && !f.has_blocks) {
    return {"staleness", "keep staleness 0: this program puts its result together between clocks", wait};
  }
  const bool waits = f.idle > kWorthwhile && f.clock_wait > kWorthwhile;
  if (f.staleness == 0) {
    if (!waits) return {"staleness", "keep staleness 0: slack would win little", wait};
    return {"staleness",
            f.has_tables ? "use --staleness 1: slower workers keep the others less (the bits then depend on time)"
                         : "use --staleness 1: workers may run ahead, and blocks keep the bits",
            wait, Change{"staleness", "1"}, "keep staleness 0"};
  }
  const std::string lag = "reads were " + number(f.mean_lag, 2) + " clocks behind on average; " + wait;
  if (!waits && f.has_tables) {
    return {"staleness", "use --staleness 0: fresher reads cost little here, and the bits no longer depend on time",
            lag, Change{"staleness", "0"}, "keep the staleness"};
  }
  return {"staleness", "keep the staleness", f.has_tables ? lag : wait};
}

bool lacks_rows(const ProfileFacts& f) { return f.has_tables && f.is_cut; }
Advice on_what_was_cut(const char* about) {
  return {about, "no advice: profile with more --record-memory, or fewer iterations (--record)",
          "the record of accesses was cut"};
}

Advice on_placement(const ProfileFacts& f) {
  if (f.domains == 1) {
    return {"placement", "nothing to place: there is one domain", "0 bytes cross domains"};
  }
  if (!f.has_tables && !f.has_blocks) {
    return {"placement", "nothing to place: no tables and no blocks",
            std::to_string(f.domains) + " domains share what the program lays out itself"};
  }
  if (lacks_rows(f)) return on_what_was_cut("placement");
  std::string evidence =
      std::to_string(f.moved) + " bytes cross domains in a clock, at the least " + std::to_string(f.least);
  if (f.has_tables) evidence += "; " + percent(f.rows_of_one_domain) + " of the rows are touched by one domain only";
  if (static_cast<double>(f.moved) <= kManyTimesTheLeast * static_cast<double>(f.least)) {
    const double more = f.least > 0 ? static_cast<double>(f.moved) / static_cast<double>(f.least) - 1 : 0;
    return {"placement",
            std::string{"keep it: what crosses is "} + percent(std::max(0.0, more)) + " more than what must", evidence};
  }
  if (f.has_tables) {
    return {"placement",
            "order the data so that the shards of a domain touch the same rows: every domain is told of every row now",
            evidence};
  }
  return {"placement", "keep it: blocks go round all workers in turn, and no option has them stay longer", evidence};
}

Advice on_schedule(const ProfileFacts& f) {
  const auto offers = [&](const char* name) {
    return std::find(f.schedules.begin(), f.schedules.end(), name) != f.schedules.end();
  };
  if (f.has_blocks) {
    const std::string wait = "workers waited for blocks for " + percent(f.block_wait) + " of their time";
    if (f.block_wait > kWorthwhile && f.idle > kWorthwhile) {
      const std::string fewer = even(f, std::max<unsigned>(f.threads, f.workers / 2));
      return {"schedule", "have fewer workers queue for one block: --workers " + fewer + " (it changes the bits)", wait,
              Change{"workers", fewer}, "keep " + f.schedule};
    }
    return {"schedule", "keep " + f.schedule, wait};
  }
  if (lacks_rows(f)) return on_what_was_cut("schedule");
  if (f.has_tables) {
    const std::string shared = percent(f.adds_to_shared) + " of the adds went to rows that several workers add to";
    if (offers("rotation") && f.adds_to_shared > kMuchShared) {
      return {"schedule", "use --schedule rotation: each block has one owner, which writes in place", shared,
              Change{"schedule", "rotation"}, "keep " + f.schedule};
    }
    return {"schedule", "keep " + f.schedule, shared};
  }
  return {"schedule", "keep " + f.schedule, "units share nothing that they write"};
}

}  // namespace

std::vector<Advice> advise(const ProfileFacts& facts) {
  if (facts.iterations == 0) {
    std::vector<Advice> none;
    for (const char* about : {"workers", "staleness", "placement", "schedule"}) {
      none.push_back({about, "no advice: profile at least one iteration (--iterations)", "0 iterations were run"});
    }
    return none;
  }
  return {on_workers(facts), on_staleness(facts), on_placement(facts), on_schedule(facts)};
}

Advice judged(const Advice& advice, const Trial& trial) {
  Advice out = advice;
  const auto range = [](double low, double high) {
    return number(1e3 * low, 2) + " to " + number(1e3 * high, 2) + " ms ";
  };
  const std::string what_came = "an iteration took " + range(trial.fastest, trial.slowest) + "with " +
                                advice.change->text() + " and " + range(trial.fastest_before, trial.slowest_before) +
                                "without, when both were tried for " + std::to_string(trial.iterations) +
                                " iterations (objective " + number(trial.objective, 6) + " and " +
                                number(trial.objective_before, 6) + ")";
  out.evidence = what_came + "; " + advice.evidence;
  if (trial.slowest > kWon * trial.fastest_before) {
    out.what = advice.otherwise + ": " + advice.change->text() + " was tried and does not surely win time";
  }
  return out;
}

Advice untried(const Advice& advice, const std::string& reason) {
  Advice out = advice;
  out.what = advice.otherwise + "; " + advice.change->text() + " might win time, but was not tried: " + reason;
  return out;
}

}  // namespace orrery
