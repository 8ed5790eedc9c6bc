// `orrery train`: words and config file become a run (train_run.h), on every rank of a job the same.
#include <exception>

#include "engine/error.h"
#include "engine/interrupt.h"
#include "engine/progress.h"
#include "tools/commands.h"
#include "tools/failure.h"
#include "tools/nodes.h"
#include "tools/train_run.h"
#include "tools/train_words.h"

namespace orrery::tools {

namespace {

int train(Words words, Nodes& nodes, InterruptGuard& interrupt) {
  TrainWords said("train", "Trains ALGORITHM on DATA and leaves model, metrics and run record in --out.");
  // One of the ranks speaks for all.
  if (!said.parse(words, nodes.is_first())) return kDone;
  if (said.options->out.empty()) throw usage_error("--out is missing: the directory of the run");
  Progress progress(2, nodes.is_first() ? said.session.progress : ProgressMode::off,
                    said.session.quiet || !nodes.is_first());
  return TrainRun(said.request, *said.options, said.session, progress, nodes, interrupt).run();
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
