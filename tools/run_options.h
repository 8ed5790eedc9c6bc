// The options of every training (cli.md), described once: command line, --config, --dump-config, run.json and `orrery
// describe` all read them from here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "algorithms/algorithm.h"
#include "engine/engine.h"
#include "engine/params.h"
#include "engine/progress.h"
#include "engine/training.h"

namespace orrery::tools {

/// What a run is: everything that a config file holds. Stays where it is: `params` is bound to the fields.
struct RunOptions {
  explicit RunOptions(const StopRules& defaults);
  RunOptions(const RunOptions&) = delete;
  RunOptions& operator=(const RunOptions&) = delete;

  std::string out;
  std::optional<int> threads;
  std::optional<int> workers;
  Consistency consistency = Consistency::bsp;
  std::int64_t staleness = 0;
  std::string schedule = "auto";
  int groups = 1;
  std::uint64_t seed = 1;
  StopRules stop;
  std::string valid;
  std::int64_t valid_every = 1;
  std::int64_t checkpoint_every = 0;
  std::string init;
  std::string memory_limit;
  Reassign reassign = Reassign::when_it_pays;
  bool plan = true;
  std::string plan_out;
  std::string plan_in;
  std::string topology;
  std::string simulate;
  std::string simd = "auto";
  std::string format;
  bool verify = false;

  ParamSet params;

  /// Consistency and staleness that belong together, after the words have been read: a bound alone means ssp.
  /// @throws Error (usage) for pairs that cannot be.
  void settle_consistency();
  EngineOptions engine_options() const;
};

/// What was said in `from` is said in `to` too, which has the same parameters.
void take_choices(const ParamSet& from, ParamSet& to);

/// How this call goes about it: not part of what the run is, so never in a config file.
struct SessionOptions {
  SessionOptions();
  SessionOptions(const SessionOptions&) = delete;
  SessionOptions& operator=(const SessionOptions&) = delete;

  bool resume = false;
  bool overwrite = false;
  std::string config;
  std::string dump_config;
  ProgressMode progress = ProgressMode::automatic;
  bool quiet = false;

  ParamSet params;
};

/// The options that commands on a finished model share.
struct ModelOptions {
  ModelOptions();
  ModelOptions(const ModelOptions&) = delete;
  ModelOptions& operator=(const ModelOptions&) = delete;

  std::string model;
  std::string format;
  std::optional<int> threads;
  std::string simd = "auto";

  ParamSet params;
  EngineOptions engine_options() const;
};

}  // namespace orrery::tools
