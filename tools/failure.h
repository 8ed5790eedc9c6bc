// From an exception to what the caller of the program gets: an exit code and one message.
#pragma once

#include <exception>
#include <string>

namespace orrery::tools {

struct Failure {
  int exit_code = 0;    ///< of cli.md; 0 when there is nothing to complain about
  std::string message;  ///< without "orrery: "; empty when there is nothing to say
};

Failure failure_of(const std::exception_ptr& error);

/// Prints the message, if any; returns the exit code.
int report(const Failure& failure);

}  // namespace orrery::tools
