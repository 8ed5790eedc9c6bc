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

double regularisation(const MfState& state, const CellGrid& grid, const Scaling& scaling, const ParallelFor& parallel,
                      const Collective& nodes) {
  const auto norms = [&](const FactorRows& rows, const Axis& axis, std::size_t part) {
    return weighted_norms(rows, axis.part_size(part), state.stride(), axis.counts.data() + axis.begin[part]);
  };
  const StripeRange& here = grid.here();
  std::vector<double> of_stripes(here.last - here.first), of_blocks(state.blocks());
  parallel(of_stripes.size() + of_blocks.size(), [&](std::size_t i) {
    if (i < of_stripes.size()) {
      of_stripes[i] = norms(state.stripe(here.first + i), grid.rows(), here.first + i);
    } else {
      const std::size_t block = i - of_stripes.size();
      of_blocks[block] = norms(state.block(static_cast<BlockId>(block)), grid.columns(), block);
    }
  });
  std::vector<double> sums = nodes.joined(std::move(of_stripes));
  sums.insert(sums.end(), of_blocks.begin(), of_blocks.end());
  return tree_sum(std::span<double>{sums}) * scaling.scale * scaling.scale;
}

MfTrainee::MfTrainee(const CellGrid& grid, MfState& state, const Holdout* holdout, const Scaling& scaling,
                     const Kernels& kernels)
    : grid_(grid), state_(state), holdout_(holdout), scaling_(scaling), kernels_(kernels) {}

double MfTrainee::training_squares(const ParallelFor& parallel) const {
  const auto [first, last] = cells_here();
  std::vector<double> here(last - first);
  parallel(here.size(), [&, first = first](std::size_t i) {
    const std::size_t c = first + i;
    here[i] = cell_squares(grid_, c / grid_.blocks(), c % grid_.blocks(), state_, kernels_);
  });
  return sum_of_cells(std::move(here));
}

double MfTrainee::sum_of_cells(std::vector<double> here) const {
  std::vector<double> sums = nodes_.joined(std::move(here));
  return tree_sum(std::span<double>{sums}) * scaling_.scale * scaling_.scale;
}

double MfTrainee::sum_of_cells_here(const std::vector<double>& all) const {
  const auto [first, last] = cells_here();
  return sum_of_cells(std::vector<double>(all.begin() + static_cast<std::ptrdiff_t>(first),
                                          all.begin() + static_cast<std::ptrdiff_t>(last)));
}

std::pair<std::size_t, std::size_t> MfTrainee::cells_here() const {
  return {grid_.here().first * grid_.blocks(), grid_.here().last * grid_.blocks()};
}

Evaluation MfTrainee::evaluate(Engine& engine, bool exact) {
  const ParallelFor parallel = engine.parallel_for_function();
  Evaluation out;
  const auto ratings = static_cast<double>(grid_.ratings());
  const bool has_holdout = holdout_ != nullptr && holdout_->size() != 0;
  // Exact where it is asked for or decides when to stop; else what the last clock came by.
  const double squares = exact || !has_holdout ? training_squares(parallel) : seen_squares(parallel);
  out.objective = squares + regularisation(state_, grid_, scaling_, parallel, nodes_);
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
  const ErrorSums sums = holdout_->measure(state_, kernels_, parallel, nodes_);
  const auto count = static_cast<double>(holdout_->size());
  out.valid = std::sqrt(sums.squares / count);
  out.extra.emplace_back("rmse", *out.valid);
  out.extra.emplace_back("mae", sums.absolute / count);
  return out;
}

std::vector<StateSection> MfTrainee::save_state() const {
  std::vector<StateSection> sections;
  sections.push_back({kModelSection, whole(state_.save())});
  if (best_) sections.push_back({kBestSection, whole(*best_)});
  return sections;
}

Bytes MfTrainee::whole(const MfState::Saved& here) const {
  Bytes all;
  for (const Bytes& rows : nodes_.to_first(here.rows)) all.insert(all.end(), rows.begin(), rows.end());
  all.insert(all.end(), here.columns.begin(), here.columns.end());
  return all;
}

void MfTrainee::load_state(const std::vector<StateSection>& sections) {
  bool found = false;
  for (const StateSection& section : sections) {
    if (section.name == kModelSection) {
      state_.load(state_.part_of(section.bytes));
      found = true;
    } else if (section.name == kBestSection) {
      best_ = state_.part_of(section.bytes);
    }
  }
  if (!found) throw Error(ErrorKind::data, "the checkpoint has no section 'model'");
}

void MfTrainee::keep_best() { best_ = state_.save(); }

void MfTrainee::restore_best() { state_.load(*best_); }

void MfTrainee::collect_model(Engine&) {
  if (nodes_.nodes() == 1) return;
  std::vector<Bytes> rows = nodes_.to_first(state_.save().rows);
  for (NodeId node = 1; nodes_.is_first() && node < rows.size(); ++node) {
    state_.adopt_rows(node, std::move(rows[node]));
  }
  if (keeps_seen_) far_seen_ = collect_seen(grid_, nodes_);
}

std::size_t MfTrainee::block_bytes(BlockId block) const { return state_.block_bytes(block); }

}  // namespace orrery::mf
