#include "algorithms/mf_data_parallel.h"

#include <algorithm>
#include <memory>
#include <new>

#include "engine/engine.h"
#include "numa/access_section.h"

namespace orrery::mf {
namespace {

constexpr std::uint32_t kNew = ~std::uint32_t{0};  // position of an item that a part has not met yet
constexpr std::align_val_t kCacheLine{64};
struct FreeAligned {
  void operator()(void* memory) const { ::operator delete(memory, kCacheLine); }
};
template <class T>
using Aligned = std::unique_ptr<T[], FreeAligned>;
/// Not initialised. T is made of floats.
template <class T>
Aligned<T> aligned(std::size_t count) {
  return Aligned<T>(static_cast<T*>(::operator new(count * sizeof(T), kCacheLine)));
}

}  // namespace

struct DataParallelTrainee::Copy {
  Copy(std::size_t items, std::size_t stride)
      : factors(aligned<float>(items * stride)), sides(aligned<Side>(items)), before(items) {}
  Aligned<float> factors;
  Aligned<Side> sides;
  std::vector<std::span<const float>> before;  ///< rows of the table
};

DataParallelTrainee::DataParallelTrainee(const Engine& engine, const WorkerMap& map, const CellGrid& grid,
                                         MfState& state, const Holdout* holdout, const Scaling& scaling,
                                         const SgdRule& rule, const Kernels& kernels)
    : OnTables(engine, map, grid, state, holdout, scaling, kernels),
      rule_(rule),
      clocks_(static_cast<Clock>(grid.stripes() / map.workers())),
      seen_(grid.stripes() * grid.blocks(), 0.0),
      items_(tables().add<float>({.name = "items",
                                  .rows = static_cast<std::uint32_t>(grid.columns().size()),
                                  .width = static_cast<std::uint32_t>(state.rank()) + 2})) {
  std::vector<std::uint32_t> positions(kMaxBlockColumns, kNew);
  for (std::size_t c = 0; c < seen_.size(); ++c) {
    const std::size_t block = c % grid.blocks();
    parts_.push_back(part_of(grid.cell(c / grid.blocks(), block), grid.columns().begin[block], positions));
  }
  const std::size_t of_worker = static_cast<std::size_t>(clocks_) * grid.blocks();
  for (std::size_t c = map.first_worker(map.this_node()) * of_worker;
       c < map.first_worker(map.this_node() + 1) * of_worker; ++c) {
    items_.will_read(parts_[c].items);
  }
  streams_.reserve(parts_.size());
  for (std::size_t c = 0; c < parts_.size(); ++c) {
    streams_.push_back(items_.stream(static_cast<WorkerId>(c / of_worker), parts_[c].items));
  }
  for_each_item([&](std::uint32_t, const float*, const Side& side) { sides_.push_back(side); });
  put_into_table();
}

DataParallelTrainee::Part DataParallelTrainee::part_of(const Cell& cell, std::uint32_t first_item,
                                                       std::span<std::uint32_t> positions) {
  Part part;
  part.columns.reserve(cell.ratings());
  for (const std::uint16_t column : cell.columns) {
    std::uint32_t& at = positions[column];
    if (at == kNew) {
      at = static_cast<std::uint32_t>(part.items.size());
      part.items.push_back(first_item + column);
      part.ratings.push_back(0);
    }
    ++part.ratings[at];
    part.columns.push_back(static_cast<std::uint16_t>(at));
  }
  for (const std::uint32_t item : part.items) positions[item - first_item] = kNew;
  return part;
}

void DataParallelTrainee::run_unit(const WorkUnit& unit, UnitContext& context) {
  const std::size_t stripe = unit.worker * static_cast<std::size_t>(clocks_) + unit.clock % clocks_;
  const StepRule step = rule_.at(unit.clock / clocks_);
  for (std::size_t block = 0; block < grid_.blocks(); ++block) {
    const std::size_t c = stripe * grid_.blocks() + block;
    StreamCursor<float> items = items_.along(context, streams_[c]);
    seen_[c] = train(parts_[c], grid_.cell(stripe, block), stripe, step, items);
  }
}

double DataParallelTrainee::train(const Part& part, const Cell& cell, std::size_t stripe, const StepRule& step,
                                  StreamCursor<float>& items) {
  Copy copy(part.items.size(), state_.stride());
  read_items(part, items, copy);
  double seen = 0;
  {
    const AccessSection inner_loop;
    seen = kernels_.train_cell({cell.batches.data(), cell.rows.data(), part.columns.data(), cell.values.data()},
                               state_.stripe(stripe), {copy.factors.get(), copy.sides.get()}, state_.stride(), step);
  }
  add_gains(part, step, items, copy);
  return seen;
}

void DataParallelTrainee::read_items(const Part& part, StreamCursor<float>& items, Copy& copy) {
  const std::size_t rank = state_.rank(), stride = state_.stride();
  for (std::size_t i = 0; i < part.items.size(); ++i) {
    const std::span<const float> row = copy.before[i] = items.read(i);
    float* factors = copy.factors.get() + i * stride;
    std::copy_n(row.begin(), rank, factors);
    std::fill(factors + rank, factors + stride, 0.0F);
    copy.sides[i] = sides_[part.items[i]];
    copy.sides[i].bias = row[bias_at()];
    copy.sides[i].energy = row[energy_at()];
  }
}

void DataParallelTrainee::add_gains(const Part& part, const StepRule& step, StreamCursor<float>& items,
                                    const Copy& copy) {
  const std::size_t rank = state_.rank();
  std::vector<float> gain(rank + 2);
  for (std::size_t i = 0; i < part.items.size(); ++i) {
    const std::span<const float> before = copy.before[i];
    const float* factors = copy.factors.get() + i * state_.stride();
    const float share = weight(part.items[i], part.ratings[i], step, before[energy_at()]);
    for (std::size_t d = 0; d < rank; ++d) gain[d] = share * (factors[d] - before[d]);
    gain[bias_at()] = share * (copy.sides[i].bias - before[bias_at()]);
    gain[energy_at()] = copy.sides[i].energy - before[energy_at()];
    items.add(i, gain);
  }
}

float DataParallelTrainee::weight(std::uint32_t item, std::uint32_t ratings, const StepRule& step, float energy) const {
  const auto own = static_cast<float>(ratings);
  const float all = std::max(own, static_cast<float>(grid_.columns().counts[item]) / static_cast<float>(clocks_));
  const float length = step.rate / __builtin_sqrtf(1.0F + energy);
  return (1.0F + length * own) / (1.0F + length * all);
}

template <class Visit>
void DataParallelTrainee::for_each_item(Visit&& visit) const {
  std::uint32_t item = 0;
  for (std::size_t block = 0; block < grid_.blocks(); ++block) {
    const FactorRows rows = state_.block(static_cast<BlockId>(block));
    for (std::size_t r = 0; r < grid_.columns().part_size(block); ++r, ++item) {
      visit(item, rows.factors + r * state_.stride(), rows.sides[r]);
    }
  }
}

void DataParallelTrainee::take_from_table() const {
  for_each_item([&](std::uint32_t item, float* factors, Side& side) {
    const std::span<const float> row = items_.row(item);
    std::copy_n(row.begin(), state_.rank(), factors);
    side.bias = row[bias_at()];
    side.energy = row[energy_at()];
  });
}

void DataParallelTrainee::put_into_table() {
  std::vector<float> row(state_.rank() + 2);
  for_each_item([&](std::uint32_t item, const float* factors, const Side& side) {
    std::copy_n(factors, state_.rank(), row.begin());
    row[bias_at()] = side.bias;
    row[energy_at()] = side.energy;
    items_.set(item, row);
  });
}

Evaluation DataParallelTrainee::evaluate(Engine& engine, bool exact) {
  take_from_table();
  Evaluation evaluation = MfTrainee::evaluate(engine, exact);
  tables().report(evaluation);
  return evaluation;
}

std::vector<StateSection> DataParallelTrainee::save_state() const {
  take_from_table();
  return MfTrainee::save_state();
}

void DataParallelTrainee::load_state(const std::vector<StateSection>& sections) {
  MfTrainee::load_state(sections);
  put_into_table();
}

void DataParallelTrainee::keep_best() {
  take_from_table();
  MfTrainee::keep_best();
}

void DataParallelTrainee::restore_best() {
  MfTrainee::restore_best();
  put_into_table();
}

double DataParallelTrainee::seen_squares(const ParallelFor&) const { return sum_of_cells_here(seen_); }

}  // namespace orrery::mf
