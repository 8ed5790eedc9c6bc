// The Lasso by scheduled rounds alone (SAP: Lee et al., NIPS 2014; Kim et al., EuroSys 2016): the contrasts to working
// sets. A round's coordinates depend on each other by less than --max-corr, so each takes the step that would be best
// alone, from the residual that the last pull left, and all of them together still descend.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "algorithms/lasso_correlation.h"
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
