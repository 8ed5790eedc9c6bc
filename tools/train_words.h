// What the words of a command that trains say (`orrery train`, `orrery profile`): algorithm, data and options, from the
// command line and a config file.
#pragma once

#include <memory>
#include <string>

#include "tools/arguments.h"
#include "tools/run_options.h"
#include "tools/train_run.h"

namespace orrery::tools {

class TrainWords {
 public:
  /// `command` as typed, `summary` in one line. `more`: options of this command alone, null for none; must outlive
  /// this.
  TrainWords(std::string command, std::string summary, ParamSet* more = nullptr);

  /// Returns false when help was asked for: it has been printed, the general one only by who `speaks`. @throws Error
  /// (usage) for what cannot be understood, (data) for a config file that cannot be read.
  [[nodiscard]] bool parse(Words words, bool speaks = true);

  // After parse().
  TrainRequest request;
  std::unique_ptr<RunOptions> options;
  SessionOptions session;

 private:
  void print_general_help();
  std::vector<std::string> flag_names() const;
  Arguments arguments(std::string& algorithm, const std::string& data_doc, RunOptions& run_options);

  const std::string command_, summary_;
  ParamSet* const more_;
};

}  // namespace orrery::tools
