#include "tools/model_access.h"

#include <filesystem>
#include <vector>

#include "engine/checksum.h"
#include "engine/error.h"
#include "engine/json.h"
#include "engine/model_store.h"
#include "engine/run_record.h"
#include "tools/output.h"

namespace orrery::tools {

namespace {

std::unique_ptr<Model> open_model(const ModelReader& reader) {
  const auto metadata = parse_json(reader.metadata());
  const std::string file = (reader.path() / "manifest.json").string();
  if (!metadata.is_object() || !metadata.contains("algorithm") || !metadata["algorithm"].is_string()) {
    throw data_error(file, "does not say which algorithm the model is of");
  }
  const auto name = metadata["algorithm"].get<std::string>();
  for (const AlgorithmEntry& entry : algorithms()) {
    if (name == entry.name) return entry.open(reader);
  }
  throw data_error(file, "is of algorithm " + orrery::quoted(name) + ", which this build does not have");
}

Model::Run recorded_run(const RunRecord& record, const std::string& file) try {
  const auto data = parse_json(record.data_json);
  Model::Run run;
  if (!data.contains("path") || !data.contains("checksum"))
    throw data_error(file, "does not say what it was trained on");
  run.data = data["path"].get<std::string>();
  const auto parameters = parse_json(record.parameters_json);
  run.format = parameters.value("format", std::string{});
  if (data.contains("valid")) run.valid = data["valid"].get<std::string>();
  run.data_checksum = parse_checksum(data["checksum"].get<std::string>()).value_or(0);
  run.value = record.result->value;
  return run;
} catch (const Json::exception& error) {
  throw data_error(file, std::string{"data or parameters are not as a run writes them: "} + error.what());
}

}  // namespace

std::unique_ptr<Model> open_model(const std::string& directory) { return open_model(ModelReader(directory)); }

bool verify_run(const std::string& directory, Engine& engine, bool quiet) {
  const std::filesystem::path path(directory);
  const std::string record_file = (path / "run.json").string();
  const RunRecord record = read_run_record(record_file);
  if (!record.finished()) throw usage_error(directory + ": the run is not finished, there is nothing to verify");
  const ModelReader reader(path);
  reader.verify();
  std::vector<Check> checks{
      {.what = "model files match their checksums", .passed = true, .detail = reader.model_checksum()},
      {.what = "model is the one of run.json",
       .passed = reader.model_checksum() == record.result->model_checksum,
       .detail = "expected " + record.result->model_checksum + ", found " + reader.model_checksum()}};
  for (Check& check : open_model(reader)->verify(recorded_run(record, record_file), engine)) {
    checks.push_back(std::move(check));
  }
  bool passed = true;
  std::vector<std::vector<std::string>> rows;
  for (const Check& check : checks) {
    passed = passed && check.passed;
    rows.push_back({check.passed ? "ok" : "FAILED", check.what, check.detail});
  }
  if (!quiet || !passed) print(aligned(rows));
  return passed;
}

}  // namespace orrery::tools
