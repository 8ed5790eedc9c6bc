#include "algorithms/mf_trainee.h"

#include <cmath>

#include "engine/engine.h"
#include "engine/error.h"
#include "engine/reduce.h"

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

MfTrainee::MfTrainee(const CellGrid& grid, MfState& state, const Holdout* holdout, const Scaling& scaling,
                     const Kernels& kernels)
    : grid_(grid), state_(state), holdout_(holdout), scaling_(scaling), kernels_(kernels) {}

double MfTrainee::training_squares(const ParallelFor& parallel) const {
  std::vector<double> sums(grid_.stripes() * grid_.blocks());
  parallel(sums.size(), [&](std::size_t c) {
    sums[c] = cell_squares(grid_, c / grid_.blocks(), c % grid_.blocks(), state_, kernels_);
  });
  return tree_sum(std::span<double>{sums}) * scaling_.scale * scaling_.scale;
}

Evaluation MfTrainee::evaluate(Engine& engine, bool exact) {
  const ParallelFor parallel = engine.parallel_for_function();
  Evaluation out;
  const auto ratings = static_cast<double>(grid_.ratings());
  const bool has_holdout = holdout_ != nullptr && holdout_->size() != 0;
  // Exact where it is asked for or decides when to stop; else what the last clock came by.
  const double squares = exact || !has_holdout ? training_squares(parallel) : seen_squares(parallel);
  out.objective = squares + regularisation(state_, grid_, scaling_, parallel);
  if (!std::isfinite(out.objective)) {
    throw usage_error(
        "training diverged: the objective is not a finite number; a smaller --rate helps, or a smaller --reg or "
        "--bias-damping if one was set");
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

std::vector<StateSection> MfTrainee::save_state() const {
  std::vector<StateSection> sections;
  sections.push_back({kModelSection, state_.save()});
  if (!best_.empty()) sections.push_back({kBestSection, best_});
  return sections;
}

void MfTrainee::load_state(const std::vector<StateSection>& sections) {
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

void MfTrainee::keep_best() { best_ = state_.save(); }

void MfTrainee::restore_best() { state_.load(best_); }

std::size_t MfTrainee::block_bytes(BlockId block) const {
  return state_.columns_in(block) * (state_.stride() * sizeof(float) + sizeof(Side));
}

}  // namespace orrery::mf
