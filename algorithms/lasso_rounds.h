// The Lasso by scheduled rounds alone (SAP: Lee et al., NIPS 2014; Kim et al., EuroSys 2016): the contrasts to working
// sets. A round's coordinates depend on each other by less than --max-corr, so each takes the step that would be best
// alone, from the residual that the last pull left, and all of them together still descend.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "algorithms/lasso_design.h"
#include "algorithms/lasso_gap.h"
#include "engine/coordinate_scheduler.h"
#include "engine/training.h"

namespace orrery::lasso {

enum class Scheduler { dynamic, sampled, cyclic, shuffle };

struct RoundsOptions {
  Scheduler scheduler = Scheduler::cyclic;  ///< not dynamic: that one is the working set
  std::size_t width = 64;
  double most_correlation = 0.1;
  std::uint64_t seed = 1;
};

/// The absolute correlation of columns, computed when it is asked for. Cost: both columns; only the second one when the
/// first is that of the last call, as it is while a candidate is held against all others.
class ColumnCorrelation final : public CoordinateModel {
 public:
  explicit ColumnCorrelation(const Design& design);
  std::uint32_t coordinates() const override { return design_.columns(); }
  double dependence(std::uint32_t a, std::uint32_t b) const override;
  std::uint64_t cost(std::uint32_t coordinate) const override { return design_.length(coordinate) + 1; }

 private:
  static constexpr std::uint32_t kNoColumn = ~std::uint32_t{0};

  void spread(std::uint32_t column) const;

  const Design& design_;
  mutable std::vector<double> spread_;  ///< column `spread_column_` by row
  mutable std::uint32_t spread_column_ = kNoColumn;
};

class Rounds {
 public:
  Rounds(const Design& design, const RoundsOptions& options, WorkerId workers);

  /// Schedule: the bins of a round.
  void pick(Clock clock, std::span<std::vector<std::uint32_t>> bins) { scheduler_.pick(clock, bins); }
  /// Push, in a unit: what the bin's coordinates would become. Units write what belongs to their worker.
  void push(WorkerId worker, std::span<const std::uint32_t> bin, const Residual& residual,
            std::span<const double> coefficients, Penalty penalty);
  /// Pull: takes the steps in unit order. Columns that moved are added to `touched`. @return coordinates that were
  /// tried
  std::size_t pull(Residual& residual, std::vector<double>& coefficients, std::vector<std::uint32_t>& touched);

  void save(std::vector<StateSection>& sections) const;
  void load(const std::vector<StateSection>& sections);

 private:
  struct Target {
    std::uint32_t column;
    double coefficient;
  };

  const Design& design_;
  ColumnCorrelation correlation_;
  std::unique_ptr<PrioritySource> source_;
  CoordinateScheduler scheduler_;
  std::vector<std::vector<Target>> targets_;  ///< by worker
};

}  // namespace orrery::lasso
