// run.json: everything needed to repeat a run, and what came of it (design, section 10; keys: cli.md). It is written
// when the run starts, without a result, and again when it ends; a run.json without a result is that of an unfinished
// run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/metrics.h"
#include "engine/types.h"

namespace orrery {

/// The version of the program, "0.1.0".
std::string_view orrery_version();

/// The key "result". What is not known stays out of the file: an empty text, an empty optional.
struct RunResult {
  Clock iterations = 0;  ///< done, counting those before a resume
  double seconds = 0;    ///< of training, without loading and evaluation
  double seconds_loading = 0;
  std::string metric = {};  ///< name of the primary metric
  std::optional<double> value = {};
  std::string stopped_by = {};  ///< to_string(StoppedBy)
  std::uint64_t peak_rss_bytes = 0;
  std::string model_checksum = {};
  ValueList more = {};  ///< what an algorithm adds, after the keys above
};

/// The fields whose names end in _json hold the text of a JSON value.
struct RunRecord {
  std::string version = std::string{orrery_version()};  ///< key "orrery"
  std::vector<std::string> command = {};
  std::string algorithm = {};
  std::string parameters_json = "{}";  ///< ParamSet::to_json()
  std::string data_json = "{}";        ///< path, format, shape, checksum, …
  std::string topology_json = "{}";
  std::uint64_t threads = 0;
  std::uint64_t workers = 0;
  std::uint64_t ranks = 1;
  std::string consistency = {};
  Clock staleness = 0;
  std::string schedule = {};
  std::string simd = {};
  std::uint64_t seed = 0;
  std::string format = {};  ///< of the data, as recognised
  std::vector<std::string> warnings = {};
  std::optional<RunResult> result = {};
  /// Further keys with the text of their JSON value, between "warnings" and "result".
  std::vector<std::pair<std::string, std::string>> more_json = {};

  /// Keeps each text once.
  void add_warning(const std::string& text);
  /// False also for a run that was interrupted: it can be resumed.
  bool finished() const { return result && result->stopped_by != "interrupt"; }
};

/// Pretty JSON with a line feed at the end. Throws an internal Error when a _json field holds no JSON.
std::string to_json(const RunRecord& record);
/// Whole or not at all (AtomicFile). Throws an output error.
void write_run_record(const std::filesystem::path& path, const RunRecord& record);
/// Throws a data error when the file cannot be read, is no JSON, or misses a key of cli.md.
RunRecord read_run_record(const std::filesystem::path& path);

}  // namespace orrery
