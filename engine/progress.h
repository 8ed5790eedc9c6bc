// The one status line of a run on a terminal (cli.md, `--progress`), and the lines that must not be garbled by it.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace orrery {

enum class ProgressMode {
  automatic,  ///< a status line when the output is a terminal
  on,         ///< also when it is none: then plain lines, at most one a second
  off
};
/// The mode called "auto", "on" or "off", or nothing.
std::optional<ProgressMode> parse_progress(std::string_view name);

/// Writes to one file descriptor, usually standard error. The status line is rewritten in place (carriage return), at
/// most ten times a second, cut to the width of the terminal, and gone when the object is destroyed. A failed write is
/// ignored: nobody loses a run because a terminal closed. All methods may be called by any thread.
class Progress {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// `quiet` silences status and notes, not warnings. `now` is for tests.
  Progress(
      int descriptor, ProgressMode mode, bool quiet,
      std::function<Time()> now = [] { return std::chrono::steady_clock::now(); });
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Would a status be shown now? Asks the clock only, so that callers need not build a text that is dropped.
  bool due() const;
  /// Shows `text` (one line, no control characters) as status, unless the last one is too recent.
  void status(std::string_view text);
  /// Removes the status line until the next status().
  void clear();
  /// A line of its own, above the status line; silent when quiet.
  void note(std::string_view text);
  /// "orrery: warning: TEXT", also when quiet.
  void warn(std::string_view text);

 private:
  bool due_locked() const;
  void line_locked(std::string_view text);
  void clear_locked();
  void write_out(std::string_view text) const;

  const int descriptor_;
  const bool terminal_;
  const bool shows_status_;
  const bool quiet_;
  const std::function<Time()> now_;
  mutable std::mutex mutex_;
  std::optional<Time> last_;
  std::string shown_;
};

}  // namespace orrery
