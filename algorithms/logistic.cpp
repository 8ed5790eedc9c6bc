#include "algorithms/logistic.h"

#include <algorithm>
#include <utility>

#include "algorithms/labelled_rows.h"
#include "algorithms/linear_classifier.h"
#include "algorithms/logistic_certificate.h"
#include "algorithms/logistic_loss.h"
#include "algorithms/logistic_model.h"
#include "engine/engine.h"
#include "engine/model_store.h"

namespace orrery {
namespace logistic {
namespace {

AlgorithmInfo make_info() {
  AlgorithmInfo info;
  info.name = "logistic";
  info.title = "binary logistic regression with L2, L1 or elastic-net penalty";
  info.objective =
      "mean over rows of log(1 + exp(-y (w.x + b))), y = -1 or 1, plus lambda |w|^2 / 2 (l2), lambda |w|_1 (l1), or "
      "lambda (r |w|_1 + (1 - r) |w|^2 / 2) (elastic, r = l1-ratio); the intercept b carries no penalty. LIBLINEAR's "
      "and scikit-learn's C is 1 / (lambda rows), and their objective is this one times C rows";
  info.method =
      "Newton's method; an iteration is one step of several passes over the data. l2: conjugate gradients, "
      "preconditioned by the Hessian of a sample of rows up to 512 columns, by its diagonal above. l1 and elastic: "
      "coordinate descent on the quadratic model of up to 512 columns at a time. A pass is a clock: workers read the "
      "weights of the clock before and own their "
      "sums, so the result equals a serial run's. Metrics: gradient (norm of the least subgradient against the first "
      "one) and, at the end, gap (duality gap against the objective: a proven bound of the distance from the minimum)";
  info.reference =
      "Dembo, Eisenstat, Steihaug, SIAM J. Numer. Anal. 1982 (inexact Newton); Lin, Weng, Keerthi, JMLR 2008 (trust "
      "region Newton for logistic regression); Yuan, Ho, Lin, JMLR 2012 (proximal Newton)";
  info.data =
      "svmlight, also in parts (NAME.%r: files numbered from 0, one data set), CSV or .npy with --label; labels -1/1 "
      "or 0/1";
  info.metric = "log_loss";
  info.smaller_is_better = true;
  info.uses_seed = false;
  info.schedules = {"data"};
  return info;
}

class LogisticRegression final : public LinearClassifier {
 public:
  LogisticRegression() : LinearClassifier(make_info()) {}

 protected:
  bool take_classes(const std::string& path) override;
  void take_valid_classes(const SparseData& valid, const std::string& path) override;
  std::vector<std::pair<std::string, std::string>> class_summary() const override;
  std::size_t scores() const override { return 1; }
  std::uint64_t floats_of_row() const override { return 5; }
  std::unique_ptr<newton::RowLoss> make_loss(WorkerId workers, Engine& engine) override;
  std::unique_ptr<ScoreLoss> make_score_loss() const override;
  ValueList judge(const Rows& rows, bool is_valid, std::span<const float> weights, Engine& engine) const override;
  Certificate certify(std::span<const float> weights, Engine& engine) const override;
  Start start_from(const ModelReader& reader) const override;
  void write(ModelWriter& writer, std::span<const float> weights, const Certificate& certificate) const override;

 private:
  Fitted fitted(std::span<const float> weights) const;

  BinaryLabels labels_;
  std::vector<float> signs_, valid_signs_;
};

bool LogisticRegression::take_classes(const std::string& path) {
  labels_ = binary_labels(train().data.labels, path);
  signs_ = signs_of(train().data.rows.labels, labels_, path);
  return std::any_of(signs_.begin(), signs_.end(), [&](float sign) { return sign != signs_.front(); });
}

void LogisticRegression::take_valid_classes(const SparseData& valid, const std::string& path) {
  valid_signs_ = signs_of(valid.rows.labels, labels_, path);
}

std::vector<std::pair<std::string, std::string>> LogisticRegression::class_summary() const {
  const auto positive = std::count(signs_.begin(), signs_.end(), 1.0F);
  return {{"positive_rows", std::to_string(positive)}, {"labels", "\"" + train().data.labels.describe() + "\""}};
}

std::unique_ptr<newton::RowLoss> LogisticRegression::make_loss(WorkerId workers, Engine& engine) {
  return std::make_unique<LogisticLoss>(train().features, signs_, workers, has_intercept(), kernels(engine.simd()));
}

std::unique_ptr<ScoreLoss> LogisticRegression::make_score_loss() const {
  return std::make_unique<LogisticScoreLoss>(signs_);
}

ValueList LogisticRegression::judge(const Rows& rows, bool is_valid, std::span<const float> weights,
                                    Engine& engine) const {
  const Fitted now = fitted(weights);
  const std::vector<float>& signs = is_valid ? valid_signs_ : signs_;
  const Kernels& level = kernels(engine.simd());
  const ParallelFor parallel = engine.parallel_for_function();
  const std::vector<float> margins = logistic::predict(rows.features, now.weights, now.intercept, level, parallel);
  const BinaryScores found = score(margins, signs);
  return {{"log_loss", mean_loss(margins, signs, level, parallel)}, {"accuracy", found.accuracy}, {"auc", found.auc}};
}

Certificate LogisticRegression::certify(std::span<const float> weights, Engine& engine) const {
  return logistic::certify(train().data.rows, signs_, fitted(weights), penalty(), engine.parallel_for_function());
}

LogisticRegression::Start LogisticRegression::start_from(const ModelReader& reader) const {
  const LogisticModel before(reader);
  return {{before.fitted().weights.begin(), before.fitted().weights.end()}, {before.fitted().intercept}};
}

void LogisticRegression::write(ModelWriter& writer, std::span<const float> weights,
                               const Certificate& certificate) const {
  write_logistic_model(writer, fitted(weights), penalty(), labels_, certificate);
}

Fitted LogisticRegression::fitted(std::span<const float> weights) const {
  const std::size_t columns = weight_count();
  return {weights.first(columns), has_intercept() ? weights[columns] : 0.0F, has_intercept()};
}

}  // namespace
}  // namespace logistic

std::unique_ptr<Algorithm> make_logistic() { return std::make_unique<logistic::LogisticRegression>(); }

std::unique_ptr<Model> open_logistic(const ModelReader& reader) {
  return std::make_unique<logistic::LogisticModel>(reader);
}

}  // namespace orrery
