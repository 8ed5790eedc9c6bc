#include "algorithms/logistic_model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "algorithms/logistic_loss.h"
#include "engine/data/portable_math.h"
#include "engine/engine.h"
#include "engine/error.h"
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

LogisticModel::LogisticModel(const ModelReader& reader) : LinearModel(reader), weights_(reader.read<float>("weights")) {
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

Certificate LogisticModel::certify_on(const SparseData& data, const std::string& path, Engine& engine) const {
  return certify(data.rows, signs_of(data.rows.labels, labels_, path), fitted(), penalty_,
                 engine.parallel_for_function());
}

bool LogisticModel::is_finite() const {
  return std::isfinite(intercept_) &&
         std::all_of(weights_.begin(), weights_.end(), [](float w) { return std::isfinite(w); });
}

}  // namespace orrery::logistic
