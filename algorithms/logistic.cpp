#include "algorithms/logistic.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "algorithms/labelled_rows.h"
#include "algorithms/logistic_adaptive.h"
#include "algorithms/logistic_certificate.h"
#include "algorithms/logistic_loss.h"
#include "algorithms/logistic_model.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/model_store.h"

namespace orrery {
namespace logistic {

newton::Penalty penalty_of(const LogisticParams& params, std::uint64_t rows) {
  const double lambda = params.lambda.value_or(1.0 / static_cast<double>(rows));
  const double ratio = params.penalty == Regulariser::l2   ? 0.0
                       : params.penalty == Regulariser::l1 ? 1.0
                                                           : params.l1_ratio;
  return {lambda * ratio, lambda * (1.0 - ratio)};
}

namespace {

constexpr const char* kNoMinimum =
    "a plane separates the classes and lambda is 0, so there is no minimum: longer weights are always better. The "
    "training stopped at weights that classify every row correctly; a --lambda above 0 has a minimum";

AlgorithmInfo make_info() {
  AlgorithmInfo info;
  info.name = "logistic";
  info.title = "binary logistic regression with L2, L1 or elastic-net penalty";
  info.objective =
      "mean over rows of log(1 + exp(-y (w.x + b))), y = -1 or 1, plus lambda |w|^2 / 2 (l2), lambda |w|_1 (l1), or "
      "lambda (r |w|_1 + (1 - r) |w|^2 / 2) (elastic, r = l1-ratio); the intercept b carries no penalty. LIBLINEAR's "
      "and "
      "scikit-learn's C is 1 / (lambda rows), and their objective is this one times C rows";
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
  info.data = "svmlight, CSV or .npy with --label; labels -1/1 or 0/1";
  info.metric = "log_loss";
  info.smaller_is_better = true;
  info.schedules = {"data"};
  return info;
}

class LogisticRegression final : public Algorithm {
 public:
  LogisticRegression() : info_(make_info()), param_set_("logistic") {
    param_set_
        .add("lambda", params_.lambda, "weight of the penalty; auto: 1 / rows, which is C = 1 elsewhere", at_least(0))
        .add_choice("penalty", params_.penalty,
                    "l2: squares, l1: absolute values, which leaves weights at 0; elastic: both",
                    {{"l2", Regulariser::l2}, {"l1", Regulariser::l1}, {"elastic", Regulariser::elastic}})
        .add("l1-ratio", params_.l1_ratio, "share of l1 in the elastic penalty", between(0, 1))
        .add("intercept", params_.intercept, "fit a constant beside the columns, without penalty")
        .add_choice("solver", params_.solver,
                    "newton: Newton's method, exact; sgd: stochastic gradients with adaptive steps on a table, for any "
                    "--consistency, l2 only",
                    {{"newton", Solver::newton}, {"sgd", Solver::sgd}})
        .add("rate", params_.rate, "sgd: length of the first steps", above(0))
        .add("batch", params_.batch, "sgd: rows that a worker takes between two clocks", at_least(1))
        .add("label", params_.label, "CSV and .npy: column that holds the class, by name or number from 1");
  }

  const AlgorithmInfo& info() const override { return info_; }
  ParamSet& params() override { return param_set_; }
  StopRules default_stop() const override {
    StopRules stop;
    stop.iterations = 100;
    stop.tolerance = 1e-7;
    return stop;
  }

  void check(const DataRequest& request) const override;
  void load(const DataRequest& request, Engine& engine) override;
  DataSummary data_summary() const override;
  WorkerId default_workers() const override;
  MemoryEstimate memory(WorkerId workers) const override;
  Training prepare(Engine& engine, WorkerId workers, std::uint64_t seed, const std::string& schedule) override;
  void write_model(ModelWriter& writer, Engine& engine) const override;

 private:
  /// Rows and their classes; `table` borrows both.
  struct Rows {
    Rows(SparseData&& read, std::vector<float>&& of_rows)
        : data(std::move(read)), signs(std::move(of_rows)), table(data.rows, signs) {}
    SparseData data;
    std::vector<float> signs;
    Table table;
  };

