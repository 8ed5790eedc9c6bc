// K-fold cross-validation of a path, as cv.glmnet does it: the path of all rows says which penalties there are; then
// every fold's rows are left out in turn, the path is fitted to the others, and each of its points predicts the rows
// that it has not seen (how a penalty is chosen: lasso_validation.h).
//
// A fold is a problem of its own, with its own means and scales, solved by one worker without the others; folds are the
// units, a clock takes every fold one penalty further. So a fold's result is a function of its rows alone, whatever the
// number of workers and threads, and a checkpoint may lie between any two penalties.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "algorithms/lasso_certificate.h"
#include "algorithms/lasso_design.h"
#include "algorithms/lasso_path.h"
#include "algorithms/lasso_trainee.h"
#include "algorithms/lasso_validation.h"
#include "engine/data/sparse_rows.h"
#include "engine/training.h"

namespace orrery::lasso {

/// What all folds share.
struct FoldSetup {
  const SparseRows& rows;  ///< of the training, all of them
  std::span<const std::uint32_t> fold_of;
  std::span<const float> signs;  ///< of the rows, binomial; else empty
  bool has_intercept = true, standardise = true;
  const Kernels& kernels;
  PathRequest request;  ///< with the lambdas of the path
  StopRules stop;
};

/// One fold: the path of the rows outside, and how well it predicts those inside.
class Fold {
 public:
  Fold(const FoldSetup& setup, std::uint32_t fold);

  /// Goes on until one more penalty is done. Serial.
  void step();
  bool is_done() const { return trainee_->is_done(); }
  /// Mean squared error, or log-loss, on the fold's rows, by lambda; penalties that were no longer needed have the last
  /// one's. When it is done.
  std::vector<double> errors() const { return errors_; }

  void save(std::vector<StateSection>& sections, const std::string& prefix) const;
  void load(const std::vector<StateSection>& sections, const std::string& prefix);

 private:
  void judge();

  const FoldSetup& setup_;
  std::uint32_t fold_;
  std::unique_ptr<Design> design_;
  std::unique_ptr<Response> response_;
  std::unique_ptr<LassoTrainee> trainee_;
  std::vector<double> errors_;
};

/// The path, and then the folds.
class CrossValidation final : public Trainee {
 public:
  /// Borrows the path's trainee; what `setup` points to must last. Its lambdas are set when the path is done.
  CrossValidation(LassoTrainee& path, FoldSetup setup, std::uint32_t folds, WorkerId workers);

  /// Null until every fold is done.
  const CvTable* table() const { return is_done_ ? &table_ : nullptr; }

  void take_stop_rules(const StopRules& rules) override;
  void run_unit(const WorkUnit& unit, UnitContext& context) override;
  void commit(Clock clock, std::span<const Bytes> partials) override;
  Evaluation evaluate(Engine& engine, bool exact) override;
  std::vector<StateSection> save_state() const override;
  void load_state(const std::vector<StateSection>& sections) override;
  void keep_best() override { path_.keep_best(); }
  void restore_best() override { path_.restore_best(); }

 private:
  bool is_path_done() const { return path_.is_done(); }
  void take_folds();

  LassoTrainee& path_;
  FoldSetup setup_;
  WorkerId workers_;
  std::vector<std::unique_ptr<Fold>> folds_;  ///< null until a unit has made it
  bool is_done_ = false;
  CvTable table_;
};

}  // namespace orrery::lasso
