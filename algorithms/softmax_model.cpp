#include "algorithms/softmax_model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "algorithms/labelled_rows.h"
#include "algorithms/softmax_certificate.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/params.h"

namespace orrery::softmax {
namespace {

constexpr std::size_t kConstants = 5;

void expect_fit(const ModelReader& reader, bool fits, const std::string& what) {
  if (!fits) throw data_error(reader.path().string(), what);
}

}  // namespace

void write_softmax_model(ModelWriter& writer, const Fitted& fitted, newton::Penalty penalty,
                         std::span<const double> classes, const Certificate& certificate) {
  const std::array<double, kConstants> constants{penalty.l1, penalty.l2, certificate.objective, certificate.gradient,
                                                 certificate.gap};
  writer.add_array<float>("weights", fitted.weights, {fitted.weights.size() / fitted.classes, fitted.classes});
  writer.add_array<float>("intercepts", fitted.intercepts);
  writer.add_array<double>("classes", classes);
  writer.add_array<double>("constants", constants);
}

double accuracy(std::span<const float> scores, std::span<const std::uint32_t> labels) {
  const std::size_t classes = scores.size() / labels.size();
  std::size_t right = 0;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    right += best_class(scores.subspan(row * classes, classes)) == labels[row] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(labels.size());
}

SoftmaxModel::SoftmaxModel(const ModelReader& reader)
    : LinearModel(reader),
      weights_(reader.read<float>("weights")),
      intercepts_(reader.read<float>("intercepts")),
      classes_(reader.read<double>("classes")) {
  const auto constants = reader.read<double>("constants");
  expect_fit(reader, !classes_.empty() && weights_.size() % classes_.size() == 0,
             "weights has " + std::to_string(weights_.size()) + " values, not as many for each of " +
                 std::to_string(classes_.size()) + " classes");
  expect_fit(
      reader, intercepts_.empty() || intercepts_.size() == classes_.size(),
      "intercepts has " + std::to_string(intercepts_.size()) + " values, not " + std::to_string(classes_.size()));
  expect_fit(reader, constants.size() == kConstants,
             "constants has " + std::to_string(constants.size()) + " values, not " + std::to_string(kConstants));
  penalty_ = {constants[0], constants[1]};
  certificate_ = {constants[2], constants[3], constants[4]};
}

void SoftmaxModel::predict(const std::string& data, const std::string& format, Engine& engine,
                           std::ostream& out) const {
  const SparseData read_data = read(data, format, engine);
  const std::vector<float> scores =
      softmax::predict(FeatureRows(read_data.rows), fitted(), kernels(engine.simd()), engine.parallel_for_function());
  std::vector<double> p(classes_.size());
  for (std::size_t row = 0; row < read_data.rows.rows(); ++row) {
    const std::span<const float> of_row = std::span{scores}.subspan(row * p.size(), p.size());
    std::copy(of_row.begin(), of_row.end(), p.begin());
    to_probabilities(p);
    out << shortest_text(classes_[best_class(of_row)]);
    for (const double probability : p) out << ' ' << shortest_text(probability);
    out << '\n';
  }
}

ValueList SoftmaxModel::evaluate(const std::string& data, const std::string& format, Engine& engine) const {
  const SparseData read_data = read(data, format, engine);
  const std::vector<std::uint32_t> labels = numbers_of(read_data.rows.labels, classes_, data);
  const Kernels& level = kernels(engine.simd());
  const ParallelFor parallel = engine.parallel_for_function();
  const std::vector<float> scores = softmax::predict(FeatureRows(read_data.rows), fitted(), level, parallel);
  return {{"log_loss", mean_loss(scores, labels, level, parallel)},
          {"accuracy", accuracy(scores, labels)},
          {"rows", static_cast<std::int64_t>(labels.size())}};
}

Certificate SoftmaxModel::certify_on(const SparseData& data, const std::string& path, Engine& engine) const {
  return certify(data.rows, numbers_of(data.rows.labels, classes_, path), fitted(), penalty_,
                 engine.parallel_for_function());
}

bool SoftmaxModel::is_finite() const {
  const auto finite = [](float value) { return std::isfinite(value); };
  return std::all_of(weights_.begin(), weights_.end(), finite) &&
         std::all_of(intercepts_.begin(), intercepts_.end(), finite);
}

}  // namespace orrery::softmax
