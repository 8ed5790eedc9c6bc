// `orrery train`: words and config file become a run (train_run.h).
#include <algorithm>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "engine/error.h"
#include "engine/interrupt.h"
#include "engine/progress.h"
#include "tools/commands.h"
#include "tools/failure.h"
#include "tools/nodes.h"
#include "tools/output.h"
#include "tools/run_options.h"
#include "tools/toml.h"
#include "tools/train_run.h"

namespace orrery::tools {

namespace {

constexpr const char* kSummary = "Trains ALGORITHM on DATA and leaves model, metrics and run record in --out.";

/// A config file: where it came from and what it says.
struct Config {
  std::string file;
  std::vector<TomlEntry> entries;

  /// The value of a key outside tables; empty when it is not there.
  std::string value(const std::string& key) const {
    for (const TomlEntry& entry : entries) {
      if (entry.table.empty() && entry.key == key) return entry.value;
    }
    return {};
  }
};

Config read_config(Words words) {
  const std::optional<std::string> file = option_value(words, "--config");
  if (!file) return {};
  return {.file = *file, .entries = parse_toml(*file, read_text_file(*file))};
}

std::vector<std::string> flag_names() {
  std::vector<std::string> flags{"-h", "--help"};
  const auto add = [&](const ParamSet& params) {
    for (const ParamInfo& info : params.describe()) {
      if (info.type != "bool") continue;
      flags.push_back("--" + info.name);
      flags.push_back("--no-" + info.name);
    }
  };
  add(RunOptions(StopRules{}).params);
  add(SessionOptions().params);
  for (const AlgorithmEntry& entry : algorithms()) add(entry.make()->params());
  return flags;
}

/// Sets what the file says and the command line does not.
void apply_config(const Config& config, const std::string& algorithm, ParamSet& own, ParamSet& common) {
  for (const TomlEntry& entry : config.entries) {
    if (entry.table.empty() && (entry.key == "algorithm" || entry.key == "data")) continue;
    const std::string place = config.file + ":" + std::to_string(entry.line) + ": ";
    if (!entry.table.empty() && entry.table != algorithm) {
      throw usage_error(place + "expected table [" + algorithm + "], got [" + entry.table + "]");
    }
    const bool is_own = !entry.table.empty();
    ParamSet& params = is_own ? own : common;
    if (params.has(entry.key) && params.was_set(entry.key)) continue;
    try {
      // A dumped file spells out what only another solver uses; that must not read as a wish.
      is_own ? params.set_from_file(entry.key, entry.value) : params.set(entry.key, entry.value);
    } catch (const Error& error) {
      throw Error(error.kind(), place + error.what());
    }
  }
}

void append_params(std::string& text, const ParamSet& params, const std::string& left_out = {}) {
  for (const ParamInfo& info : params.describe()) {
    const std::string value = params.get(info.name);
    if (value.empty() || (info.optional && value == "auto") || info.name == left_out) continue;
    const bool plain = info.type == "integer" || info.type == "real" || info.type == "bool";
    text += info.name + " = " + (plain ? value : toml_string(value)) + "\n";
  }
}

/// The whole run as a config file; `train --config` takes it back to the same bits.
std::string config_text(const TrainRequest& request, const ParamSet& common) {
  const std::string& name = request.algorithm->info().name;
  std::string text = "# Repeat this run with: orrery train --config THIS_FILE --out DIR\n";
  text += "algorithm = " + toml_string(name) + "\ndata = " + toml_string(request.data) + "\n";
  // Patience without held-out data is a contradiction when it is asked for, so its default must not be written down.
  append_params(text, common, common.get("valid").empty() ? "patience" : "");
  text += "\n[" + name + "]\n";
  append_params(text, request.algorithm->params());
  return text;
}

int print_general_help() {
  RunOptions options{StopRules{}};
  SessionOptions session;
  std::string algorithm;
  std::string data;
  Arguments arguments("train", kSummary);
  arguments.positional("ALGORITHM", algorithm, "see `orrery list`").positional("DATA", data, "file to train on");
  arguments.options(options.params).options(session.params, "Options of this call");
  arguments.note("orrery train ALGORITHM --help adds the parameters of the algorithm and its own defaults.");
  print(arguments.help());
  return kDone;
}

bool help_wanted(Words words) {
  return std::any_of(words.begin(), words.end(), [](const auto& word) { return word == "-h" || word == "--help"; });
}

int train(Words words, Nodes& nodes, InterruptGuard& interrupt) {
  const std::vector<std::string> flags = flag_names();
  std::optional<std::string> name = first_positional(words, flags);
  if (!name && help_wanted(words)) return nodes.is_first() ? print_general_help() : kDone;
  const Config config = help_wanted(words) ? Config{} : read_config(words);
  TrainRequest request;
  std::string algorithm_name = name ? *name : config.value("algorithm");
  if (algorithm_name.empty()) {
    throw usage_error("ALGORITHM is missing; usage: orrery train ALGORITHM DATA --out DIR [options]");
  }
  request.entry = &find_algorithm(algorithm_name);
  request.algorithm = request.entry->make();
  request.data = config.value("data");
  request.command = {"orrery", "train"};
  request.command.insert(request.command.end(), words.begin(), words.end());

  RunOptions options(request.algorithm->default_stop());
  SessionOptions session;
  Arguments arguments("train", kSummary);
  arguments.positional("ALGORITHM", algorithm_name, "see `orrery list`")
      .positional("DATA", request.data, "file to train on: " + request.algorithm->info().data);
  arguments.options(request.algorithm->params(), "Parameters of " + algorithm_name)
      .options(options.params)
      .options(session.params, "Options of this call");
  if (!arguments.parse(words)) return kDone;
  apply_config(config, algorithm_name, request.algorithm->params(), options.params);
  if (options.out.empty()) throw usage_error("--out is missing: the directory of the run");
  if (!session.dump_config.empty() && nodes.is_first()) {
    write_result(session.dump_config, [&](std::ostream& out) { out << config_text(request, options.params); });
  }
  // One of the ranks speaks for all.
  Progress progress(2, nodes.is_first() ? session.progress : ProgressMode::off, session.quiet || !nodes.is_first());
  return TrainRun(request, options, session, progress, nodes, interrupt).run();
}

}  // namespace

int train_command(Words words) {
  InterruptGuard interrupt;
  Nodes nodes(interrupt.terminated());
  int exit_code = kDone;
  try {
    exit_code = train(words, nodes, interrupt);
  } catch (const std::exception&) {
    interrupt.announce(nullptr);
    return nodes.leave(failure_of(std::current_exception()));
  }
  // What started the ranks may end those that are not gone when the first one is: no news for the user.
  if (nodes.several()) interrupt.announce(nullptr);
  return nodes.leave(exit_code);
}

}  // namespace orrery::tools
