#include "algorithms/lasso_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "algorithms/feature_rows.h"
#include "algorithms/lasso_logistic.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/params.h"

namespace orrery::lasso {
namespace {

constexpr std::size_t kConstants = 11;

std::string table_line(std::span<const double> row) {
  std::string line;
  for (const double value : row) line += (line.empty() ? "" : "\t") + shortest_text(value);
  return line;
}

/// What cross-validation says of a penalty, as further columns of the table.
std::string validation_columns(const CvTable& table, std::size_t k) {
  const CvTable::Point& point = table.points[k];
  const std::string names =
      k == table.least ? (k == table.one_se ? "min,1se" : "min") : (k == table.one_se ? "1se" : "-");
  return "\t" + table_line(std::array{point.error, point.standard_error}) + "\t" + names;
}

void write_validation(ModelWriter& writer, const CvTable& table) {
  std::vector<double> rows;
  for (const CvTable::Point& point : table.points) rows.insert(rows.end(), {point.error, point.standard_error});
  writer.add_array<double>("cv", rows, {table.points.size(), 2});
  writer.add_array<std::uint64_t>("cv_choice", std::array<std::uint64_t, 2>{table.least, table.one_se});
}

}  // namespace

Fitted fitted_of(const PathPoint& point, const Design& design) {
  Fitted fitted;
  fitted.weights.assign(design.columns(), 0.0);
  fitted.intercept = point.intercept;
  for (std::size_t i = 0; i < point.columns.size(); ++i) {
    const std::uint32_t j = point.columns[i];
    fitted.weights[j] = point.coefficients[i] * design.inverse_scale(j);
    fitted.intercept -= fitted.weights[j] * design.mean(j);
  }
  return fitted;
}

std::vector<double> standardised(std::span<const double> weights, const Design& design) {
  std::vector<double> coefficients(design.columns(), 0.0);
  for (std::uint32_t j = 0; j < std::min<std::size_t>(weights.size(), design.columns()); ++j) {
    if (design.is_usable(j)) coefficients[j] = weights[j] / design.inverse_scale(j);
  }
  return coefficients;
}

RegressionScores score(std::span<const double> predicted, std::span<const double> responses) {
  const auto n = static_cast<double>(responses.size());
  double mean = 0, errors = 0, distances = 0;
  for (const double y : responses) mean += y / n;
  for (std::size_t i = 0; i < responses.size(); ++i) {
    errors += (responses[i] - predicted[i]) * (responses[i] - predicted[i]);
    distances += (responses[i] - mean) * (responses[i] - mean);
  }
  return {std::sqrt(errors / n), distances > 0 ? 1 - errors / distances : std::numeric_limits<double>::quiet_NaN()};
}

ValueList class_scores(std::span<const double> margins, std::span<const float> signs) {
  const std::vector<float> rounded(margins.begin(), margins.end());
  const BinaryScores scores = orrery::score(rounded, signs);
  return {{"log_loss", mean_log_loss(margins, signs)}, {"accuracy", scores.accuracy}, {"auc", scores.auc}};
}

std::vector<double> predict(const SparseRows& rows, const Fitted& fitted, const ParallelFor& parallel) {
  std::vector<double> predicted(rows.rows(), fitted.intercept);
  for_row_pieces(rows.rows(), parallel, [&](std::size_t, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t r = first; r < last; ++r) {
      for (std::uint64_t i = rows.starts[r]; i < rows.starts[r + 1]; ++i) {
        if (rows.columns[i] >= fitted.weights.size()) break;  // columns ascend
        predicted[r] += fitted.weights[rows.columns[i]] * double{rows.values[i]};
      }
    }
  });
  return predicted;
}

