#include "algorithms/softmax.h"

#include <algorithm>
#include <utility>

#include "algorithms/labelled_rows.h"
#include "algorithms/linear_classifier.h"
#include "algorithms/softmax_certificate.h"
#include "algorithms/softmax_loss.h"
#include "algorithms/softmax_model.h"
#include "engine/engine.h"
#include "engine/model_store.h"
#include "engine/params.h"

namespace orrery {
namespace softmax {
namespace {

AlgorithmInfo make_info() {
  AlgorithmInfo info;
  info.name = "softmax";
  info.title = "softmax (multinomial logistic) regression with L2, L1 or elastic-net penalty";
  info.objective =
      "mean over rows of log sum over classes k of exp(s_k) - s_y with the scores s_k = w_k.x + b_k, plus the sum over "
      "classes of lambda |w_k|^2 / 2 (l2), lambda |w_k|_1 (l1), or lambda (r |w_k|_1 + (1 - r) |w_k|^2 / 2) (elastic, "
      "r = l1-ratio); the intercepts b carry no penalty. scikit-learn's C is 1 / (lambda rows). With two classes and "
      "l2 it is `logistic` with half the lambda, with l1 with the same one";
  info.method =
      "Newton's method as for `logistic`, on the weights of all classes together (l2: conjugate gradients, "
      "preconditioned by the Hessian of a sample of rows up to 512 weights, by its diagonal above; l1 and elastic: "
      "coordinate descent on the quadratic model of up to 512 weights at a time). A pass is a clock: workers read the "
      "weights of the clock before and own their sums, so the result equals a serial run's. Metrics: gradient (norm of "
      "the least subgradient against the first one) and, at the end, gap (duality gap against the objective: a proven "
      "bound of the distance from the minimum)";
  info.reference =
      "Krishnapuram, Carin, Figueiredo, Hartemink, IEEE PAMI 2005 (sparse multinomial logistic regression); Dembo, "
      "Eisenstat, Steihaug, SIAM J. Numer. Anal. 1982 (inexact Newton); Yuan, Ho, Lin, JMLR 2012 (proximal Newton)";
  info.data =
      "svmlight, also in parts (NAME.%r: files numbered from 0, one data set), CSV or .npy with --label; labels are "
      "any integers, each a class";
  info.metric = "log_loss";
  info.smaller_is_better = true;
  info.uses_seed = false;
  info.schedules = {"data"};
  return info;
}

class SoftmaxRegression final : public LinearClassifier {
 public:
  SoftmaxRegression() : LinearClassifier(make_info()) {}

 protected:
  bool take_classes(const std::string& path) override;
  void take_valid_classes(const SparseData& valid, const std::string& path) override;
  std::vector<std::pair<std::string, std::string>> class_summary() const override;
  std::size_t scores() const override { return classes_.size(); }
  std::uint64_t floats_of_row() const override { return 1 + 4 * scores(); }
  std::unique_ptr<newton::RowLoss> make_loss(WorkerId workers, Engine& engine) override;
  std::unique_ptr<ScoreLoss> make_score_loss() const override;
  ValueList judge(const Rows& rows, bool is_valid, std::span<const float> weights, Engine& engine) const override;
  Certificate certify(std::span<const float> weights, Engine& engine) const override;
  Start start_from(const ModelReader& reader) const override;
  void write(ModelWriter& writer, std::span<const float> weights, const Certificate& certificate) const override;

 private:
  Fitted fitted(std::span<const float> weights) const;

  std::vector<double> classes_;  ///< their labels in files, ascending
  std::vector<std::uint32_t> labels_, valid_labels_;
};

bool SoftmaxRegression::take_classes(const std::string& path) {
  classes_ = classes_in(train().data.rows.labels, path);
  labels_ = numbers_of(train().data.rows.labels, classes_, path);
  return classes_.size() > 1;
}

void SoftmaxRegression::take_valid_classes(const SparseData& valid, const std::string& path) {
  valid_labels_ = numbers_of(valid.rows.labels, classes_, path);
}

std::vector<std::pair<std::string, std::string>> SoftmaxRegression::class_summary() const {
  return {{"classes", std::to_string(classes_.size())},
          {"labels", "\"" + shortest_text(classes_.front()) + ".." + shortest_text(classes_.back()) + "\""}};
}

std::unique_ptr<newton::RowLoss> SoftmaxRegression::make_loss(WorkerId workers, Engine& engine) {
  return std::make_unique<SoftmaxLoss>(train().features, labels_, scores(), workers, has_intercept(),
                                       kernels(engine.simd()));
}

std::unique_ptr<ScoreLoss> SoftmaxRegression::make_score_loss() const {
  return std::make_unique<SoftmaxScoreLoss>(labels_, scores());
}

ValueList SoftmaxRegression::judge(const Rows& rows, bool is_valid, std::span<const float> weights,
                                   Engine& engine) const {
  const std::vector<std::uint32_t>& labels = is_valid ? valid_labels_ : labels_;
  const Kernels& level = kernels(engine.simd());
  const ParallelFor parallel = engine.parallel_for_function();
  const std::vector<float> found = softmax::predict(rows.features, fitted(weights), level, parallel);
  return {{"log_loss", mean_loss(found, labels, level, parallel)}, {"accuracy", accuracy(found, labels)}};
}

Certificate SoftmaxRegression::certify(std::span<const float> weights, Engine& engine) const {
  return softmax::certify(train().data.rows, labels_, fitted(weights), penalty(), engine.parallel_for_function());
}

/// The weights of the classes that both have; a class that the model lacks starts at 0.
SoftmaxRegression::Start SoftmaxRegression::start_from(const ModelReader& reader) const {
  const SoftmaxModel before(reader);
  const Fitted fitted = before.fitted();
  const std::size_t columns = fitted.weights.size() / fitted.classes;
  Start start{std::vector<float>(columns * scores()), std::vector<float>(scores())};
  for (std::size_t k = 0; k < scores(); ++k) {
    const auto at = std::find(before.classes().begin(), before.classes().end(), classes_[k]);
    if (at == before.classes().end()) continue;
    const auto from = static_cast<std::size_t>(at - before.classes().begin());
    for (std::size_t j = 0; j < columns; ++j) {
      start.weights[j * scores() + k] = fitted.weights[j * fitted.classes + from];
    }
    if (!fitted.intercepts.empty()) start.intercepts[k] = fitted.intercepts[from];
  }
  return start;
}

void SoftmaxRegression::write(ModelWriter& writer, std::span<const float> weights,
                              const Certificate& certificate) const {
  write_softmax_model(writer, fitted(weights), penalty(), classes_, certificate);
}

Fitted SoftmaxRegression::fitted(std::span<const float> weights) const {
  return {scores(), weights.first(weight_count()), weights.subspan(weight_count())};
}

}  // namespace
}  // namespace softmax

std::unique_ptr<Algorithm> make_softmax() { return std::make_unique<softmax::SoftmaxRegression>(); }

std::unique_ptr<Model> open_softmax(const ModelReader& reader) {
  return std::make_unique<softmax::SoftmaxModel>(reader);
}

}  // namespace orrery
