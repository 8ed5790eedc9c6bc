// The commands of the binary; each lives in its own cmd_*.cpp and returns the exit code of a run that did not throw.
#pragma once

#include "tools/arguments.h"

namespace orrery::tools {

int train_command(Words words);
int profile_command(Words words);
int predict_command(Words words);
int infer_command(Words words);
int evaluate_command(Words words);
int recommend_command(Words words);
int topics_command(Words words);
int verify_command(Words words);
int topology_command(Words words);
int data_command(Words words);
int generate_command(Words words);  ///< `data generate`
int list_command(Words words);
int describe_command(Words words);

/// The exit codes of cli.md that are no error of the caller; those that are come from Error.
inline constexpr int kDone = 0;
inline constexpr int kNotReached = 1;
inline constexpr int kVerifyFailed = 4;
inline constexpr int kInterrupted = 130;

}  // namespace orrery::tools
