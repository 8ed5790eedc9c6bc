#include "tools/train_words.h"

#include <algorithm>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "engine/error.h"
#include "tools/output.h"
#include "tools/toml.h"

namespace orrery::tools {

namespace {

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

/// Sets what the file says and the command line does not.
void apply_config(const Config& config, const std::string& algorithm, ParamSet& own, ParamSet& common) {
  for (const TomlEntry& entry : config.entries) {
    if (entry.table.empty() && (entry.key == "algorithm" || entry.key == "data")) continue;
    const std::string place = config.file + ":" + std::to_string(entry.line) + ": ";
    if (!entry.table.empty() && entry.table != algorithm) {
      throw usage_error(place + "expected table [" + algorithm + "], got [" + entry.table + "]");
    }
    ParamSet& params = entry.table.empty() ? common : own;
    if (params.has(entry.key) && params.was_set(entry.key)) continue;
    try {
      // A dumped file spells out defaults, some of which only another solver uses: those must not read as wishes.
      params.set_from_file(entry.key, entry.value);
    } catch (const Error& error) {
      throw Error(error.kind(), place + error.what());
    }
  }
}

void append_params(std::string& text, const ParamSet& params) {
  for (const ParamInfo& info : params.describe()) {
    const std::string value = params.get(info.name);
    if (value.empty() || (info.optional && value == "auto")) continue;
    if (info.name == "plan-out") continue;  // where a file went, not what the run is; it is there by then
    const bool plain = info.type == "integer" || info.type == "real" || info.type == "bool";
    text += info.name + " = " + (plain ? value : toml_string(value)) + "\n";
  }
}

/// The whole run as a config file; `train --config` takes it back to the same bits.
std::string config_text(const TrainRequest& request, const ParamSet& common) {
  const std::string& name = request.algorithm->info().name;
  std::string text = "# Repeat this run with: orrery train --config THIS_FILE --out DIR\n";
  text += "algorithm = " + toml_string(name) + "\ndata = " + toml_string(request.data) + "\n";
  append_params(text, common);
  text += "\n[" + name + "]\n";
  append_params(text, request.algorithm->params());
  return text;
}

bool help_wanted(Words words) {
  return std::any_of(words.begin(), words.end(), [](const auto& word) { return word == "-h" || word == "--help"; });
}

}  // namespace

TrainWords::TrainWords(std::string command, std::string summary, ParamSet* more)
    : command_(std::move(command)), summary_(std::move(summary)), more_(more) {}

std::vector<std::string> TrainWords::flag_names() const {
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
  if (more_ != nullptr) add(*more_);
  for (const AlgorithmEntry& entry : algorithms()) add(entry.make()->params());
  return flags;
}

Arguments TrainWords::arguments(std::string& algorithm, const std::string& data_doc, RunOptions& run_options) {
  Arguments all(command_, summary_);
  all.positional("ALGORITHM", algorithm, "see `orrery list`").positional("DATA", request.data, data_doc);
  if (more_ != nullptr) all.options(*more_, "Options of " + command_);
  if (request.algorithm) all.options(request.algorithm->params(), "Parameters of " + algorithm);
  all.options(run_options.params).options(session.params, "Options of this call");
  return all;
}

void TrainWords::print_general_help() {
  RunOptions run_options{StopRules{}};
  std::string algorithm;
  Arguments all = arguments(algorithm, "file to train on", run_options);
  all.note("orrery " + command_ + " ALGORITHM --help adds the parameters of the algorithm and its own defaults.");
  print(all.help());
}

bool TrainWords::parse(Words words, bool speaks) {
  const std::vector<std::string> flags = flag_names();
  std::optional<std::string> name = first_positional(words, flags);
  if (!name && help_wanted(words)) {
    if (speaks) print_general_help();
    return false;
  }
  const Config config = help_wanted(words) ? Config{} : read_config(words);
  std::string algorithm_name = name ? *name : config.value("algorithm");
  if (algorithm_name.empty()) {
    throw usage_error("ALGORITHM is missing; usage: orrery " + command_ + " ALGORITHM DATA " +
                      (command_ == "train" ? "--out" : "--report") + " DIR [options]");
  }
  request.entry = &find_algorithm(algorithm_name);
  request.algorithm = request.entry->make();
  request.data = config.value("data");
  request.command = {"orrery", command_};
  request.command.insert(request.command.end(), words.begin(), words.end());
  options = std::make_unique<RunOptions>(request.algorithm->default_stop());
  Arguments all = arguments(algorithm_name, "file to train on: " + request.algorithm->info().data, *options);
  if (!all.parse(words)) return false;
  apply_config(config, algorithm_name, request.algorithm->params(), options->params);
  options->settle_consistency();
  request.config = config_text(request, options->params);
  return true;
}

}  // namespace orrery::tools
