// A softmax regression on disk and read back: probabilities of the classes, held-out metrics, and the proof of how good
// it is.
//
// Arrays: `weights`, by column of the training data and class; `intercepts` by class, none if it was trained without;
// `classes`, the labels that stand for them in files, ascending; `constants` = {l1, l2, objective, norm of the least
// subgradient, duality gap}, the last three as certify() found them at the end of the training.
#pragma once

#include <string>
#include <vector>

#include "algorithms/linear_model.h"
#include "algorithms/softmax_loss.h"

namespace orrery::softmax {

void write_softmax_model(ModelWriter& writer, const Fitted& fitted, newton::Penalty penalty,
                         std::span<const double> classes, const Certificate& certificate);

/// Share of rows whose class has the greatest score.
double accuracy(std::span<const float> scores, std::span<const std::uint32_t> labels);

class SoftmaxModel final : public LinearModel {
 public:
  /// Reads the whole model. @throws Error (data) when arrays are missing or do not fit together.
  explicit SoftmaxModel(const ModelReader& reader);

  Fitted fitted() const { return {classes_.size(), weights_, intercepts_}; }
  std::span<const double> classes() const { return classes_; }

  /// A row a line: the label of the most probable class, then the probability of every class in ascending order of
  /// their labels.
  void predict(const std::string& data, const std::string& format, Engine& engine, std::ostream& out) const override;
  ValueList evaluate(const std::string& data, const std::string& format, Engine& engine) const override;

 protected:
  std::size_t columns() const override { return weights_.size() / classes_.size(); }
  bool is_finite() const override;
  Certificate certify_on(const SparseData& data, const std::string& path, Engine& engine) const override;

 private:
  std::vector<float> weights_, intercepts_;
  std::vector<double> classes_;
};

}  // namespace orrery::softmax
