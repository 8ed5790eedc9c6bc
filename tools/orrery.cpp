// The binary: picks the command, and is the one place where an error becomes a message and an exit code.
#include <fcntl.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "engine/error.h"
#include "engine/params.h"
#include "engine/run_record.h"
#include "tools/commands.h"
#include "tools/failure.h"
#include "tools/nodes.h"
#include "tools/output.h"

namespace {

using orrery::tools::Words;

struct Command {
  const char* name;
  const char* summary;
  int (*run)(Words);
};

constexpr Command kCommands[] = {
    {"train", "train a model on data", orrery::tools::train_command},
    {"profile", "train, and say what is accessed, by whom, and where time goes", orrery::tools::profile_command},
    {"predict", "one prediction a line for data", orrery::tools::predict_command},
    {"evaluate", "the held-out metrics of a model on data", orrery::tools::evaluate_command},
    {"recommend", "the best items for a user", orrery::tools::recommend_command},
    {"topics", "the most probable words of each topic", orrery::tools::topics_command},
    {"infer", "latent state of unseen data", orrery::tools::infer_command},
    {"verify", "re-check the defining property of a finished run", orrery::tools::verify_command},
    {"topology", "what the engine sees of the machine and where it would put things", orrery::tools::topology_command},
    {"data", "describe, generate, split, convert data sets", orrery::tools::data_command},
    {"list", "the algorithms", orrery::tools::list_command},
    {"describe", "an algorithm: objective, reference, parameters", orrery::tools::describe_command},
};

std::string help() {
  std::string text =
      "orrery trains iterative-convergent machine-learning models on many-core machines.\n\n"
      "Usage: orrery COMMAND …      (orrery COMMAND --help says more)\n\n";
  std::vector<std::vector<std::string>> rows;
  for (const Command& command : kCommands) rows.push_back({std::string{"  "} + command.name, command.summary});
  return text + orrery::tools::aligned(rows) +
         "\nFirst result: tools/quickstart, or\n"
         "  orrery train mf RATINGS --out DIR      RATINGS has `user item rating` lines\n";
}

int run(Words words) {
  if (words.empty()) {
    orrery::tools::complain(help());
    return static_cast<int>(orrery::ErrorKind::usage);
  }
  const std::string& name = words.front();
  if (name == "help" && words.size() > 1) {
    std::vector<std::string> asked(words.begin() + 1, words.end());
    asked.emplace_back("--help");
    return run(asked);
  }
  if (name == "--help" || name == "-h" || name == "help") {
    orrery::tools::print(help());
    return 0;
  }
  if (name == "--version") {
    orrery::tools::print("orrery " + std::string{orrery::orrery_version()} + "\n");
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    names.emplace_back(command.name);
    if (name != command.name) continue;
    // Ranks that know nothing of each other would all write to one file.
    if (name != "train") orrery::tools::require_one_process();
    return command.run(words.subspan(1));
  }
  throw orrery::usage_error("unknown command " + orrery::quoted(name) + orrery::suggestion(name, names) +
                            " (orrery --help lists the commands)");
}

/// A closed standard descriptor would be given to the next file that is opened, and messages would end up in it. What
/// cannot be written must still be noticed, so output goes to a device that is always full.
void open_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) == -1 && open(fd == 0 ? "/dev/null" : "/dev/full", fd == 0 ? O_RDONLY : O_WRONLY) != fd) {
      std::abort();
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  // A closed pipe is an error of one write, not the end of a training.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows too large is an error of one write too
  try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    return run(words);
  } catch (const std::exception&) {
    return orrery::tools::report(orrery::tools::failure_of(std::current_exception()));
  }
}
