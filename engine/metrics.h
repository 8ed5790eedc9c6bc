// metrics.jsonl: one JSON object a line, one line for each evaluated iteration (keys: cli.md). A line is in the file
// when append() returns, whole or not at all; a resumed run cuts the file back to the clock of its checkpoint (design,
// section 11).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/types.h"

namespace orrery {

/// A flat JSON value. NaN and infinity are written as null, and null is read as NaN.
using Value = std::variant<bool, std::int64_t, double, std::string>;
struct NamedValue {
  std::string name;
  Value value;
};
/// In the order in which they are written.
using ValueList = std::vector<NamedValue>;

/// `{"iteration":1,"rmse":0.93}`, on one line without a line feed. Bytes that are not UTF-8 are replaced.
std::string to_json(const ValueList& values);
/// The number of that name as double; NaN when there is none or it is no number.
double number_in(const ValueList& values, std::string_view name);

/// The metrics file of a running training. Throws output errors. Not for use by two threads.
class MetricsFile {
 public:
  /// Starts an empty file; what stood there is gone.
  explicit MetricsFile(std::filesystem::path path);
  /// Goes on with a file: keeps the lines whose "iteration" is at most `last`, drops later ones and a last line that
  /// was cut short. A missing file is an empty one; any other malformed line is a data error.
  MetricsFile(std::filesystem::path path, Clock last);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  /// One write() of one line. When it fails (disk full), what was written of the line is taken back.
  void append(const ValueList& values);
  /// fsync: afterwards the lines survive a power cut. Call it before a checkpoint is written.
  void sync();

 private:
  void open(int flags);

  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// The lines of a metrics file, in order. A last line without line feed is ignored. Throws data errors with the line.
std::vector<ValueList> read_metrics(const std::filesystem::path& path);

}  // namespace orrery