void write_lasso_model(ModelWriter& writer, const ModelParts& parts) {
  const PathPoint& chosen = parts.points[parts.chosen];
  const Fitted fitted = fitted_of(chosen, parts.design);
  const std::array<double, kConstants> constants{fitted.intercept,
                                                 parts.design.has_intercept() ? 1.0 : 0.0,
                                                 parts.is_standardised ? 1.0 : 0.0,
                                                 chosen.lambda,
                                                 parts.request.l1_ratio,
                                                 parts.certificate.objective,
                                                 parts.certificate.gradient,
                                                 parts.certificate.gap,
                                                 parts.labels ? 1.0 : 0.0,
                                                 parts.labels ? parts.labels->negative : 0.0,
                                                 parts.labels ? parts.labels->positive : 0.0};
  std::vector<double> path, values;
  std::vector<std::uint64_t> starts{0};
  std::vector<std::uint32_t> columns;
  std::vector<std::string> table{"lambda\tintercept\tnonzeros\tobjective\tgap\texplained"};
  if (parts.validation != nullptr) table[0] += "\tcv_error\tcv_se\tcv_choice";
  for (const PathPoint& point : parts.points) {
    const Fitted here = fitted_of(point, parts.design);
    const std::array row{point.lambda,    here.intercept, static_cast<double>(point.columns.size()),
                         point.objective, point.gap,      point.explained};
    path.insert(path.end(), row.begin(), row.end());
    const std::string more =
        parts.validation != nullptr ? validation_columns(*parts.validation, starts.size() - 1) : std::string{};
    table.push_back(table_line(row) + more);
    columns.insert(columns.end(), point.columns.begin(), point.columns.end());
    for (const std::uint32_t j : point.columns) values.push_back(here.weights[j]);
    starts.push_back(columns.size());
  }
  writer.add_array<double>("weights", fitted.weights);
  writer.add_array<double>("constants", constants);
  writer.add_array<double>("path", path, {parts.points.size(), path.size() / parts.points.size()});
  writer.add_array<std::uint64_t>("path_starts", starts);
  writer.add_array<std::uint32_t>("path_columns", columns);
  writer.add_array<double>("path_values", values);
  if (parts.validation != nullptr) write_validation(writer, *parts.validation);
  writer.add_text("path_table", table);
}

LassoModel::LassoModel(const ModelReader& reader)
    : LinearModel(reader),
      path_(reader.read<double>("path")),
      path_values_(reader.read<double>("path_values")),
      path_starts_(reader.read<std::uint64_t>("path_starts")),
      path_columns_(reader.read<std::uint32_t>("path_columns")) {
  fitted_.weights = reader.read<double>("weights");
  const auto constants = reader.read<double>("constants");
  const bool fits = constants.size() == kConstants && path_.size() == kPathColumns * (path_starts_.size() - 1) &&
                    path_starts_.back() == path_columns_.size() && path_columns_.size() == path_values_.size() &&
                    std::is_sorted(path_starts_.begin(), path_starts_.end()) &&
                    std::all_of(path_columns_.begin(), path_columns_.end(),
                                [&](std::uint32_t j) { return j < fitted_.weights.size(); });
  if (!fits) throw data_error(reader.path().string(), "weights, constants and path do not fit together");
  fitted_.intercept = constants[0];
  has_intercept_ = constants[1] != 0;
  is_standardised_ = constants[2] != 0;
  lambda_ = constants[3];
  l1_ratio_ = constants[4];
  penalty_ = {constants[3] * l1_ratio_, constants[3] * (1 - l1_ratio_)};
  certificate_ = {constants[5], constants[6], constants[7]};
  if (constants[8] != 0) labels_ = BinaryLabels{constants[9], constants[10]};
  read_validation(reader);
}

void LassoModel::read_validation(const ModelReader& reader) {
  if (!reader.has("cv")) return;
  const auto rows = reader.read<double>("cv");
  const auto choice = reader.read<std::uint64_t>("cv_choice");
  const std::size_t points = path_starts_.size() - 1;
  if (rows.size() != 2 * points || choice.size() != 2 || choice[0] >= points || choice[1] >= points) {
    throw data_error(reader.path().string(), "path and cv do not fit together");
  }
  CvTable table;
  for (std::size_t k = 0; k < points; ++k) table.points.push_back({rows[2 * k], rows[2 * k + 1]});
  table.least = choice[0];
  table.one_se = choice[1];
  validation_ = std::move(table);
}

/// What the rules make of the errors in the table, against what was chosen.
Check LassoModel::check_validation() const {
  CvTable anew = *validation_;
  apply_rules(anew);
  const double least = path_[anew.least * kPathColumns], one_se = path_[anew.one_se * kPathColumns];
  const bool is_one = lambda_ == least || lambda_ == one_se;
  return {"the penalty is one that cross-validation chose",
          is_one && anew.least == validation_->least && anew.one_se == validation_->one_se,
          "lambda " + shortest_text(lambda_) + ", least error at " + shortest_text(least) +
              ", within a standard error " + shortest_text(one_se)};
}

