#include "algorithms/lasso_rounds.h"

#include <algorithm>
#include <cmath>

#include "algorithms/lasso_state.h"

namespace orrery::lasso {
namespace {

std::unique_ptr<PrioritySource> make_source(const RoundsOptions& options, std::uint32_t columns) {
  constexpr double kEpsilon = 1e-6;  // of a standardised coefficient, squared: nobody's turn never comes
  if (options.scheduler == Scheduler::sampled) {
    return std::make_unique<SampledSource>(columns, kEpsilon, options.seed);
  }
  return std::make_unique<CyclicSource>(columns, options.scheduler == Scheduler::shuffle, options.seed);
}

}  // namespace

Rounds::Rounds(const Design& design, const RoundsOptions& options, WorkerId workers)
    : design_(design),
      correlation_(design),
      source_(make_source(options, design.columns())),
      scheduler_(correlation_, *source_, {options.width, options.most_correlation}),
      targets_(workers) {}

void Rounds::push(WorkerId worker, std::span<const std::uint32_t> bin, const Residual& residual,
                  std::span<const double> coefficients, Penalty penalty) {
  std::vector<Target>& targets = targets_[worker];
  targets.clear();
  for (const std::uint32_t j : bin) {
    const double gradient = design_.gradient(j, residual);
    targets.push_back({j, best_coefficient(coefficients[j], gradient, design_.curvature(j), penalty)});
  }
}

std::size_t Rounds::pull(Residual& residual, std::vector<double>& coefficients, std::vector<std::uint32_t>& touched) {
  std::size_t tried = 0;
  for (const std::vector<Target>& targets : targets_) {
    for (const Target& target : targets) {
      const double step = target.coefficient - coefficients[target.column];
      source_->told(target.column, step);
      ++tried;
      if (step == 0) continue;
      design_.subtract(target.column, step, residual);
      coefficients[target.column] = target.coefficient;
      touched.push_back(target.column);
    }
  }
  scheduler_.pulled();
  return tried;
}

void Rounds::save(std::vector<StateSection>& sections) const {
  Bytes bytes;
  source_->save(bytes);
  scheduler_.save(bytes);
  sections.push_back({"schedule", std::move(bytes)});
}

void Rounds::load(const std::vector<StateSection>& sections) {
  WireReader reader(find_section(sections, "schedule"));
  source_->load(reader);
  scheduler_.load(reader);
}

}  // namespace orrery::lasso
