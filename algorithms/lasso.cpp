#include "algorithms/lasso.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "algorithms/data_parts.h"
#include "algorithms/labelled_rows.h"
#include "algorithms/lasso_design.h"
#include "algorithms/lasso_folds.h"
#include "algorithms/lasso_model.h"
#include "algorithms/lasso_rounds.h"
#include "algorithms/lasso_trainee.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/model_store.h"

namespace orrery {
namespace lasso {
namespace {

AlgorithmInfo make_info() {
  AlgorithmInfo info;
  info.name = "lasso";
  info.title = "linear or logistic regression with L1 or elastic-net penalty: Lasso, for one penalty or a path of them";
  info.objective =
      "1/(2n) |y - b0 - X b|^2 + lambda (r |b|_1 + (1 - r)/2 |b|^2), r = l1-ratio, on columns that are centred and "
      "scaled to variance 1 (1/n; not with --standardize=false), which is glmnet's objective; the intercept b0 carries "
      "no penalty, coefficients are reported on the scale of the data. scikit-learn's alpha is lambda. --family "
      "binomial "
      "puts the mean of log(1 + exp(-y (b0 + x.b))), y = -1 or 1, in the place of 1/(2n) |y - b0 - X b|^2; "
      "scikit-learn's C is 1 / (lambda rows) then";
  info.method =
      "Coordinate descent on working sets: a round brings the gradients of columns that may matter up to date (each "
      "has a deadline in units of how far the residual moves), adds up the duality gap, and solves the problem on the "
      "active columns and the worst violators: descent, and Newton steps on the support, with kept inner products "
      "where "
      "columns are long, else by conjugate gradients whose products all threads share. Penalties go down from the "
      "least that leaves nothing, each "
      "starting where the last one ended, with the strong rule and gap-safe screening. Units write what belongs to "
      "their worker and read what the pull before left, so the result equals a serial run's. Other schedulers move all "
      "columns in rounds of schedule, push and pull, in which no two columns depend on each other. --tolerance bounds "
      "the "
      "gap against the objective of no columns. Classes are fitted by Newton steps: the quadratic model of the loss is "
      "a "
      "weighted Lasso on the working set. Without --lambda there is a path; the model kept is the best on --valid or "
      "the "
      "choice of --cv, else the last. --cv deals the rows to folds from --seed and fits the path without each of them; "
      "a fold is a unit";
  info.reference =
      "Friedman, Hastie, Tibshirani, J. Stat. Softw. 2010 (glmnet); Lee et al., NIPS 2014 (schedule, push, pull); "
      "Tibshirani et al., JRSS-B 2012 (strong rules); Ndiaye et al., JMLR 2017 (gap safe screening); Massias, "
      "Gramfort, "
      "Salmon, ICML 2018 (working sets)";
  info.data =
      "svmlight, also in parts (NAME.%r: files numbered from 0, one data set), CSV or .npy with --label; any numbers "
      "as "
      "labels, binomial: -1/1 or 0/1";
  info.metric = "rmse";
  info.smaller_is_better = true;
  info.schedules = {"scheduled"};
  return info;
}

/// Which penalty cross-validation keeps.
enum class CvRule { one_se, least };

enum class Family { gaussian, binomial };

struct LassoParams {
  Family family = Family::gaussian;
  std::optional<double> lambda;
  std::int64_t path = 100;
  std::optional<double> path_ratio;
  std::int64_t cv = 0;
  CvRule cv_rule = CvRule::one_se;
  double l1_ratio = 1;
  bool intercept = true, standardize = true;
  Scheduler scheduler = Scheduler::dynamic;
  std::int64_t select = 64;
  double max_corr = 0.1;
  std::string label;
};

class Lasso final : public Algorithm {
 public:
  Lasso() : info_(make_info()), param_set_("lasso") {
    param_set_
        .add_choice("family", params_.family,
                    "gaussian: numbers, by squared errors; binomial: two classes, by log-loss",
                    {{"gaussian", Family::gaussian}, {"binomial", Family::binomial}})
        .add("lambda", params_.lambda, "weight of the penalty; auto: a path of penalties", at_least(0))
        .add("path", params_.path, "penalties of the path, from the least that leaves nothing down", at_least(1))
        .add("path-ratio", params_.path_ratio,
             "smallest penalty of the path against the largest; auto: 1e-4, or 1e-2 with fewer rows than columns",
             above_to(0, 1))
        .add("cv", params_.cv, "folds of a cross-validation that chooses from the path; 0: none",
             between(0, std::numeric_limits<std::uint32_t>::max()))
        .add_choice("cv-rule", params_.cv_rule,
                    "1se: the largest penalty whose error is within one standard error of the least; min: the least",
                    {{"1se", CvRule::one_se}, {"min", CvRule::least}})
        .add("l1-ratio", params_.l1_ratio, "share of absolute values in the penalty; the rest are squares",
             between(0, 1))
        .add("intercept", params_.intercept, "fit a constant beside the columns, without penalty")
        .add("standardize", params_.standardize, "scale columns to variance 1, so that the penalty treats them alike")
        .add_choice("scheduler", params_.scheduler,
                    "dynamic: working sets from deadlines; contrasts, in rounds over all columns: sampled: by the last "
                    "change squared, cyclic, shuffle",
                    {{"dynamic", Scheduler::dynamic},
                     {"sampled", Scheduler::sampled},
                     {"cyclic", Scheduler::cyclic},
                     {"shuffle", Scheduler::shuffle}})
        .add("select", params_.select, "sampled, cyclic, shuffle: coordinates of a round, at most", at_least(1))
        .add("max-corr", params_.max_corr,
             "sampled, cyclic, shuffle: two columns that correlate this much never move in one round", above_to(0, 1))
        .add("label", params_.label, "CSV and .npy: column that holds the response or class, by name or number from 1");
  }

