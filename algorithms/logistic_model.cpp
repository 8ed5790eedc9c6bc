#include "algorithms/logistic_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "algorithms/logistic_loss.h"
#include "engine/data/portable_math.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/json.h"
#include "engine/params.h"

namespace orrery::logistic {
namespace {

constexpr std::size_t kConstants = 9;

/// p = 1 / (1 + exp(−m)), the same on every processor.
double probability(float margin) {
  const double e = portable_exp(-std::abs(double{margin}));
  return margin >= 0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
}

}  // namespace

void write_logistic_model(ModelWriter& writer, const Fitted& fitted, newton::Penalty penalty, BinaryLabels labels,
                          const Certificate& certificate) {
  const std::array<double, kConstants> constants{double{fitted.intercept},
                                                 fitted.has_intercept ? 1.0 : 0.0,
                                                 penalty.l1,
                                                 penalty.l2,
                                                 labels.negative,
                                                 labels.positive,
                                                 certificate.objective,
                                                 certificate.gradient,
                                                 certificate.gap};
  writer.add_array<float>("weights", fitted.weights);
  writer.add_array<double>("constants", constants);
}

LogisticModel::LogisticModel(const ModelReader& reader) : weights_(reader.read<float>("weights")) {
  const auto constants = reader.read<double>("constants");
  if (constants.size() != kConstants) {
    throw data_error(reader.path().string(), "constants has " + std::to_string(constants.size()) + " values, not " +
                                                 std::to_string(kConstants));
  }
  intercept_ = static_cast<float>(constants[0]);
  has_intercept_ = constants[1] != 0;
  penalty_ = {constants[2], constants[3]};
  labels_ = {constants[4], constants[5]};
  certificate_ = {constants[6], constants[7], constants[8]};
  const Json metadata = parse_json(reader.metadata());
  if (metadata.is_object() && metadata.contains("parameters")) {
    label_ = metadata["parameters"].value("label", std::string{});
  }
}

SparseData LogisticModel::read(const std::string& data, const std::string& format, Engine& engine) const {
  SparseData read = read_labelled_rows(data, format, label_, engine);
  if (read.rows.column_count > weights_.size()) {
    engine.warn(data + ": columns above " + std::to_string(weights_.size()) + " (up to " +
                std::to_string(read.rows.column_count) + ") did not occur in training and count for nothing");
  }
  return read;
}

void LogisticModel::predict(const std::string& data, const std::string& format, Engine& engine,
                            std::ostream& out) const {
  const SparseData read_data = read(data, format, engine);
  const std::vector<float> margins = logistic::predict(FeatureRows(read_data.rows), weights_, intercept_,
                                                       kernels(engine.simd()), engine.parallel_for_function());
  for (const float margin : margins) out << shortest_text(probability(margin)) << '\n';
}

ValueList LogisticModel::evaluate(const std::string& data, const std::string& format, Engine& engine) const {
  const SparseData read_data = read(data, format, engine);
  const std::vector<float> signs = signs_of(read_data.rows.labels, labels_, data);
  const Kernels& level = kernels(engine.simd());
  const ParallelFor parallel = engine.parallel_for_function();
  const std::vector<float> margins =
      logistic::predict(FeatureRows(read_data.rows), weights_, intercept_, level, parallel);
  const BinaryScores scores = score(margins, signs);
  if (std::isnan(scores.auc)) engine.warn(data + ": all rows are of one class, so there is no AUC");
  return {{"log_loss", mean_loss(margins, signs, level, parallel)},
          {"accuracy", scores.accuracy},
          {"auc", scores.auc},
          {"rows", static_cast<std::int64_t>(read_data.rows.rows())}};
}

std::vector<Check> LogisticModel::verify(const Run& run, Engine& engine) const {
  // Training sums losses of float margins, the certificate of double ones.
  constexpr double kRounding = 1e-5;
  std::vector<Check> checks;
  const bool finite = std::isfinite(intercept_) &&
                      std::all_of(weights_.begin(), weights_.end(), [](float w) { return std::isfinite(w); });
  checks.push_back({"weights are finite numbers", finite, std::to_string(weights_.size()) + " columns"});
  const SparseData data = read(run.data, run.format, engine);
  const bool same_data = data.checksum == run.data_checksum;
  checks.push_back({"training data still is what the model was trained on", same_data, run.data});
  if (!same_data) return checks;
  const Certificate now = certify(data.rows, signs_of(data.rows.labels, labels_, run.data), fitted(), penalty_,
                                  engine.parallel_for_function());
  for (Check& check : compare(certificate_, now)) checks.push_back(std::move(check));
  if (run.value) {
    const double value = run.valid ? number_in(evaluate(*run.valid, run.format, engine), "log_loss") : now.objective;
    checks.push_back({run.valid ? "held-out log-loss is the one of run.json" : "objective is the one of run.json",
                      agree(value, *run.value, kRounding, 1e-12), expected_and_found(*run.value, value)});
  }
  return checks;
}

}  // namespace orrery::logistic
