#include "engine/run_record.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "engine/atomic_file.h"
#include "engine/error.h"
#include "engine/json.h"

namespace orrery {

namespace fs = std::filesystem;
namespace {

constexpr std::array kKeys{"orrery",  "command", "algorithm", "parameters",  "data",      "topology",
                           "threads", "workers", "ranks",     "consistency", "staleness", "schedule",
                           "simd",    "seed",    "format",    "warnings",    "result"};

constexpr std::array kResultKeys{"iterations", "seconds",    "seconds_loading", "metric",
                                 "value",      "stopped_by", "peak_rss_bytes",  "model_checksum"};

template <class Keys>
bool known(const Keys& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

Json parsed(std::string_view key, const std::string& text) {
  Json json = parse_json(text);
  if (json.is_discarded()) throw Error(ErrorKind::internal, "run record: '" + std::string{key} + "' holds no JSON");
  return json;
}

Json result_json(const RunResult& result) {
  Json json{
      {"iterations", result.iterations}, {"seconds", result.seconds}, {"seconds_loading", result.seconds_loading}};
  if (!result.metric.empty()) json["metric"] = result.metric;
  if (result.value) json["value"] = *result.value;
  if (!result.stopped_by.empty()) json["stopped_by"] = result.stopped_by;
  if (result.peak_rss_bytes != 0) json["peak_rss_bytes"] = result.peak_rss_bytes;
  if (!result.model_checksum.empty()) json["model_checksum"] = result.model_checksum;
  for (const NamedValue& item : result.more) {
    json[item.name] = std::visit([](const auto& held) { return Json(held); }, item.value);
  }
  return json;
}

double number_or_nan(const Json& json) {
  return json.is_number() ? json.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

RunResult result_from(const Json& json) {
  RunResult result;
  result.iterations = json.at("iterations").get<Clock>();
  result.seconds = number_or_nan(json.at("seconds"));
  result.seconds_loading = number_or_nan(json.at("seconds_loading"));
  result.metric = json.value("metric", std::string{});
  if (json.contains("value")) result.value = number_or_nan(json.at("value"));
  result.stopped_by = json.value("stopped_by", std::string{});
  result.peak_rss_bytes = json.value("peak_rss_bytes", std::uint64_t{0});
  result.model_checksum = json.value("model_checksum", std::string{});
  for (const auto& [name, value] : json.items()) {
    if (known(kResultKeys, name)) continue;
    if (value.is_boolean()) result.more.push_back({name, value.get<bool>()});
    if (value.is_number_integer()) result.more.push_back({name, value.get<std::int64_t>()});
    if (value.is_number_float() || value.is_null()) result.more.push_back({name, number_or_nan(value)});
    if (value.is_string()) result.more.push_back({name, value.get<std::string>()});
  }
  return result;
}

RunRecord record_from(const Json& json) {
  RunRecord record;
  record.version = json.at("orrery").get<std::string>();
  record.command = json.at("command").get<std::vector<std::string>>();
  record.algorithm = json.at("algorithm").get<std::string>();
  record.parameters_json = json_text(json.at("parameters"));
  record.data_json = json_text(json.at("data"));
  record.topology_json = json_text(json.at("topology"));
  record.threads = json.at("threads").get<std::uint64_t>();
  record.workers = json.at("workers").get<std::uint64_t>();
  record.ranks = json.at("ranks").get<std::uint64_t>();
  record.consistency = json.at("consistency").get<std::string>();
  record.staleness = json.at("staleness").get<Clock>();
  record.schedule = json.at("schedule").get<std::string>();
  record.simd = json.value("simd", std::string{});
  record.seed = json.value("seed", std::uint64_t{0});
  record.format = json.value("format", std::string{});
  record.warnings = json.at("warnings").get<std::vector<std::string>>();
  if (json.contains("result")) record.result = result_from(json.at("result"));
  for (const auto& [name, value] : json.items()) {
    if (!known(kKeys, name)) record.more_json.emplace_back(name, json_text(value));
  }
  return record;
}

}  // namespace

std::string_view orrery_version() { return ORRERY_VERSION; }

void RunRecord::add_warning(const std::string& text) {
  if (std::find(warnings.begin(), warnings.end(), text) == warnings.end()) warnings.push_back(text);
}

std::string to_json(const RunRecord& record) {
  Json json{{"orrery", record.version},
            {"command", record.command},
            {"algorithm", record.algorithm},
            {"parameters", parsed("parameters", record.parameters_json)},
            {"data", parsed("data", record.data_json)},
            {"topology", parsed("topology", record.topology_json)},
            {"threads", record.threads},
            {"workers", record.workers},
            {"ranks", record.ranks},
            {"consistency", record.consistency},
            {"staleness", record.staleness},
            {"schedule", record.schedule},
            {"simd", record.simd},
            {"seed", record.seed},
            {"format", record.format},
            {"warnings", record.warnings}};
  for (const auto& [name, text] : record.more_json) json[name] = parsed(name, text);
  if (record.result) json["result"] = result_json(*record.result);
  // Arguments may hold bytes that are no UTF-8, such as file names: replaced, not refused.
  return json_text(json, 2) + "\n";
}

void write_run_record(const fs::path& path, const RunRecord& record) { write_file(path, to_json(record)); }

RunRecord read_run_record(const fs::path& path) {
  const Json json = parse_json(read_file(path));
  if (json.is_discarded()) throw data_error(path.string(), "is no run record: not JSON; cut short or damaged");
  if (!json.is_object()) throw data_error(path.string(), "is no run record: not a JSON object");
  try {
    return record_from(json);
  } catch (const Json::exception& fault) {
    throw data_error(path.string(), std::string{"is no run record: "} + fault.what());
  }
}

}  // namespace orrery