  const AlgorithmInfo& info() const override { return info_; }
  ParamSet& params() override { return param_set_; }
  StopRules default_stop() const override {
    StopRules stop;
    stop.iterations = 100000;
    stop.tolerance = 1e-6;
    return stop;
  }

  void check(const DataRequest& request) const override;
  bool runs_on_several_nodes(const std::string&) const override {
    return params_.scheduler == Scheduler::dynamic && params_.cv == 0;
  }
  bool reads_parts() const override { return true; }
  void load(const DataRequest& request, Engine& engine) override;
  DataSummary data_summary() const override;
  WorkerId default_workers() const override;
  MemoryEstimate memory(WorkerId workers) const override;
  Training prepare(Engine& engine, WorkerId workers, std::uint64_t seed, const std::string& schedule) override;
  void write_model(ModelWriter& writer, Engine& engine) const override;

 private:
  PathRequest path_request() const;
  void check_validation(const DataRequest& request) const;
  std::unique_ptr<CrossValidation> cross_validation(Engine& engine, WorkerId workers, std::uint64_t seed);
  void load_valid(const DataRequest& request, Engine& engine);
  void drop_entries();
  std::uint64_t design_entries() const;
  std::unique_ptr<Design> make_design(Engine& engine, WorkerId workers) const;
  void warn_of(const Design& design, Engine& engine) const;
  void take_classes(const DataRequest& request, Engine& engine);
  bool is_binomial() const { return params_.family == Family::binomial; }
  ValueList held_out(const PathPoint& point, Engine& engine) const;
  std::size_t choose(std::span<const PathPoint> points, Engine& engine) const;

