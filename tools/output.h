// What goes to standard output, and what happens when it cannot: a full disk is exit code 5, a reader that has seen
// enough (`orrery list | head -1`) ends the program quietly.
#pragma once

#include <exception>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/metrics.h"

namespace orrery::tools {

/// The reader of standard output is gone: nothing more to do, nothing to complain about.
class BrokenPipe : public std::exception {
 public:
  const char* what() const noexcept override { return "standard output was closed by its reader"; }
};

/// Writes all of `text` to standard output, unbuffered. @throws BrokenPipe, Error (output).
void print(std::string_view text);
/// Writes to standard error as far as that works; diagnostics have nowhere else to go.
void complain(std::string_view text);

/// Lets `write` fill the file that a command was told to write: whole or not at all when `path` is a regular file or
/// none yet (where a link leads, not in its place), as it comes when it is a device or a pipe, and on standard output
/// when it is
/// "-". @throws Error (output), BrokenPipe, and what `write` throws.
void write_result(const std::string& path, const std::function<void(std::ostream&)>& write);

/// Do two names mean one file, which need not be there?
bool is_same_file(const std::string& a, const std::string& b);

/// @throws Error (usage) naming `option` when `file`, which it would write, is one of `inputs` (empty: none) in
/// whatever spelling, or one of the parts that an input stands for.
void check_not_read(const std::string& option, const std::string& file, const std::vector<std::string>& inputs);

/// @throws Error (usage) naming `option` when `file`, which it would write, is one of the files of the run or model in
/// the directory `run` (empty: none).
void check_not_of_run(const std::string& option, const std::string& file, const std::string& run);

/// @throws Error (output) naming `file` when nothing can be written in `directory`, which is there.
void require_writable(const std::string& directory, const std::string& file);

/// Prints names and values: one JSON object on a line, or a line each for people. @throws as print().
void print_values(const ValueList& values, bool json);

/// Columns padded to the widest cell, two blanks between, no blanks at the ends of lines.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

}  // namespace orrery::tools