void LassoModel::predict(const std::string& data, const std::string& format, Engine& engine, std::ostream& out) const {
  const SparseData read_data = read(data, format, engine);
  for (const double value : lasso::predict(read_data.rows, fitted_, engine.parallel_for_function())) {
    out << shortest_text(is_binomial() ? 1 - logistic_row(value, 1).wrong : value) << '\n';
  }
}

ValueList LassoModel::evaluate(const std::string& data, const std::string& format, Engine& engine) const {
  const SparseData read_data = read(data, format, engine);
  const std::vector<double> predicted = lasso::predict(read_data.rows, fitted_, engine.parallel_for_function());
  const auto rows = static_cast<std::int64_t>(read_data.rows.rows());
  if (is_binomial()) {
    ValueList scores = class_scores(predicted, signs_of(read_data.rows.labels, *labels_, data));
    if (std::isnan(number_in(scores, "auc"))) engine.warn(data + ": all rows are of one class, so there is no AUC");
    scores.push_back({"rows", rows});
    return scores;
  }
  const RegressionScores scores = score(predicted, read_data.rows.labels);
  if (std::isnan(scores.r2)) engine.warn(data + ": all responses are the same, so there is no R2");
  return {{"rmse", scores.rmse}, {"r2", scores.r2}, {"rows", rows}};
}

bool LassoModel::is_finite() const {
  return std::isfinite(fitted_.intercept) &&
         std::all_of(fitted_.weights.begin(), fitted_.weights.end(), [](double w) { return std::isfinite(w); });
}

Design LassoModel::design_of(const SparseData& data, Engine& engine) const {
  return {data.rows, has_intercept_, is_standardised_, kernels(engine.simd()), engine.parallel_for_function()};
}

Response LassoModel::response_of(const SparseData& data, const std::string& path) const {
  return is_binomial() ? Response(signs_of(data.rows.labels, *labels_, path), has_intercept_)
                       : Response(data.rows.labels, has_intercept_);
}

Certificate LassoModel::certify_weights(const Design& design, const Response& response, const Fitted& fitted,
                                        Penalty penalty, Engine& engine) const {
  double intercept = fitted.intercept;  // beside centred columns
  for (std::uint32_t j = 0; j < design.columns(); ++j) {
    if (fitted.weights[j] != 0) intercept += fitted.weights[j] * design.mean(j);
  }
  return certify(design, response, standardised(fitted.weights, design), intercept, penalty,
                 engine.parallel_for_function());
}

Certificate LassoModel::certify_on(const SparseData& data, const std::string& path, Engine& engine) const {
  return certify_weights(design_of(data, engine), response_of(data, path), fitted_, penalty_, engine);
}

/// The gap of every point of the path, against what the path says.
std::vector<Check> LassoModel::more_checks(const SparseData& data, const std::string& path, Engine& engine) const {
  constexpr double kSame = 1e-9;
  const Design design = design_of(data, engine);
  const Response response = response_of(data, path);
  const double empty = empty_objective(response);
  double worst = 0;
  std::size_t wrong = 0;
  for (std::size_t k = 0; k + 1 < path_starts_.size(); ++k) {
    Fitted here{std::vector<double>(columns(), 0.0), path_[k * kPathColumns + 1]};
    for (std::uint64_t i = path_starts_[k]; i < path_starts_[k + 1]; ++i) {
      here.weights[path_columns_[i]] = path_values_[i];
    }
    const double lambda = path_[k * kPathColumns], said = path_[k * kPathColumns + 4];
    const Penalty penalty{lambda * l1_ratio_, lambda * (1 - l1_ratio_)};
    const Certificate found = certify_weights(design, response, here, penalty, engine);
    const double gap = empty > 0 ? found.gap / empty : 0.0;
    const bool is_bounded = !std::isnan(gap);
    if (is_bounded) worst = std::max(worst, gap);
    if (is_bounded && gap > std::max(2 * said, said + kSame)) ++wrong;
  }
  std::vector<Check> checks{{"every point of the path is as near its minimum as it says", wrong == 0,
                             std::to_string(path_starts_.size() - 1) + " points, largest gap " + shortest_text(worst) +
                                 " of the empty model's objective"}};
  if (validation_) checks.push_back(check_validation());
  return checks;
}

}  // namespace orrery::lasso