  AlgorithmInfo info_;
  LassoParams params_;
  ParamSet param_set_;
  SparseData train_;  ///< entries only until they are laid out
  /// Of several nodes that have read parts: then the entries that this one has read, and nothing of them in train_.
  std::optional<SharedRows> shared_;
  Collective readers_;
  std::optional<SparseData> valid_;
  std::uint64_t entries_ = 0, nodes_ = 1;
  BinaryLabels labels_;                     ///< binomial
  std::vector<float> signs_, valid_signs_;  ///< binomial
  bool has_intercept_ = true;
  std::optional<std::string> init_;
  PathRequest request_;
  std::unique_ptr<Design> design_;
  std::unique_ptr<Response> response_;
  std::unique_ptr<ScheduledSchedule> schedule_;
  std::unique_ptr<Rounds> rounds_;  ///< of another scheduler than dynamic
  std::unique_ptr<LassoTrainee> trainee_;
  std::vector<std::uint32_t> fold_of_;  ///< by row, with --cv
  std::unique_ptr<CrossValidation> validation_;
};

void Lasso::check(const DataRequest& request) const {
  if (params_.lambda && (param_set_.was_set("path") || param_set_.was_set("path-ratio"))) {
    throw usage_error("--lambda is one penalty, --path many; say one of them");
  }
  check_validation(request);
  if (is_binomial() && params_.scheduler != Scheduler::dynamic) {
    throw usage_error("--family binomial needs --scheduler dynamic");
  }
  for (const char* name : {"select", "max-corr"}) {
    if (params_.scheduler == Scheduler::dynamic && param_set_.was_set(name)) {
      throw usage_error(std::string("--") + name + " needs --scheduler sampled, cyclic or shuffle");
    }
  }
  if (!request.format.empty()) static_cast<void>(parse_format(request.format));
  if (!request.init) return;
  if (!params_.lambda) throw usage_error("--init needs --lambda: a path starts from nothing");
  const LassoModel start{ModelReader(*request.init)};
  if (start.is_binomial() != is_binomial()) {
    throw usage_error("--init: expected a model of --family " + param_set_.get("family") + ", got one of the other");
  }
}

void Lasso::check_validation(const DataRequest& request) const {
  if (params_.cv == 0) {
    if (param_set_.was_set("cv-rule")) throw usage_error("--cv-rule needs --cv");
    return;
  }
  if (params_.cv == 1) throw usage_error("--cv: expected 2 folds or more, got 1");
  if (params_.lambda) throw usage_error("--cv chooses from a path, and --lambda is one penalty; say one of them");
  if (request.valid) throw usage_error("--cv and --valid would both choose the penalty; say one of them");
  if (params_.scheduler != Scheduler::dynamic) throw usage_error("--cv needs --scheduler dynamic");
}

void Lasso::take_classes(const DataRequest& request, Engine& engine) {
  info_.metric = "log_loss";
  labels_ = binary_labels(train_.labels, request.path);
  signs_ = signs_of(train_.rows.labels, labels_, request.path);
  if (valid_) valid_signs_ = signs_of(valid_->rows.labels, labels_, *request.valid);
  const bool one_class = std::all_of(signs_.begin(), signs_.end(), [&](float s) { return s == signs_[0]; });
  if (!one_class) return;
  has_intercept_ = false;
  engine.warn(request.path + ": all rows are of one class" +
              (params_.intercept ? "; trained without an intercept, which would grow without end" : ""));
}

void Lasso::load(const DataRequest& request, Engine& engine) {
  check(request);
  init_ = request.init;
  nodes_ = engine.transport().nodes();
  readers_ = request.nodes;
  if (readers_.nodes() > 1 && is_in_parts(request.path)) {
    shared_ = read_share_of_labelled_rows(request.path, request.format, params_.label, engine, readers_);
    train_ = shared_->all;
    entries_ = shared_->entries;
  } else {
    train_ = read_labelled_rows(request.path, request.format, params_.label, engine, readers_);
    entries_ = train_.rows.entries();
  }
  if (params_.cv > static_cast<std::int64_t>(train_.rows.rows())) {
    throw usage_error("--cv: expected at most as many folds as rows (" + std::to_string(train_.rows.rows()) +
                      "), got " + std::to_string(params_.cv));
  }
  has_intercept_ = params_.intercept;
  if (request.valid) load_valid(request, engine);
  if (is_binomial()) take_classes(request, engine);
}

void Lasso::load_valid(const DataRequest& request, Engine& engine) {
  valid_ = read_labelled_rows(*request.valid, request.format, params_.label, engine, request.nodes);
  if (valid_->rows.column_count > train_.rows.column_count) {
    engine.warn(*request.valid + ": columns above " + std::to_string(train_.rows.column_count) +
                " do not occur in training and count for nothing");
  }
}

DataSummary Lasso::data_summary() const {
  DataSummary summary;
  summary.format = train_.recognised.describe();
  summary.checksum = train_.checksum;
  summary.shape = {{"rows", std::to_string(train_.rows.rows())},
                   {"columns", std::to_string(train_.rows.column_count)},
                   {"entries", std::to_string(entries_)}};
  if (valid_) summary.shape.emplace_back("valid_rows", std::to_string(valid_->rows.rows()));
  return summary;
}

WorkerId Lasso::default_workers() const {
  // A round costs more than a pass over a few ten thousand entries does.
  constexpr std::uint64_t kTiny = std::uint64_t{1} << 20, kTinyEach = std::uint64_t{1} << 16;
  constexpr std::uint64_t kEach = std::uint64_t{1} << 18;
  const std::uint64_t columns = std::max<std::uint64_t>(1, train_.rows.column_count / 64);
  const std::uint64_t wanted = entries_ < kTiny ? std::max<std::uint64_t>(1, entries_ / kTinyEach)
                                                : std::clamp<std::uint64_t>(entries_ / kEach, 16, 256);
  return static_cast<WorkerId>(std::max(std::min(wanted, columns), static_cast<std::uint64_t>(params_.cv)));
}

/// Entries that a copy of the data by column holds.
std::uint64_t Lasso::design_entries() const {
  const std::uint64_t all = train_.rows.rows() * train_.rows.column_count;
  return is_worth_dense(train_.rows.rows(), train_.rows.column_count, entries_) ? all : entries_;
}

std::unique_ptr<Design> Lasso::make_design(Engine& engine, WorkerId workers) const {
  const Dealing dealing{workers, engine.transport().nodes(), engine.transport().node()};
  const Kernels& loops = kernels(engine.simd());
  const ParallelFor parallel = engine.parallel_for_function();
  if (!shared_) {
    return std::make_unique<Design>(train_.rows, has_intercept_, params_.standardize, loops, parallel, dealing);
  }
  return std::make_unique<Design>(*shared_, has_intercept_, params_.standardize, loops, parallel, dealing, readers_);
}

MemoryEstimate Lasso::memory(WorkerId) const {
  const std::uint64_t rows = train_.rows.rows(), columns = train_.rows.column_count;
  const std::uint64_t slots = std::min<std::uint64_t>(columns, Gram::kMostSlots);
  MemoryEstimate estimate;
  estimate.add("rows", rows, 6 * sizeof(double))
      .add("entries as read", shared_ ? entries_ / nodes_ + 1 : entries_, sizeof(float) + sizeof(std::uint32_t))
      .add("entries by column", entries_ / nodes_ + 1, sizeof(float) + sizeof(std::uint32_t))
      .add("zeros of dense columns", (design_entries() - entries_) / nodes_, sizeof(float))
      .add("entries of a support, by row", design_entries() > entries_ ? 0 : entries_,
           sizeof(float) + 2 * sizeof(std::uint32_t))
      .add("columns", columns, 100)
      .add("products and factor", slots * slots, 2 * sizeof(float));
  if (params_.cv > 0) {
    const auto folds = static_cast<std::uint64_t>(params_.cv);
    estimate.add("rows of folds", folds * rows, 6 * sizeof(double))
        .add("entries of folds", folds * design_entries(), sizeof(float) + sizeof(std::uint32_t))
        .add("columns of folds", folds * columns, 100);
  }
  if (valid_) {
    estimate.add("held-out rows", valid_->rows.rows(), 3 * sizeof(double))
        .add("held-out entries", valid_->rows.entries(), sizeof(float) + sizeof(std::uint32_t));
  }
  return estimate;
}

PathRequest Lasso::path_request() const {
  PathRequest request;
  request.lambda = params_.lambda;
  request.points = params_.path;
  const bool is_tall = train_.rows.rows() >= train_.rows.column_count;
  request.smallest = params_.path_ratio.value_or(is_tall ? 1e-4 : 1e-2);
  request.l1_ratio = params_.l1_ratio;
  return request;
}

void Lasso::warn_of(const Design& design, Engine& engine) const {
  std::uint32_t unusable = 0;
  for (std::uint32_t j = 0; j < design.columns(); ++j) unusable += design.is_usable(j) ? 0 : 1;
  if (unusable > 0) {
    engine.warn(std::to_string(unusable) + " of " + std::to_string(design.columns()) +
                " columns have one value in all rows; their coefficients are 0");
  }
  if (response_->square == 0 && !is_binomial()) engine.warn("the response is constant, so all coefficients are 0");
  if (params_.lambda && *params_.lambda == 0) {
    engine.warn(std::string("lambda 0 is ") + (is_binomial() ? "plain logistic regression" : "least squares") +
                ": no coefficient is 0, and there is no bound on the distance from the minimum; --tolerance bounds the "
                "gradient instead");
  }
}

Training Lasso::prepare(Engine& engine, WorkerId workers, std::uint64_t seed, const std::string&) {
  if (engine.clock_bound() > 0) {
    throw usage_error("lasso needs --consistency bsp: a round rests on the whole one before it");
  }
  request_ = path_request();
  design_ = make_design(engine, workers);
  response_ = is_binomial() ? std::make_unique<Response>(signs_, has_intercept_)
                            : std::make_unique<Response>(train_.rows.labels, has_intercept_);
  warn_of(*design_, engine);
  std::vector<double> start;
  if (init_) start = standardised(LassoModel(ModelReader(*init_)).fitted().weights, *design_);
  if (params_.scheduler != Scheduler::dynamic) {
    rounds_ = std::make_unique<Rounds>(
        *design_, RoundsOptions{params_.scheduler, static_cast<std::size_t>(params_.select), params_.max_corr, seed},
        workers);
  }
  trainee_ = std::make_unique<LassoTrainee>(
      *design_, *response_, request_, workers, std::move(start), rounds_.get(),
      [this, &engine](const PathPoint& point, Evaluation& out) {
        if (!valid_) return;
        const ValueList scores = held_out(point, engine);
        out.valid = number_in(scores, info_.metric);
        for (const NamedValue& score : scores) out.extra.emplace_back(score.name, number_in(scores, score.name));
      },
      [this, &engine](std::span<const PathPoint> points) { return choose(points, engine); });
  schedule_ = std::make_unique<ScheduledSchedule>(
      workers, [this](Clock clock, std::span<std::vector<std::uint32_t>> bins) { trainee_->pick(clock, bins); });
  Training training;
  training.schedule = schedule_.get();
  training.trainee = trainee_.get();
  training.clocks_per_iteration = trainee_->clocks_per_iteration();
  training.schedule_reason = "coordinates that may move are chosen anew for each round";
  if (params_.cv > 0) {
    validation_ = cross_validation(engine, workers, seed);
    training.trainee = validation_.get();
  } else {
    drop_entries();
  }
  return training;
}

std::unique_ptr<CrossValidation> Lasso::cross_validation(Engine& engine, WorkerId workers, std::uint64_t seed) {
  const auto folds = static_cast<std::uint32_t>(params_.cv);
  fold_of_ = deal_folds(train_.rows.rows(), folds, seed);
  const FoldSetup setup{train_.rows, fold_of_,   signs_, has_intercept_, params_.standardize, kernels(engine.simd()),
                        request_,    StopRules{}};
  return std::make_unique<CrossValidation>(*trainee_, setup, folds, workers);
}

void Lasso::drop_entries() {
  train_.rows.columns = {};
  train_.rows.values = {};
  train_.rows.starts.assign(1, 0);
  shared_.reset();
}

ValueList Lasso::held_out(const PathPoint& point, Engine& engine) const {
  const std::vector<double> predicted =
      lasso::predict(valid_->rows, fitted_of(point, *design_), engine.parallel_for_function());
  if (is_binomial()) return class_scores(predicted, valid_signs_);
  const RegressionScores scores = score(predicted, valid_->rows.labels);
  return {{"rmse", scores.rmse}, {"valid_r2", scores.r2}};
}

/// The choice of cross-validation; the best on held-out rows, of equal ones the one with the largest penalty; else the
/// last.
std::size_t Lasso::choose(std::span<const PathPoint> points, Engine& engine) const {
  if (validation_ != nullptr && validation_->table() != nullptr) {
    const CvTable& table = *validation_->table();
    return params_.cv_rule == CvRule::least ? table.least : table.one_se;
  }
  if (validation_ != nullptr) engine.warn("cross-validation is not finished; the model is the last point of the path");
  if (!valid_) return points.size() - 1;
  std::vector<double> errors;
  for (const PathPoint& point : points) errors.push_back(number_in(held_out(point, engine), info_.metric));
  return static_cast<std::size_t>(std::min_element(errors.begin(), errors.end()) - errors.begin());
}

void Lasso::write_model(ModelWriter& writer, Engine&) const {
  write_lasso_model(writer,
                    {*design_, *response_, request_, params_.standardize, trainee_->points(), trainee_->chosen(),
                     trainee_->certificate(), is_binomial() ? std::optional(labels_) : std::nullopt,
                     validation_ != nullptr ? validation_->table() : nullptr});
}

}  // namespace
}  // namespace lasso

std::unique_ptr<Algorithm> make_lasso() { return std::make_unique<lasso::Lasso>(); }

std::unique_ptr<Model> open_lasso(const ModelReader& reader) { return std::make_unique<lasso::LassoModel>(reader); }

}  // namespace orrery
