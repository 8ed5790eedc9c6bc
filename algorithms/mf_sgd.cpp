#include "algorithms/mf_sgd.h"

#include <algorithm>
#include <cmath>

#include "engine/engine.h"
#include "engine/error.h"
#include "engine/reduce.h"
#include "numa/access_section.h"

namespace orrery::mf {
namespace {

constexpr const char* kModelSection = "model";
constexpr const char* kBestSection = "best";

// Σ n (decay |x|² + bias_decay b²) over the rows of a part.
double weighted_norms(const FactorRows& part, std::size_t count, std::size_t stride, const std::uint32_t* ratings) {
  double sum = 0;
  for (std::size_t r = 0; r < count; ++r) {
    const Side& side = part.sides[r];
    double norm = 0;
    for (std::size_t d = 0; d < stride; ++d) {
      const double x = part.factors[r * stride + d];
      norm += x * x;
    }
    const double bias = side.bias;
    if (ratings[r] != 0) sum += ratings[r] * (double{side.decay} * norm + double{side.bias_decay} * bias * bias);
  }
  return sum;
}

}  // namespace

StepRule SgdRule::at(Clock clock) const {
  // Multiplied out: the C library's pow chooses its code by processor.
  double now = rate;
  for (Clock c = 0; c < clock && now > 1e-12 * rate; ++c) now *= 1.0 - decay;
  return {static_cast<float>(now), static_cast<float>(gain)};
}

double decay_for(double decay, double ratings_per_row) {
  constexpr double kEnough = 64.0;  // ratings a row from which the defaults were found to hold
  return decay * std::min(1.0, ratings_per_row / kEnough);
}

double cell_squares(const CellGrid& grid, std::size_t stripe, std::size_t block, const MfState& state,
                    const Kernels& kernels) {
  const Cell& cell = grid.cell(stripe, block);
  std::vector<std::uint32_t> rows, columns(cell.columns.begin(), cell.columns.end());
  rows.reserve(cell.ratings());
  std::size_t batch = 0;
  for (std::size_t n = kMaxBatch; n >= 1; --n) {
    for (std::uint32_t i = 0; i < cell.batches[n - 1]; ++i, ++batch) rows.insert(rows.end(), n, cell.rows[batch]);
  }
  const FactorRows row_part = state.stripe(stripe), column_part = state.block(static_cast<BlockId>(block));
  return kernels
      .measure(rows.data(), columns.data(), cell.values.data(), cell.ratings(), {row_part.factors, row_part.sides},
               {column_part.factors, column_part.sides}, state.stride())
      .squares;
}

double regularisation(const MfState& state, const CellGrid& grid, const Scaling& scaling, const ParallelFor& parallel) {
  std::vector<double> sums(state.stripes() + state.blocks());
  parallel(sums.size(), [&](std::size_t i) {
    const bool is_row = i < state.stripes();
    const Axis& axis = is_row ? grid.rows() : grid.columns();
    const std::size_t part = is_row ? i : i - state.stripes();
    const FactorRows rows = is_row ? state.stripe(part) : state.block(static_cast<BlockId>(part));
    sums[i] = weighted_norms(rows, axis.part_size(part), state.stride(), axis.counts.data() + axis.begin[part]);
  });
  return tree_sum(std::span<double>{sums}) * scaling.scale * scaling.scale;
}

SgdTrainee::SgdTrainee(const CellGrid& grid, MfState& state, const Holdout* holdout, const Scaling& scaling,
                       const SgdRule& rule, const Kernels& kernels)
    : grid_(grid),
      state_(state),
      holdout_(holdout),
      scaling_(scaling),
      rule_(rule),
      kernels_(kernels),
      seen_(grid.stripes() * grid.blocks(), 0.0) {}

void SgdTrainee::run_unit(const WorkUnit& unit, UnitContext& context) {
  const BlockId block = unit.blocks[0];
  const Cell& cell = grid_.cell(unit.worker, block);
  const FactorRows columns = state_.acquire(block, context.domain);
  const StepRule step = rule_.at(unit.clock);
  const AccessSection inner_loop;
  seen_[unit.worker * grid_.blocks() + block] =
      kernels_.train_cell({cell.batches.data(), cell.rows.data(), cell.columns.data(), cell.values.data()},
                          state_.stripe(unit.worker), columns, state_.stride(), step);
}

double SgdTrainee::training_squares(const ParallelFor& parallel) const {
  std::vector<double> sums(seen_.size());
  parallel(sums.size(), [&](std::size_t c) {
    sums[c] = cell_squares(grid_, c / grid_.blocks(), c % grid_.blocks(), state_, kernels_);
  });
  return tree_sum(std::span<double>{sums}) * scaling_.scale * scaling_.scale;
}

Evaluation SgdTrainee::evaluate(Engine& engine, bool exact) {
  const ParallelFor parallel = engine.parallel_for_function();
  Evaluation out;
  const auto ratings = static_cast<double>(grid_.ratings());
  const bool has_holdout = holdout_ != nullptr && holdout_->size() != 0;
  // Exact where it is asked for or decides when to stop; else from the errors that the last clock saw, which costs
  // nothing.
  std::vector<double> seen = seen_;
  const double squares = exact || !has_holdout ? training_squares(parallel)
                                               : tree_sum(std::span<double>{seen}) * scaling_.scale * scaling_.scale;
  out.objective = squares + regularisation(state_, grid_, scaling_, parallel);
  if (!std::isfinite(out.objective)) {
    throw Error(ErrorKind::internal, "training diverged: the objective is not finite (a smaller --rate helps)");
  }
  out.extra.emplace_back("train_rmse", std::sqrt(squares / ratings));
  if (!has_holdout) {
    out.extra.emplace_back("rmse", std::sqrt(squares / ratings));
    return out;
  }
  const ErrorSums sums = holdout_->measure(state_, kernels_, parallel);
  const auto count = static_cast<double>(holdout_->size());
  out.valid = std::sqrt(sums.squares / count);
  out.extra.emplace_back("rmse", *out.valid);
  out.extra.emplace_back("mae", sums.absolute / count);
  return out;
}

std::vector<StateSection> SgdTrainee::save_state() const {
  std::vector<StateSection> sections;
  sections.push_back({kModelSection, state_.save()});
  if (!best_.empty()) sections.push_back({kBestSection, best_});
  return sections;
}

void SgdTrainee::load_state(const std::vector<StateSection>& sections) {
  bool found = false;
  for (const StateSection& section : sections) {
    if (section.name == kModelSection) {
      state_.load(section.bytes);
      found = true;
    } else if (section.name == kBestSection) {
      best_ = section.bytes;
    }
  }
  if (!found) throw Error(ErrorKind::data, "the checkpoint has no section 'model'");
}

void SgdTrainee::keep_best() { best_ = state_.save(); }

void SgdTrainee::restore_best() { state_.load(best_); }

}  // namespace orrery::mf
