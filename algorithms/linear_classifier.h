// What training a linear classifier is, whatever its loss: rows with a class each are read, one score or several are
// fitted to them as inner products with weights, by Newton's method (newton.h) or on a table (adaptive_steps.h). An
// algorithm (logistic, softmax) says what classes, loss, proof and model are.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algorithms/adaptive_steps.h"
#include "algorithms/algorithm.h"
#include "algorithms/certificate.h"
#include "algorithms/feature_rows.h"
#include "algorithms/newton.h"

namespace orrery {

enum class Regulariser { l2, l1, elastic };
enum class LinearSolver { newton, sgd };

struct LinearParams {
  std::optional<double> lambda;  ///< empty: 1 / rows
  Regulariser penalty = Regulariser::l2;
  double l1_ratio = 0.5;
  bool intercept = true;
  LinearSolver solver = LinearSolver::newton;
  double rate = 0.1;
  std::int64_t batch = 64;
  std::string label;
};

/// Weights are by column and, in a column, by score; the intercepts follow them, if there are any.
class LinearClassifier : public Algorithm {
 public:
  explicit LinearClassifier(AlgorithmInfo info);

  const AlgorithmInfo& info() const override { return info_; }
  ParamSet& params() override { return param_set_; }
  StopRules default_stop() const override;
  void check(const DataRequest& request) const override;
  bool runs_on_several_nodes(const std::string&) const override { return true; }
  bool reads_parts() const override { return true; }
  void load(const DataRequest& request, Engine& engine) override;
  DataSummary data_summary() const override;
  WorkerId default_workers() const override;
  MemoryEstimate memory(WorkerId workers) const override;
  Training prepare(Engine& engine, WorkerId workers, std::uint64_t seed, const std::string& schedule) override;
  void write_model(ModelWriter& writer, Engine& engine) const override;

 protected:
  struct Rows {
    explicit Rows(SparseData&& read) : data(std::move(read)), features(data.rows) {}
    SparseData data;
    FeatureRows features;  ///< borrows the data
  };
  /// The weights of a model, to start from.
  struct Start {
    std::vector<float> weights, intercepts;
  };

  const Rows& train() const { return *train_; }
  std::size_t weight_count() const { return train_->features.columns() * scores(); }
  bool has_intercept() const { return has_intercept_; }
  newton::Penalty penalty() const;

  /// What the labels of the training rows say. @return false when all are of one class.
  virtual bool take_classes(const std::string& path) = 0;
  /// The same for held-out rows. @throws Error (data) for a class that training does not have
  virtual void take_valid_classes(const SparseData& valid, const std::string& path) = 0;
  virtual std::vector<std::pair<std::string, std::string>> class_summary() const = 0;
  /// Scores of a row.
  virtual std::size_t scores() const = 0;
  /// Float numbers that a row needs beside its entries and label.
  virtual std::uint64_t floats_of_row() const = 0;
  virtual std::unique_ptr<newton::RowLoss> make_loss(WorkerId workers, Engine& engine) = 0;
  virtual std::unique_ptr<ScoreLoss> make_score_loss() const = 0;
  /// Log-loss of the rows, which is first, and what else tells how good predictions are.
  virtual ValueList judge(const Rows& rows, bool is_valid, std::span<const float> weights, Engine& engine) const = 0;
  virtual Certificate certify(std::span<const float> weights, Engine& engine) const = 0;
  /// For the classes that are known; before any are, only whether it can be read. @throws Error (data) if it cannot
  virtual Start start_from(const ModelReader& reader) const = 0;
  virtual void write(ModelWriter& writer, std::span<const float> weights, const Certificate& certificate) const = 0;

 private:
  std::vector<float> start() const;
  Training prepare_newton(Engine& engine, WorkerId workers);
  Training prepare_adaptive(Engine& engine, WorkerId workers);
  double report(Engine& engine, std::span<const float> weights, bool exact, Evaluation& out);

  AlgorithmInfo info_;
  LinearParams params_;
  ParamSet param_set_;
  bool has_intercept_ = true;
  std::unique_ptr<Rows> train_, valid_;
  std::optional<std::string> init_;
  std::unique_ptr<DataParallelSchedule> schedule_;
  std::unique_ptr<newton::RowLoss> loss_;  ///< of solver newton
  std::unique_ptr<newton::NewtonTrainee> newton_;
  std::unique_ptr<ScoreLoss> score_loss_;  ///< of solver sgd
  std::unique_ptr<AdaptiveTrainee> adaptive_;
  std::optional<Certificate> certificate_;  ///< of the weights that the training ended with
};

}  // namespace orrery
