#include "algorithms/linear_classifier.h"

#include <algorithm>
#include <utility>

#include "algorithms/labelled_rows.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/model_store.h"

namespace orrery {
namespace {

constexpr const char* kNoMinimum =
    "some weights classify every row correctly and lambda is 0, so there is no minimum: longer ones are always better. "
    "The training stopped at such weights; a --lambda above 0 has a minimum";

}  // namespace

LinearClassifier::LinearClassifier(AlgorithmInfo info) : info_(std::move(info)), param_set_(info_.name) {
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
                  {{"newton", LinearSolver::newton}, {"sgd", LinearSolver::sgd}})
      .add("rate", params_.rate, "sgd: length of the first steps", above(0))
      .add("batch", params_.batch, "sgd: rows that a worker takes between two clocks", at_least(1))
      .add("label", params_.label, "CSV and .npy: column that holds the class, by name or number from 1");
}

StopRules LinearClassifier::default_stop() const {
  StopRules stop;
  stop.iterations = 100;
  stop.tolerance = 1e-7;
  return stop;
}

newton::Penalty LinearClassifier::penalty() const {
  const double lambda = params_.lambda.value_or(1.0 / static_cast<double>(train_->features.rows()));
  const double ratio = params_.penalty == Regulariser::l2   ? 0.0
                       : params_.penalty == Regulariser::l1 ? 1.0
                                                            : params_.l1_ratio;
  return {lambda * ratio, lambda * (1.0 - ratio)};
}

void LinearClassifier::check(const DataRequest& request) const {
  if (param_set_.was_set("l1-ratio") && params_.penalty != Regulariser::elastic) {
    throw usage_error("--l1-ratio needs --penalty elastic, got --penalty " + param_set_.get("penalty"));
  }
  if (params_.solver == LinearSolver::sgd && params_.penalty != Regulariser::l2) {
    throw usage_error("--solver sgd takes --penalty l2 only, got " + param_set_.get("penalty"));
  }
  for (const char* name : {"rate", "batch"}) {
    if (params_.solver != LinearSolver::sgd && param_set_.was_set(name)) {
      throw usage_error(std::string("--") + name + " needs --solver sgd, got --solver " + param_set_.get("solver"));
    }
  }
  if (!request.format.empty()) static_cast<void>(parse_format(request.format));
  if (request.init) static_cast<void>(start_from(ModelReader(*request.init)));
}

void LinearClassifier::load(const DataRequest& request, Engine& engine) {
  check(request);
  init_ = request.init;
  train_ =
      std::make_unique<Rows>(read_labelled_rows(request.path, request.format, params_.label, engine, request.nodes));
  const bool several_classes = take_classes(request.path);
  has_intercept_ = params_.intercept && several_classes;
  if (!several_classes) {
    engine.warn(request.path + ": all rows are of one class" +
                (params_.intercept ? "; trained without an intercept, which would grow without end" : ""));
  }
  if (!request.valid) return;
  SparseData valid = read_labelled_rows(*request.valid, request.format, params_.label, engine, request.nodes);
  if (const std::uint32_t known = train_->data.rows.column_count; valid.rows.column_count > known) {
    engine.warn(*request.valid + ": columns above " + std::to_string(known) +
                " do not occur in training and count for nothing");
    keep_columns(valid.rows, known);
  }
  valid_ = std::make_unique<Rows>(std::move(valid));
  take_valid_classes(valid_->data, *request.valid);
}

DataSummary LinearClassifier::data_summary() const {
  const SparseRows& rows = train_->data.rows;
  DataSummary summary;
  summary.format = train_->data.recognised.describe();
  summary.checksum = train_->data.checksum;
  summary.shape = {{"rows", std::to_string(rows.rows())},
                   {"columns", std::to_string(rows.column_count)},
                   {"entries", std::to_string(rows.entries())}};
  for (auto& of_classes : class_summary()) summary.shape.push_back(std::move(of_classes));
  if (valid_) summary.shape.emplace_back("valid_rows", std::to_string(valid_->features.rows()));
  return summary;
}

WorkerId LinearClassifier::default_workers() const {
  // Every worker's sums are added up after a pass: many entries a worker, in total and for each column.
  const SparseRows& rows = train_->data.rows;
  const std::uint64_t by_work =
      rows.entries() / std::max<std::uint64_t>(1U << 20, 32ULL * rows.column_count * scores());
  const std::uint64_t by_rows = std::max<std::uint64_t>(1, rows.rows() / 16);
  return static_cast<WorkerId>(std::min(std::clamp<std::uint64_t>(by_work, 16, 256), by_rows));
}

