// The one exception of the project. Design section 11: a caller's fault becomes an Error that says what, where, what
// was expected and what was got; the kind decides the exit code of the command line (cli.md).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orrery {

/// What went wrong, in the classes that a script can tell apart. The values are the exit codes of cli.md.
enum class ErrorKind : int {
  usage = 2,         ///< an option value, a refused directory, a run that would not fit
  data = 3,          ///< input content, or input that cannot be read
  internal = 4,      ///< a broken invariant, a failed verification
  output = 5,        ///< output that cannot be written
  lost = 6,          ///< a node that died or hangs
  interrupted = 130  ///< a second interrupt
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string message) : std::runtime_error(std::move(message)), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }
  int exit_code() const noexcept { return static_cast<int>(kind_); }

 private:
  ErrorKind kind_;
};

/// Bad option value or refused request (exit code 2).
Error usage_error(std::string message);
/// Input that is wrong at a place: "FILE:LINE:COLUMN: expected X, got 'Y'". Line and column are 1-based; 0 leaves them
/// out.
Error data_error(std::string_view file, std::uint64_t line, std::uint64_t column, std::string_view expected,
                 std::string_view got);
/// Input that cannot be read as a whole: "FILE: what" (exit code 3).
Error data_error(std::string_view file, std::string_view what);
/// A failed system call while writing: "cannot write FILE: reason of error_number" (exit code 5).
Error output_error(std::string_view file, int error_number);

/// Text of the input as it may stand in a message: control characters escaped, cut to 40 characters.
std::string quoted(std::string_view text);

}  // namespace orrery
