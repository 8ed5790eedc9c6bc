// Arguments of one command. CLI11 is used as a splitter that tolerates what it does not know, so that every complaint
// about a word is ours, with a suggestion, and every complaint about a value is the parameter's.
#include "tools/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <utility>

#include "engine/error.h"
#include "tools/output.h"

namespace orrery::tools {

Arguments& Arguments::positional(std::string name, std::string& field, std::string doc, bool required) {
  positionals_.push_back({std::move(name), &field, std::move(doc), required});
  return *this;
}

Arguments& Arguments::options(ParamSet& set, std::string heading) {
  groups_.push_back({&set, std::move(heading)});
  return *this;
}

Arguments& Arguments::require(std::string option) {
  required_.push_back(std::move(option));
  return *this;
}

Arguments& Arguments::note(std::string text) {
  note_ += text;
  return *this;
}

namespace {

void add_options(CLI::App& app, ParamSet& set) {
  for (const ParamInfo& info : set.describe()) {
    const std::string name = info.name;
    if (info.type == "bool") {
      app.add_flag_function("--" + name + ",!--no-" + name,
                            [&set, name](std::int64_t count) { set.set(name, count > 0 ? "true" : "false"); });
    } else {
      app.add_option_function<std::string>("--" + name,
                                           [&set, name](const std::string& value) { set.set(name, value); });
    }
  }
}

/// CLI11's own complaints end with codes of its own; ours has one kind.
void parse_words(CLI::App& app, Words words) {
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    throw usage_error(error.what());
  } catch (const std::invalid_argument&) {  // CLI11 converts what stands behind a flag without a check of its own
    for (const std::string& word : words) {
      const std::size_t equals = word.find('=');
      if (word.starts_with("--") && equals != std::string::npos) {
        throw usage_error(word.substr(0, equals) + ": expected true or false, got " +
                          orrery::quoted(word.substr(equals + 1)));
      }
    }
    throw;
  }
}

/// "--rank needs a value (integer [1, 4096]: number of factors)".
std::string needs_value(const ParamInfo& info) {
  const std::string range = info.range.empty() ? "" : " " + info.range;
  return "--" + info.name + " needs a value (" + info.type + range + ": " + info.doc + ")";
}

/// A word that is an option: its name without dashes, and what stands behind its '='.
struct OptionWord {
  explicit OptionWord(const std::string& word)
      : name(word.substr(2, std::min(word.find('='), word.size()) - 2)),
        value(word.find('=') == std::string::npos ? std::nullopt : std::optional{word.substr(word.find('=') + 1)}) {}
  std::string name;
  std::optional<std::string> value;
};

/// The value of an option at words[at], with `at` moved to it when it is a word of its own.
std::string value_behind(const ParamInfo& info, const OptionWord& option, Words words, std::size_t& at) {
  const bool in_next = !option.value && at + 1 < words.size();
  const std::string value = in_next ? words[++at] : option.value.value_or("");
  if (!in_next && value.empty()) throw usage_error(needs_value(info) + ", got nothing");
  if (value.starts_with("--")) throw usage_error(needs_value(info) + ", got option " + orrery::quoted(value));
  return value;
}

}  // namespace

std::optional<ParamInfo> Arguments::option_info(const std::string& name) const {
  for (const Group& group : groups_) {
    for (ParamInfo& info : group.set->describe()) {
      if (info.name == name || (info.type == "bool" && "no-" + info.name == name)) return std::move(info);
    }
  }
  return std::nullopt;
}

void Arguments::check_values(Words words) const {
  std::map<std::string, std::string> given;  // by the parameter's name: "--clip" and "--no-clip" are one
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    if (!words[i].starts_with("--")) continue;
    const OptionWord option(words[i]);
    const std::optional<ParamInfo> info = option_info(option.name);
    if (!info) continue;
    if (info->type == "bool") {
      const auto [before, is_new] = given.emplace(info->name, option.name);
      if (!is_new && before->second != option.name) {
        throw usage_error("--" + before->second + " and --" + option.name + " exclude each other; both are given");
      }
      continue;
    }
    const std::string value = value_behind(*info, option, words, i);
    const auto [before, is_new] = given.emplace(info->name, value);
    if (is_new) continue;
    throw usage_error("--" + info->name + ": expected one value, got two: " + orrery::quoted(before->second) + " and " +
                      orrery::quoted(value));
  }
}

