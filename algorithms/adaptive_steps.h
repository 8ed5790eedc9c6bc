// Linear models on a table under bounded staleness, for `--solver sgd` of logistic and softmax: stochastic gradients
// with steps that adapt to each weight,
//
//   w_j -= rate g_j / sqrt(1e-6 + G_j + W g_j²),    G_j += g_j²
//
// (Duchi, Hazan and Singer, JMLR 2011), by W workers at once. Both lines only add, so they are updates of a table: its
// row of a column holds the column's weights, one for each score of the model, and their sums of squared gradients.
// A worker takes the next rows of its own each clock and reads and adds to the columns that occur in them, nothing
// else; what the others have added it sees up to the bound. That is why the schedule is safe: nothing is shared but the
// table, and the table keeps the contract of design section 5. The term W g_j² stands for what the other workers add in
// the same clock, of which G_j cannot know: without it the first step would be W times too long.
//
// The penalty lambda/2 |w|² is spread over the rows in which a column occurs: a batch with k of the column's n rows
// counts lambda w_j · (k/n) · (rows/batch), which is the derivative of the penalty in the mean over batches.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/data/sparse_rows.h"
#include "engine/table_store.h"

namespace orrery {

/// The loss of a row as a function of its scores: of the inner products with the weights of each class.
class ScoreLoss {
 public:
  virtual ~ScoreLoss() = default;
  virtual std::size_t scores() const = 0;
  /// Replaces the scores of a row by the derivatives of its loss by them.
  virtual void differentiate(std::uint64_t row, std::span<double> scores) const = 0;
};

struct AdaptiveRule {
  double rate = 0.5;
  double l2 = 0;            ///< lambda
  std::uint64_t batch = 0;  ///< rows of a worker in a clock
};

class AdaptiveTrainee final : public TableProgram {
 public:
  /// Adds what is to be said of `weights`; `exact`: at the end of the training.
  using Report = std::function<void(Engine& engine, std::span<const float> weights, bool exact, Evaluation& out)>;
  /// Borrows rows and loss. `start`: the weights of the scores, column after column, and with an intercept once more.
  AdaptiveTrainee(const Engine& engine, const WorkerMap& map, const SparseRows& rows, const ScoreLoss& loss,
                  bool has_intercept, AdaptiveRule rule, std::span<const float> start, Report report);

  /// Clocks in which every row is taken once (rows of a shorter share some twice).
  Clock clocks_per_iteration() const { return clocks_per_iteration_; }
  std::vector<float> weights() const;

  void run_unit(const WorkUnit& unit, UnitContext& context) override;
  Evaluation evaluate(Engine& engine, bool exact) override;

 private:
  /// A worker's gradient of a batch: for each column in it the sums of slopes, by score, and the number of rows.
  using Gradient = UpdateBatch<float>;

  using Columns = StreamCursor<float>;
  struct Workers {
    WorkerId first, last;
  };

  /// Of the entries in rows of workers in [first, last).
  std::span<const std::uint32_t> columns_of(Workers workers) const;
  void say_what_is_read(const WorkerMap& map);
  void score(const UnitContext& context, Columns& columns, std::uint64_t row, std::span<double> scores);
  void add_row(Gradient& gradient, std::uint64_t row, std::span<const double> slopes) const;
  void take_step(const UnitContext& context, const Gradient& gradient, std::uint64_t batch);

  const SparseRows& rows_;
  const ScoreLoss& loss_;
  const std::size_t scores_;
  const bool has_intercept_;
  const AdaptiveRule rule_;
  const Report report_;
  const WorkerId workers_;
  std::vector<std::uint64_t> first_row_;  ///< by worker
  std::vector<RowStream> columns_;        ///< by worker: of the entries of its rows
  std::vector<float> column_rows_;        ///< rows in which a column occurs
  Clock clocks_per_iteration_ = 1;
  Table<float>& parameters_;  ///< a row: the weights of a column by score, then their sums of squares
};

}  // namespace orrery
