// A trained Lasso on disk and read back: predictions, held-out metrics, the whole path, and the proof of how good it
// is.
//
// Arrays: `weights`, by column of the training data, on the scale of the data; `constants` = {intercept, has intercept,
// is standardised, lambda, l1 ratio, objective, norm of the least subgradient, duality gap, is binomial, label of the
// negative class, label of the positive class}, objective to gap as certify() found them at the end of the training;
// `path`, a row for each penalty: {lambda, intercept, coefficients
// that are not 0, objective, gap against the objective of the empty model, explained share of the empty model's loss},
// whose coefficients are `path_columns` and `path_values` from `path_starts` on. After cross-validation `cv` has a row
// for each penalty, {mean error, standard error}, and `cv_choice` = {row of lambda_min, row of lambda_1se}.
// `path_table` is all of it as text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algorithms/labelled_rows.h"
#include "algorithms/lasso_certificate.h"
#include "algorithms/lasso_path.h"
#include "algorithms/lasso_validation.h"
#include "algorithms/linear_model.h"

namespace orrery::lasso {

/// Coefficients on the scale of the data.
struct Fitted {
  std::vector<double> weights;
  double intercept = 0;
};
Fitted fitted_of(const PathPoint& point, const Design& design);
/// Weights as standardised coefficients of a design, which may have other columns.
std::vector<double> standardised(std::span<const double> weights, const Design& design);

struct RegressionScores {
  double rmse = 0;
  double r2 = 0;  ///< 1 − squared errors / squared distances from the mean; NaN when all responses are the same
};
RegressionScores score(std::span<const double> predicted, std::span<const double> responses);
/// Log-loss, accuracy and AUC of log-odds; the first one is what cross-validation and --valid go by.
ValueList class_scores(std::span<const double> margins, std::span<const float> signs);
/// weights·x + intercept by row; columns beyond the weights count for nothing.
std::vector<double> predict(const SparseRows& rows, const Fitted& fitted, const ParallelFor& parallel);

struct ModelParts {
  const Design& design;
  const Response& response;
  const PathRequest& request;
  bool is_standardised;
  std::span<const PathPoint> points;
  std::size_t chosen;
  const Certificate& certificate;
  std::optional<BinaryLabels> labels;  ///< binomial
  const CvTable* validation;           ///< null: there was none
};
void write_lasso_model(ModelWriter& writer, const ModelParts& parts);

class LassoModel final : public LinearModel {
 public:
  /// Reads the whole model. @throws Error (data) when arrays are missing or do not fit together.
  explicit LassoModel(const ModelReader& reader);

  const Fitted& fitted() const { return fitted_; }
  bool is_binomial() const { return labels_.has_value(); }
  /// The predicted response, or the probability of the positive class (label 1), a row a line. A table must have the
  /// training's label column too.
  void predict(const std::string& data, const std::string& format, Engine& engine, std::ostream& out) const override;
  ValueList evaluate(const std::string& data, const std::string& format, Engine& engine) const override;

 protected:
  std::size_t columns() const override { return fitted_.weights.size(); }
  bool is_finite() const override;
  std::string metric() const override { return is_binomial() ? "log_loss" : "rmse"; }
  Certificate certify_on(const SparseData& data, const std::string& path, Engine& engine) const override;
  std::vector<Check> more_checks(const SparseData& data, const std::string& path, Engine& engine) const override;

 private:
  static constexpr std::size_t kPathColumns = 6;
  void read_validation(const ModelReader& reader);
  Check check_validation() const;
  Design design_of(const SparseData& data, Engine& engine) const;
  Response response_of(const SparseData& data, const std::string& path) const;
  Certificate certify_weights(const Design& design, const Response& response, const Fitted& fitted, Penalty penalty,
                              Engine& engine) const;

  Fitted fitted_;
  std::optional<BinaryLabels> labels_;
  bool has_intercept_ = true, is_standardised_ = true;
  double lambda_ = 0, l1_ratio_ = 1;
  std::vector<double> path_, path_values_;
  std::vector<std::uint64_t> path_starts_;
  std::vector<std::uint32_t> path_columns_;
  std::optional<CvTable> validation_;
};

}  // namespace orrery::lasso