bool Arguments::parse(Words words) {
  // Help wins over whatever else is wrong on the line: that is when people ask for it.
  if (std::any_of(words.begin(), words.end(), [](const auto& word) { return word == "-h" || word == "--help"; })) {
    print(help());
    return false;
  }
  check_values(words);
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  for (const Group& group : groups_) add_options(app, *group.set);
  parse_words(app, words);
  const std::vector<std::string> given = positionals_of(app.remaining());
  for (std::size_t i = 0; i < given.size(); ++i) *positionals_[i].field = given[i];
  check_required(given.size());
  return true;
}

std::vector<std::string> Arguments::option_names() const {
  std::vector<std::string> names{"--help"};
  for (const Group& group : groups_) {
    for (const ParamInfo& info : group.set->describe()) {
      names.push_back("--" + info.name);
      if (info.type == "bool") names.push_back("--no-" + info.name);
    }
  }
  return names;
}

std::vector<std::string> Arguments::positionals_of(const std::vector<std::string>& extras) const {
  std::vector<std::string> given;
  bool options_end = false;
  for (const std::string& extra : extras) {
    if (extra == "--" && !options_end) {
      options_end = true;
      continue;
    }
    if (!options_end && extra.size() > 1 && extra.front() == '-') {
      const std::string name = extra.substr(0, extra.find('='));
      throw usage_error("unknown option " + orrery::quoted(name) + suggestion(name, option_names()) + " (orrery " +
                        command_ + " --help lists the options)");
    }
    given.push_back(extra);
  }
  if (given.size() > positionals_.size()) {
    throw usage_error("surplus argument " + orrery::quoted(given[positionals_.size()]) + "; usage: " + usage());
  }
  return given;
}

void Arguments::check_required(std::size_t positionals_given) const {
  for (std::size_t i = positionals_given; i < positionals_.size(); ++i) {
    if (positionals_[i].required && positionals_[i].field->empty()) {
      throw usage_error(positionals_[i].name + " is missing; usage: " + usage());
    }
  }
  for (const std::string& name : required_) {
    const bool given = std::any_of(groups_.begin(), groups_.end(), [&](const Group& group) {
      return group.set->has(name) && group.set->was_set(name);
    });
    if (!given) throw usage_error("--" + name + " is missing; usage: " + usage());
  }
}

std::string Arguments::usage() const {
  std::string text = "orrery " + command_;
  for (const Positional& argument : positionals_) {
    text += argument.required ? " " + argument.name : " [" + argument.name + "]";
  }
  for (const std::string& name : required_) text += " --" + name + " …";
  return groups_.empty() ? text : text + " [options]";
}

std::string Arguments::help() const {
  std::string text = summary_ + "\n\nUsage: " + usage() + "\n";
  if (!positionals_.empty()) text += "\n";
  for (const Positional& argument : positionals_) text += "  " + argument.name + "  " + argument.doc + "\n";
  for (const Group& group : groups_)
    text += "\n" + group.heading + " (name, type, default, range):\n" + group.set->table();
  return note_.empty() ? text : text + "\n" + note_ + "\n";
}

std::optional<std::string> first_positional(Words words, std::span<const std::string> flags) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") return i + 1 < words.size() ? std::optional{words[i + 1]} : std::nullopt;
    if (!word.starts_with('-')) return word;
    const bool takes_value =
        word.find('=') == std::string::npos && std::find(flags.begin(), flags.end(), word) == flags.end();
    if (takes_value) ++i;
  }
  return std::nullopt;
}

std::optional<std::string> option_value(Words words, const std::string& option) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == option && i + 1 < words.size() && !words[i + 1].starts_with("--")) return words[i + 1];
    if (words[i].starts_with(option + "=")) return words[i].substr(option.size() + 1);
  }
  return std::nullopt;
}

}  // namespace orrery::tools
