#include "algorithms/linear_model.h"

#include <cmath>
#include <utility>

#include "algorithms/labelled_rows.h"
#include "engine/engine.h"
#include "engine/json.h"

namespace orrery {

LinearModel::LinearModel(const ModelReader& reader) {
  const Json metadata = parse_json(reader.metadata());
  if (metadata.is_object() && metadata.contains("parameters")) {
    label_ = metadata["parameters"].value("label", std::string{});
  }
}

SparseData LinearModel::read(const std::string& data, const std::string& format, Engine& engine) const {
  SparseData read = read_labelled_rows(data, format, label_, engine);
  if (read.rows.column_count > columns()) {
    engine.warn(data + ": columns above " + std::to_string(columns()) + " (up to " +
                std::to_string(read.rows.column_count) + ") did not occur in training and count for nothing");
    keep_columns(read.rows, static_cast<std::uint32_t>(columns()));
  }
  return read;
}

std::vector<Check> LinearModel::verify(const Run& run, Engine& engine) const {
  constexpr double kRounding = 1e-5;  // training sums losses of float scores, the certificate of double ones
  std::vector<Check> checks;
  checks.push_back({"weights are finite numbers", is_finite(), std::to_string(columns()) + " columns"});
  const SparseData data = read(run.data, run.format, engine);
  const bool same_data = data.checksum == run.data_checksum;
  checks.push_back({"training data still is what the model was trained on", same_data, run.data});
  if (!same_data) return checks;
  const Certificate now = certify_on(data, run.data, engine);
  for (Check& check : compare(certificate_, now)) checks.push_back(std::move(check));
  if (run.value) {
    const double value = run.valid ? number_in(evaluate(*run.valid, run.format, engine), metric()) : now.objective;
    checks.push_back(
        {run.valid ? "held-out " + metric() + " is the one of run.json" : "objective is the one of run.json",
         agree(value, *run.value, kRounding, 1e-12), expected_and_found(*run.value, value)});
  }
  for (Check& check : more_checks(data, run.data, engine)) checks.push_back(std::move(check));
  return checks;
}

}  // namespace orrery