  void load_valid(const DataRequest& request, Engine& engine);
  std::vector<float> start() const;
  Training prepare_newton(Engine& engine, WorkerId workers);
  Training prepare_adaptive(Engine& engine, WorkerId workers);
  std::vector<float> margins(const Rows& rows, std::span<const float> weights, Engine& engine) const;
  double loss(const Rows& rows, std::span<const float> weights, Engine& engine) const;
  double penalty(std::span<const float> weights) const;
  double report(Engine& engine, std::span<const float> weights, bool exact, Evaluation& out);
  Certificate certify_now(std::span<const float> weights, Engine& engine) const;
  Fitted fitted(std::span<const float> weights) const;

  AlgorithmInfo info_;
  LogisticParams params_;
  ParamSet param_set_;
  BinaryLabels labels_;
  bool has_intercept_ = true;
  std::unique_ptr<Rows> train_, valid_;
  std::optional<std::string> init_;
  std::unique_ptr<LogisticLoss> loss_;
  std::unique_ptr<DataParallelSchedule> schedule_;
  std::unique_ptr<newton::NewtonTrainee> trainee_;
  std::unique_ptr<AdaptiveTrainee> adaptive_;  ///< of solver sgd, instead of the two above
  std::optional<Certificate> certificate_;     ///< of the weights that the training ended with
};

void LogisticRegression::check(const DataRequest& request) const {
  if (param_set_.was_set("l1-ratio") && params_.penalty != Regulariser::elastic) {
    throw usage_error("--l1-ratio needs --penalty elastic, got --penalty " + param_set_.get("penalty"));
  }
  if (params_.solver == Solver::sgd && params_.penalty != Regulariser::l2) {
    throw usage_error("--solver sgd takes --penalty l2 only, got " + param_set_.get("penalty"));
  }
  for (const char* name : {"rate", "batch"}) {
    if (params_.solver != Solver::sgd && param_set_.was_set(name)) {
      throw usage_error(std::string("--") + name + " needs --solver sgd, got --solver " + param_set_.get("solver"));
    }
  }
  if (!request.format.empty()) static_cast<void>(parse_format(request.format));
  if (request.init) static_cast<void>(LogisticModel(ModelReader(*request.init)));
}

void LogisticRegression::load(const DataRequest& request, Engine& engine) {
  check(request);
  init_ = request.init;
  SparseData data = read_labelled_rows(request.path, request.format, params_.label, engine);
  labels_ = binary_labels(data.labels, request.path);
  std::vector<float> signs = signs_of(data.rows.labels, labels_, request.path);
  const bool one_class = std::all_of(signs.begin(), signs.end(), [&](float sign) { return sign == signs.front(); });
  train_ = std::make_unique<Rows>(std::move(data), std::move(signs));
  has_intercept_ = params_.intercept && !one_class;
  if (one_class) {
    engine.warn(request.path + ": all rows are of one class" +
                (params_.intercept ? "; trained without an intercept, which would grow without end" : ""));
  }
  if (request.valid) load_valid(request, engine);
}

void LogisticRegression::load_valid(const DataRequest& request, Engine& engine) {
  SparseData data = read_labelled_rows(*request.valid, request.format, params_.label, engine);
  std::vector<float> signs = signs_of(data.rows.labels, labels_, *request.valid);
  valid_ = std::make_unique<Rows>(std::move(data), std::move(signs));
  if (valid_->data.rows.column_count > train_->data.rows.column_count) {
    engine.warn(*request.valid + ": columns above " + std::to_string(train_->data.rows.column_count) +
                " do not occur in training and count for nothing");
  }
}

DataSummary LogisticRegression::data_summary() const {
  const SparseRows& rows = train_->data.rows;
  DataSummary summary;
  summary.format = train_->data.recognised.describe();
  summary.checksum = train_->data.checksum;
  const auto positive = std::count(train_->signs.begin(), train_->signs.end(), 1.0F);
  summary.shape = {{"rows", std::to_string(rows.rows())},
                   {"columns", std::to_string(rows.column_count)},
                   {"entries", std::to_string(rows.entries())},
                   {"positive_rows", std::to_string(positive)},
                   {"labels", "\"" + train_->data.labels.describe() + "\""}};
  if (valid_) summary.shape.emplace_back("valid_rows", std::to_string(valid_->data.rows.rows()));
  return summary;
}

WorkerId LogisticRegression::default_workers() const {
  // Every worker's sums are added up after a pass: many entries a worker, in total and for each column.
  const SparseRows& rows = train_->data.rows;
  const std::uint64_t by_work = rows.entries() / std::max<std::uint64_t>(1U << 20, 8ULL * rows.column_count);
  const std::uint64_t by_rows = std::max<std::uint64_t>(1, rows.rows() / 16);
  return static_cast<WorkerId>(std::min(std::clamp<std::uint64_t>(by_work, 16, 256), by_rows));
}

MemoryEstimate LogisticRegression::memory(WorkerId workers) const {
  const SparseRows& rows = train_->data.rows;
  const std::uint64_t columns = rows.column_count + std::uint64_t{1};
  MemoryEstimate estimate;
  estimate.add("rows", rows.rows(), 2 * sizeof(double) + 5 * sizeof(float))
      .add("entries", rows.entries(), sizeof(float) + sizeof(std::uint32_t))
      .add("weights and step", columns, 96);
  constexpr std::uint64_t kMostInMatrix = 513;  // newton.cpp: 512 columns and the intercept
  const bool on_table = params_.solver == Solver::sgd;
  if (on_table) {
    // At most: a gradient and an update of every column, with its key and its place in the index.
    estimate.add("updates of the workers", workers * columns, 12 * sizeof(float));
  } else {
    estimate.add("sums of the workers", workers * columns, sizeof(newton::Slope) + sizeof(double));
  }
  if (!on_table && (columns <= kMostInMatrix || params_.penalty != Regulariser::l2)) {
    const std::uint64_t side = std::min(columns, kMostInMatrix);
    estimate.add("Hessian of a sample or block", (workers + std::uint64_t{3}) * side * side, sizeof(double));
  }
  if (valid_) {
    estimate.add("held-out rows", valid_->data.rows.rows(), 2 * sizeof(double) + 2 * sizeof(float))
        .add("held-out entries", valid_->data.rows.entries(), sizeof(float) + sizeof(std::uint32_t));
  }
  return estimate;
}

std::vector<float> LogisticRegression::start() const {
  const std::size_t columns = train_->data.rows.column_count;
  std::vector<float> weights(columns + (has_intercept_ ? 1 : 0), 0.0F);
  if (!init_) return weights;
  const LogisticModel before{ModelReader(*init_)};
  const std::size_t known = std::min(columns, before.fitted().weights.size());
  std::copy_n(before.fitted().weights.begin(), known, weights.begin());
  if (has_intercept_) weights.back() = before.fitted().intercept;
  return weights;
}

Training LogisticRegression::prepare(Engine& engine, WorkerId workers, std::uint64_t, const std::string&) {
  schedule_ = std::make_unique<DataParallelSchedule>(std::vector<std::uint32_t>(workers, 1));
  return params_.solver == Solver::sgd ? prepare_adaptive(engine, workers) : prepare_newton(engine, workers);
}

Training LogisticRegression::prepare_adaptive(Engine& engine, WorkerId workers) {
  const WorkerMap map(workers, engine.transport().nodes(), engine.transport().node(), engine.domains());
  const AdaptiveRule rule{params_.rate, penalty_of(params_, train_->data.rows.rows()).l2,
                          static_cast<std::uint64_t>(params_.batch)};
  adaptive_ = std::make_unique<AdaptiveTrainee>(
      engine, map, train_->table, train_->signs, has_intercept_, rule, start(),
      [this](Engine& e, std::span<const float> weights, bool exact, Evaluation& out) {
        const double shown = report(e, weights, exact, out);
        out.objective = penalty(weights) + (valid_ ? loss(*train_, weights, e) : shown);
      });
  Training training;
  training.schedule = schedule_.get();
  training.trainee = adaptive_.get();
  training.clocks_per_iteration = adaptive_->clocks_per_iteration();
  training.schedule_reason = "workers take rows of their own and share a table of weights, which keeps the consistency";
  return training;
}

std::vector<float> LogisticRegression::margins(const Rows& rows, std::span<const float> weights, Engine& engine) const {
  const Fitted now = fitted(weights);
  return logistic::predict(rows.table, now.weights, now.intercept, kernels(engine.simd()),
                           engine.parallel_for_function());
}

double LogisticRegression::loss(const Rows& rows, std::span<const float> weights, Engine& engine) const {
  return mean_loss(margins(rows, weights, engine), rows.signs, kernels(engine.simd()), engine.parallel_for_function());
}

/// Of the l2 penalty.
double LogisticRegression::penalty(std::span<const float> weights) const {
  double squares = 0;
  for (const float weight : fitted(weights).weights) squares += double{weight} * weight;
  return penalty_of(params_, train_->data.rows.rows()).l2 / 2 * squares;
}

Training LogisticRegression::prepare_newton(Engine& engine, WorkerId workers) {
  if (engine.clock_bound() > 0) {
    throw usage_error(
        "solver newton needs --consistency bsp: each pass rests on the whole one before it; --solver sgd takes any");
  }
  loss_ = std::make_unique<LogisticLoss>(train_->table, workers, has_intercept_, kernels(engine.simd()));
  trainee_ = std::make_unique<newton::NewtonTrainee>(
      *loss_, penalty_of(params_, train_->data.rows.rows()), start(),
      [this](Engine& e, std::span<const float> weights, bool exact, Evaluation& out) {
        report(e, weights, exact, out);
      },
      kNoMinimum);
  Training training;
  training.schedule = schedule_.get();
  training.trainee = trainee_.get();
  training.clocks_per_iteration = trainee_->clocks_per_iteration();
  training.schedule_reason = "a pass adds up over rows, so every worker has rows of its own and sums of its own";
  return training;
}

Fitted LogisticRegression::fitted(std::span<const float> weights) const {
  const std::size_t columns = train_->data.rows.column_count;
  return {weights.first(columns), has_intercept_ ? weights[columns] : 0.0F, has_intercept_};
}

Certificate LogisticRegression::certify_now(std::span<const float> weights, Engine& engine) const {
  return certify(train_->data.rows, train_->signs, fitted(weights), penalty_of(params_, train_->data.rows.rows()),
                 engine.parallel_for_function());
}

/// Log-loss, which is returned, accuracy and AUC on the held-out rows, or else on the training rows.
double LogisticRegression::report(Engine& engine, std::span<const float> weights, bool exact, Evaluation& out) {
  const Rows& rows = valid_ ? *valid_ : *train_;
  const std::vector<float> found = margins(rows, weights, engine);
  const BinaryScores scores = score(found, rows.signs);
  const double mean = mean_loss(found, rows.signs, kernels(engine.simd()), engine.parallel_for_function());
  if (valid_) out.valid = mean;
  out.extra.emplace_back("log_loss", mean);
  out.extra.emplace_back("accuracy", scores.accuracy);
  out.extra.emplace_back("auc", scores.auc);
  if (exact) {
    certificate_ = certify_now(weights, engine);
    out.extra.emplace_back("gap", certificate_->gap / certificate_->objective);
  }
  return mean;
}

void LogisticRegression::write_model(ModelWriter& writer, Engine& engine) const {
  const std::vector<float> of_table = adaptive_ ? adaptive_->weights() : std::vector<float>();
  const std::span<const float> weights = adaptive_ ? std::span<const float>(of_table) : trainee_->weights();
  write_logistic_model(writer, fitted(weights), penalty_of(params_, train_->data.rows.rows()), labels_,
                       certificate_ ? *certificate_ : certify_now(weights, engine));
}

}  // namespace
}  // namespace logistic

std::unique_ptr<Algorithm> make_logistic() { return std::make_unique<logistic::LogisticRegression>(); }

std::unique_ptr<Model> open_logistic(const ModelReader& reader) {
  return std::make_unique<logistic::LogisticModel>(reader);
}

}  // namespace orrery
