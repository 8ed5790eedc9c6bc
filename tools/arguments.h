// One command's arguments, from the same parameter descriptions that write run.json and `orrery describe` (design,
// section 9). CLI11 splits the words; what a value may be is the parameter's own business.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/params.h"

namespace orrery::tools {

/// Words after the name of a command.
using Words = std::span<const std::string>;

/// Collects what a command takes, then parses. The bound fields must outlive it. One use.
class Arguments {
 public:
  /// `command` as typed ("data split"), `summary` in one line.
  Arguments(std::string command, std::string summary) : command_(std::move(command)), summary_(std::move(summary)) {}

  /// The next argument that is no option. An optional one keeps its value when it is absent; required ones come first.
  Arguments& positional(std::string name, std::string& field, std::string doc, bool required = true);
  /// Every parameter of the set becomes an option: `--name VALUE`, or `--name` / `--no-name` for a bool.
  Arguments& options(ParamSet& set, std::string heading = "Options");
  /// A parameter of an added set that must be given.
  Arguments& require(std::string option);
  /// Text at the end of --help.
  Arguments& note(std::string text);

  /// Returns false when help was asked for: it has been printed and the command is done. @throws Error (usage) for an
  /// unknown option (with a suggestion), a surplus or a missing argument, and for values that a parameter refuses.
  [[nodiscard]] bool parse(Words words);
  std::string help() const;

 private:
  struct Positional {
    std::string name;
    std::string* field;
    std::string doc;
    bool required;
  };
  struct Group {
    ParamSet* set;
    std::string heading;
  };
  std::string usage() const;
  std::vector<std::string> option_names() const;
  /// The description of an option's parameter, nothing for an option that is not known.
  std::optional<ParamInfo> option_info(const std::string& name) const;
  /// @throws Error (usage) for an option without its value and for one that is given twice.
  void check_values(Words words) const;
  /// What CLI11 did not know. @throws Error (usage) for options among them and for too many.
  std::vector<std::string> positionals_of(const std::vector<std::string>& extras) const;
  void check_required(std::size_t positionals_given) const;

  std::string command_;
  std::string summary_;
  std::string note_;
  std::vector<Positional> positionals_;
  std::vector<Group> groups_;
  std::vector<std::string> required_;
};

/// The first of `words` that is neither an option nor the value of one; options in `flags` ("--resume") take no value.
std::optional<std::string> first_positional(Words words, std::span<const std::string> flags);
/// The value of `--name` in `words`, before they are parsed.
std::optional<std::string> option_value(Words words, const std::string& option);

}  // namespace orrery::tools
