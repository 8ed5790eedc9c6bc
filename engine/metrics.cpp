#include "engine/metrics.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>

#include "engine/atomic_file.h"
#include "engine/error.h"
#include "engine/json.h"

namespace orrery {

namespace fs = std::filesystem;
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Json to_value(const Value& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);  // the library dumps NaN and infinity as null
}

/// Throws a data error for anything but null, bool, number and string.
Value from_value(const Json& json, const fs::path& path, std::uint64_t line) {
  if (json.is_null()) return kNan;
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  throw data_error(path.string(), line, 0, "a flat value", json_text(json));
}

ValueList parse_line(const std::string& text, const fs::path& path, std::uint64_t line) {
  const Json object = parse_json(text);
  if (!object.is_object()) throw data_error(path.string(), line, 0, "a JSON object", text);
  ValueList values;
  for (const auto& [name, value] : object.items()) values.push_back({name, from_value(value, path, line)});
  return values;
}

}  // namespace

std::string to_json(const ValueList& values) {
  Json object = Json::object();
  for (const NamedValue& item : values) object[item.name] = to_value(item.value);
  return json_text(object);
}

double number_in(const ValueList& values, std::string_view name) {
  for (const NamedValue& item : values) {
    if (item.name != name) continue;
    if (const auto* real = std::get_if<double>(&item.value)) return *real;
    if (const auto* integer = std::get_if<std::int64_t>(&item.value)) return static_cast<double>(*integer);
    return kNan;
  }
  return kNan;
}

MetricsFile::MetricsFile(fs::path path) : path_(std::move(path)) { open(O_TRUNC); }

MetricsFile::MetricsFile(fs::path path, Clock last) : path_(std::move(path)) {
  std::error_code error;
  if (fs::exists(path_, error)) {
    std::string kept;
    for (const ValueList& values : read_metrics(path_)) {
      if (number_in(values, "iteration") <= static_cast<double>(last)) kept += to_json(values) + "\n";
    }
    write_file(path_, kept);
  }
  open(0);
}

MetricsFile::~MetricsFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void MetricsFile::open(int flags) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0666);
  if (descriptor_ < 0) throw output_error(path_.string(), errno);
}

void MetricsFile::append(const ValueList& values) {
  const std::string line = to_json(values) + "\n";
  struct stat before {};
  if (::fstat(descriptor_, &before) != 0) throw output_error(path_.string(), errno);
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t written = ::write(descriptor_, line.data() + done, line.size() - done);
    if (written >= 0) {
      done += static_cast<std::size_t>(written);
    } else if (errno != EINTR) {
      const int reason = errno;
      const bool taken_back = done == 0 || ::ftruncate(descriptor_, before.st_size) == 0;
      throw output_error(path_.string(), taken_back ? reason : errno);
    }
  }
}

void MetricsFile::sync() {
  // A pipe or a device such as /dev/null has nothing to sync.
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) throw output_error(path_.string(), errno);
}

std::vector<ValueList> read_metrics(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw data_error(path.string(), "cannot be read");
  std::vector<ValueList> lines;
  std::string text;
  for (std::uint64_t number = 1; std::getline(file, text); ++number) {
    if (file.eof()) break;  // no line feed: cut short by the end of its writer
    lines.push_back(parse_line(text, path, number));
  }
  if (file.bad()) throw data_error(path.string(), "cannot be read");
  return lines;
}

}  // namespace orrery
