// Logistic regression on a table under bounded staleness, for `logistic --solver sgd`: stochastic gradients with steps
// that adapt to each column,
//
//   w_j -= rate g_j / sqrt(1e-6 + G_j + W g_j²),    G_j += g_j²
//
// (Duchi, Hazan and Singer, JMLR 2011), by W workers at once. Both lines only add, so they are updates of a table with
// two values a row: the weight and the sum of squared gradients. A worker takes the next rows of its own each clock and
// reads and adds to the columns that occur in them, nothing else; what the others have added it sees up to the bound.
// That is why the schedule is safe: nothing is shared but the table, and the table keeps the contract of design section
// 5. The term W g_j² stands for what the other workers add in the same clock, of which G_j cannot know: without it the
// first step would be W times too long.
//
// The penalty lambda/2 |w|² is spread over the rows in which a column occurs: a batch with k of the column's n rows
// counts lambda w_j · (k/n) · (rows/batch), which is the derivative of the penalty in the mean over batches.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "algorithms/logistic_loss.h"
#include "engine/table_store.h"

namespace orrery::logistic {

struct AdaptiveRule {
  double rate = 0.5;
  double l2 = 0;            ///< lambda
  std::uint64_t batch = 0;  ///< rows of a worker in a clock
};

class AdaptiveTrainee final : public TableProgram {
 public:
  /// Adds what is to be said of `weights`; `exact`: at the end of the training.
  using Report = std::function<void(Engine& engine, std::span<const float> weights, bool exact, Evaluation& out)>;
  /// Borrows the rows. `start`: a weight for each column, and one more with an intercept.
  AdaptiveTrainee(const Engine& engine, const WorkerMap& map, const Table& rows, std::span<const float> signs,
                  bool has_intercept, AdaptiveRule rule, std::vector<float> start, Report report);

  /// Clocks in which every row is taken once (rows of a shorter share some twice).
  Clock clocks_per_iteration() const { return clocks_per_iteration_; }
  std::vector<float> weights() const;

  void run_unit(const WorkUnit& unit, UnitContext& context) override;
  Evaluation evaluate(Engine& engine, bool exact) override;

 private:
  /// A worker's gradient of a batch: for each column in it the sum of slopes and the number of rows.
  using Gradient = UpdateBatch<float>;
  static constexpr std::uint32_t kWeight = 0, kSquares = 1;  ///< of a row of the table
  static constexpr std::uint32_t kSum = 0, kCount = 1;       ///< of a row of a gradient

  double margin(const UnitContext& context, std::uint64_t row);
  void add_row(Gradient& gradient, std::uint64_t row, double slope) const;
  void take_step(const UnitContext& context, const Gradient& gradient, std::uint64_t batch);

  const SparseRows& rows_;
  const std::span<const float> signs_;
  const bool has_intercept_;
  const AdaptiveRule rule_;
  const Report report_;
  const WorkerId workers_;
  std::vector<std::uint64_t> first_row_;  ///< by worker
  std::vector<float> column_rows_;        ///< rows in which a column occurs
  Clock clocks_per_iteration_ = 1;
  orrery::Table<float>& parameters_;
};

}  // namespace orrery::logistic
