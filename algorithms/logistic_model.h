// A logistic regression on disk and read back: probabilities, held-out metrics, and the proof of how good it is.
//
// Arrays: `weights`, by column of the training data; `constants` = {intercept, has intercept, l1, l2, label of the
// negative class, label of the positive class, objective, norm of the least subgradient, duality gap}, the last three
// as certify() found them at the end of the training.
#pragma once

#include <string>
#include <vector>

#include "algorithms/labelled_rows.h"
#include "algorithms/linear_model.h"
#include "algorithms/logistic_certificate.h"

namespace orrery::logistic {

void write_logistic_model(ModelWriter& writer, const Fitted& fitted, newton::Penalty penalty, BinaryLabels labels,
                          const Certificate& certificate);

class LogisticModel final : public LinearModel {
 public:
  /// Reads the whole model. @throws Error (data) when arrays are missing or do not fit together.
  explicit LogisticModel(const ModelReader& reader);

  Fitted fitted() const { return {weights_, intercept_, has_intercept_}; }

  /// The probability of the positive class (label 1), a row a line. A table must have the training's label column too.
  void predict(const std::string& data, const std::string& format, Engine& engine, std::ostream& out) const override;
  ValueList evaluate(const std::string& data, const std::string& format, Engine& engine) const override;

 protected:
  std::size_t columns() const override { return weights_.size(); }
  bool is_finite() const override;
  Certificate certify_on(const SparseData& data, const std::string& path, Engine& engine) const override;

 private:
  std::vector<float> weights_;
  float intercept_ = 0;
  bool has_intercept_ = true;
  BinaryLabels labels_;
};

}  // namespace orrery::logistic
