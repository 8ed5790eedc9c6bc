// The directory of a run, `--out DIR`: who may write there, and what happens to a run that is there already (cli.md).
// It keeps two processes from writing the same directory, and failed runs from destroying or half replacing an older
// one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "engine/run_record.h"

namespace orrery {

/// What to do with a run that is found in the directory.
enum class ExistingRun {
  refuse,    ///< a usage error, unless it ended without a model and without a checkpoint: then it is replaced
  resume,    ///< go on with it; a usage error when it is finished
  overwrite  ///< replace it, at begin()
};

/// Construct = the directory exists, is writable and is ours alone until destruction (a lock on DIR/.lock, which the
/// kernel drops when the process dies). Throws a usage error for a directory that is in use or holds a run that
/// `existing` does not allow, an output error when it cannot be made or written. A directory that was made here and is
/// still empty at the end is removed. One rank of a cluster has it.
class RunDirectory {
 public:
  RunDirectory(std::filesystem::path path, ExistingRun existing);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  /// To be called once, when the input has been read and the run is about to write: removes the run that is to be
  /// replaced and temporaries that a killed one left. Returns how many temporaries there were. A resumed run keeps
  /// its files.
  std::size_t begin();

  /// Before begin(): will it remove what a run left that was not asked for, because it came to nothing?
  bool holds_remains() const;

  /// Is that the name of a file or directory in it that every run writes?
  static bool writes(std::string_view name);
  const std::filesystem::path& path() const noexcept { return path_; }
  std::filesystem::path record_file() const { return path_ / "run.json"; }
  std::filesystem::path metrics_file() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path checkpoint_directory() const { return path_ / "checkpoint"; }
  std::filesystem::path model_directory() const { return path_ / "model"; }
  /// The record of the run to go on with; empty when there is none, then `resume` starts anew (and the caller says so).
  const std::optional<RunRecord>& resumed() const noexcept { return resumed_; }

 private:
  void make_directory();
  void take_lock();
  void check_existing();
  bool holds_run() const;
  bool came_to_nothing() const;

  std::filesystem::path path_;
  ExistingRun existing_;
  std::filesystem::path topmost_made_;  ///< empty: nothing was made
  int lock_ = -1;
  std::optional<RunRecord> resumed_;
};

}  // namespace orrery