MemoryEstimate LinearClassifier::memory(WorkerId workers) const {
  const SparseRows& rows = train_->data.rows;
  const std::uint64_t columns = rows.column_count + std::uint64_t{1}, parameters = columns * scores();
  const std::uint64_t row_bytes = 2 * sizeof(double) + sizeof(float) * floats_of_row();
  MemoryEstimate estimate;
  estimate.add("rows", rows.rows(), row_bytes)
      .add("entries", rows.entries(), sizeof(float) + sizeof(std::uint32_t))
      .add("weights and step", parameters, 96);
  const bool on_table = params_.solver == LinearSolver::sgd;
  if (on_table) {
    // At most: a gradient and an update of every column, each with its key and its place in the index.
    estimate.add("updates of the workers", workers * columns, (3 * scores() + 9) * sizeof(float))
        .add("places of the entries", rows.entries(), sizeof(std::uint32_t));
  } else {
    estimate.add("sums of the workers", workers * parameters, sizeof(newton::Slope));
  }
  if (!on_table && (weight_count() <= newton::kMostDense || params_.penalty != Regulariser::l2)) {
    const std::uint64_t side = std::min(parameters, newton::kMostDense + std::uint64_t{scores()});
    estimate.add("Hessian of a sample or block", (workers + std::uint64_t{3}) * side * side, sizeof(double));
  }
  if (valid_) {
    estimate.add("held-out rows", valid_->features.rows(), row_bytes)
        .add("held-out entries", valid_->data.rows.entries(), sizeof(float) + sizeof(std::uint32_t));
  }
  return estimate;
}

std::vector<float> LinearClassifier::start() const {
  std::vector<float> weights(weight_count() + (has_intercept_ ? scores() : 0), 0.0F);
  if (!init_) return weights;
  const Start before = start_from(ModelReader(*init_));
  std::copy_n(before.weights.begin(), std::min(weight_count(), before.weights.size()), weights.begin());
  if (has_intercept_) {
    std::copy(before.intercepts.begin(), before.intercepts.end(),
              weights.begin() + static_cast<std::ptrdiff_t>(weight_count()));
  }
  return weights;
}

Training LinearClassifier::prepare(Engine& engine, WorkerId workers, std::uint64_t, const std::string&) {
  schedule_ = std::make_unique<DataParallelSchedule>(std::vector<std::uint32_t>(workers, 1));
  Training training =
      params_.solver == LinearSolver::sgd ? prepare_adaptive(engine, workers) : prepare_newton(engine, workers);
  training.schedule = schedule_.get();
  return training;
}

Training LinearClassifier::prepare_adaptive(Engine& engine, WorkerId workers) {
  const WorkerMap map(workers, engine.transport().nodes(), engine.transport().node(), engine.domains());
  const AdaptiveRule rule{params_.rate, penalty().l2, static_cast<std::uint64_t>(params_.batch)};
  score_loss_ = make_score_loss();
  adaptive_ = std::make_unique<AdaptiveTrainee>(
      engine, map, train_->data.rows, *score_loss_, has_intercept_, rule, start(),
      [this](Engine& e, std::span<const float> weights, bool exact, Evaluation& out) {
        const double shown = report(e, weights, exact, out);
        out.objective = valid_ ? number_in(judge(*train_, false, weights, e), info_.metric) : shown;
        for (const float weight : weights.first(weight_count())) out.objective += penalty_at(weight, penalty());
      });
  Training training;
  training.trainee = adaptive_.get();
  training.clocks_per_iteration = adaptive_->clocks_per_iteration();
  training.schedule_reason = "workers take rows of their own and share a table of weights, which keeps the consistency";
  return training;
}

Training LinearClassifier::prepare_newton(Engine& engine, WorkerId workers) {
  if (engine.clock_bound() > 0) {
    throw usage_error(
        "solver newton needs --consistency bsp: each pass rests on the whole one before it; --solver sgd takes any");
  }
  loss_ = make_loss(workers, engine);
  newton_ = std::make_unique<newton::NewtonTrainee>(
      engine, *loss_, penalty(), start(),
      [this](Engine& e, std::span<const float> weights, bool exact, Evaluation& out) {
        report(e, weights, exact, out);
      },
      kNoMinimum);
  Training training;
  training.trainee = newton_.get();
  training.clocks_per_iteration = newton_->clocks_per_iteration();
  training.schedule_reason = "a pass adds up over rows, so every worker has rows of its own and sums of its own";
  return training;
}

/// Log-loss, which is returned, and other metrics on the held-out rows, or else on the training rows.
double LinearClassifier::report(Engine& engine, std::span<const float> weights, bool exact, Evaluation& out) {
  const ValueList found = judge(valid_ ? *valid_ : *train_, valid_ != nullptr, weights, engine);
  const double log_loss = number_in(found, info_.metric);
  if (valid_) out.valid = log_loss;
  for (const NamedValue& value : found) out.extra.emplace_back(value.name, std::get<double>(value.value));
  if (exact) {
    certificate_ = certify(weights, engine);
    out.extra.emplace_back("gap", certificate_->relative_gap());
  }
  return log_loss;
}

void LinearClassifier::write_model(ModelWriter& writer, Engine& engine) const {
  const std::vector<float> of_table = adaptive_ ? adaptive_->weights() : std::vector<float>();
  const std::span<const float> weights = adaptive_ ? std::span<const float>(of_table) : newton_->weights();
  write(writer, weights, certificate_ ? *certificate_ : certify(weights, engine));
}

}  // namespace orrery
