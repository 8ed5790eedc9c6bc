// Matrix factorisation by stochastic gradient descent, data parallel: the objective, the update and the options of
// mf_sgd.h, with the items on a table that all workers share under bounded staleness instead of in blocks that rotate.
//
// Users stay with their worker. A clock is one of `clocks` shares of a worker's users: it reads the items that occur in
// their ratings, trains a copy of them with the kernel of mf_kernels.h, and adds what the copy has gained to the table.
// A row of the table is an item's factors, bias and energy, all of which change by addition only, and a unit writes
// nothing else that others see. That is why the schedule is safe; the table keeps the contract of design section 5.
//
// Workers that start from the same item and each move it towards their own users would together move it too far, up to
// as many times as there are workers. What a worker adds to an item is therefore weighed by
//
//   (1 + s k_w) / (1 + s k),     s: the item's step, k_w: its ratings in this unit, k: in an average clock of all
//   workers
//
// which adds where steps are few or short (s k << 1) and averages where a clock alone takes an item near its minimum
// (s k >> 1): "adding versus averaging" of Ma et al., ICML 2015, decided for each item. Energies count squared errors,
// and are always added. What the others added in the clocks that a reader does not see is left out of k: counting it
// slows learning at every bound by what only the largest delays would need.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "algorithms/mf_sgd.h"
#include "engine/table_store.h"

namespace orrery::mf {

class DataParallelTrainee final : public OnTables<MfTrainee> {
 public:
  /// Borrows everything. The grid's stripes are `clocks` for each worker; the items start as they stand in `state`.
  DataParallelTrainee(const Engine& engine, const WorkerMap& map, const CellGrid& grid, MfState& state,
                      const Holdout* holdout, const Scaling& scaling, const SgdRule& rule, const Kernels& kernels);

  /// Clocks in which every rating is taken once.
  Clock clocks_per_iteration() const { return clocks_; }

  /// Scratch: the factors and sides of the items of a unit. Beside the kernel it costs two passes over these.
  void run_unit(const WorkUnit& unit, UnitContext& context) override;

  Evaluation evaluate(Engine& engine, bool exact) override;
  std::vector<StateSection> save_state() const override;
  void load_state(const std::vector<StateSection>& sections) override;
  void keep_best() override;
  void restore_best() override;

 private:
  /// A cell as a unit reads it: its items numbered by their first rating in it.
  struct Part {
    std::vector<std::uint32_t> items;    ///< internal ids
    std::vector<std::uint32_t> ratings;  ///< of each item
    std::vector<std::uint16_t> columns;  ///< one for each rating: a position in `items`
  };
  /// A part's items on their way through the kernel.
  struct Copy;

  /// `positions`, one for each column of a block, are scratch and left as they came: new.
  static Part part_of(const Cell& cell, std::uint32_t first_item, std::span<std::uint32_t> positions);
  double train(const Part& part, const Cell& cell, std::size_t stripe, const StepRule& step,
               StreamCursor<float>& items);
  void read_items(const Part& part, StreamCursor<float>& items, Copy& copy);
  void add_gains(const Part& part, const StepRule& step, StreamCursor<float>& items, const Copy& copy);
  float weight(std::uint32_t item, std::uint32_t ratings, const StepRule& step, float energy) const;

  /// Calls visit(item, factors, side) for every item where the state has it.
  template <class Visit>
  void for_each_item(Visit&& visit) const;
  /// The state's items as the table has them, and back; while no unit runs.
  void take_from_table() const;
  void put_into_table();
  double seen_squares(const ParallelFor& parallel) const override;

  std::uint32_t bias_at() const { return static_cast<std::uint32_t>(state_.rank()); }
  std::uint32_t energy_at() const { return static_cast<std::uint32_t>(state_.rank() + 1); }

  const SgdRule rule_;
  const Clock clocks_;
  std::vector<Part> parts_;         ///< by cell
  std::vector<RowStream> streams_;  ///< by cell: the rows of its items
  std::vector<double> seen_;        ///< by cell: Σ e² of its last visit, each error as it was before its step
  std::vector<Side> sides_;         ///< by item; penalties only
  Table<float>& items_;
};

}  // namespace orrery::mf
