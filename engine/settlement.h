// Staleness 0: what the workers of a node added in a clock, put together along the fixed tree over workers (design
// section 5). Sums of planned rows stay where their workers keep them and are added up row by row, in parts that may
// run at the same time; nothing is hashed or moved. Without a plan batches merge pair by pair as workers end their
// clock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/access_costs.h"
#include "engine/access_learner.h"
#include "engine/assert.h"
#include "engine/clock.h"
#include "engine/combining_tree.h"
#include "engine/row_writers.h"
#include "engine/types.h"
#include "engine/update_batch.h"
#include "engine/update_records.h"
#include "engine/worker_view.h"

namespace orrery {

/// Of one table on one node. Calls are the processor's, between the last unit of a clock and the first of the next,
/// unless said otherwise.
template <class T>
class Settlement {
 public:
  using Views = std::vector<WorkerView<T>*>;

  /// `views`: of this node's workers, in order; must outlive this.
  Settlement(const WorkerMap& map, std::uint32_t rows, std::uint32_t update_width, const AccessCosts& costs,
             Views views)
      : tree_(map),
        costs_(costs),
        first_worker_(map.first_worker(map.this_node())),
        rows_(rows),
        width_(update_width),
        views_(std::move(views)),
        first_link_(views_.size()) {}

  /// Workers have plans: rows that they add to are known.
  bool is_planned() const noexcept { return !writers_.empty(); }

  /// The worker has ended its clock. Any thread.
  void worker_ended(WorkerId worker, Clock clock) {
    views_[worker - first_worker_]->end_settled(clock);
    if (is_planned()) return;
    tree_.arrive(worker, [&](WorkerId left, WorkerId right) { batch_of(left).merge(batch_of(right)); });
  }

  /// Planned, one node: begins the settlement of a clock. @return in how many parts settle() may do it.
  std::size_t begin(Clock clock) {
    const std::size_t touched = number_touched(UpdateRecords<T>::epoch_of(clock), {0, views_.size()});
    // Whole plans lie in the order of rows; others do not.
    const double walking = static_cast<double>(writers_.size()) * (are_whole_ ? costs_.walk : costs_.visit);
    const double linking = kVisitsOfLink * static_cast<double>(touched) * costs_.visit;
    walks_rows_ = walking <= linking;
    const double all = (walks_rows_ ? walking : linking) + static_cast<double>(touched * width_) * costs_.add;
    // Who links passes over all that was touched for its part of the rows.
    const double in_vain = walks_rows_ ? 0 : 4 * static_cast<double>(touched) * costs_.walk;
    const auto parts = static_cast<std::size_t>(all / std::max(kNanosecondsOfPart, in_vain));
    return std::clamp<std::size_t>(parts, 1, kMostParts);
  }
  /// Calls apply(row, sum) for what was added. Parts may overlap.
  template <class Apply>
  void settle(Clock clock, std::size_t part, std::size_t parts, Apply&& apply) {
    const Epoch epoch = UpdateRecords<T>::epoch_of(clock);
    const Range rows{writers_.first_row(part, parts), writers_.first_row(part + 1, parts)};
    if (walks_rows_) {
      settle_rows(epoch, rows, apply);
    } else {
      settle_touched(epoch, {0, views_.size()}, rows, apply);
    }
  }

  /// The sums of this node's largest subtrees, until end().
  std::map<Subtree, UpdateBatch<T>*> subtrees(Clock clock) {
    std::map<Subtree, UpdateBatch<T>*> found;
    for (const Subtree at : tree_.largest()) {
      found.emplace(at, is_planned() ? &sum_of(at, clock) : &batch_of(tree_.first_worker(at)));
    }
    return found;
  }
  /// Adds the sums of all nodes' subtrees up.
  UpdateBatch<T>& finish(std::map<Subtree, UpdateBatch<T>*> parts) const {
    return *tree_.finish(std::move(parts),
                         [](UpdateBatch<T>& left, const UpdateBatch<T>& right) { left.merge(right); });
  }

  /// Between clocks: workers follow these plans, by view.
  void follow(std::vector<std::shared_ptr<const AccessSlots>> plans) {
    writers_.build(rows_, plans);
    links_.resize(std::max(links_.size(), writers_.size()));
    if (is_planned()) chains_.resize(rows_);
    are_whole_ = std::all_of(plans.begin(), plans.end(), [](const auto& plan) { return plan && plan->is_whole(); });
    for (std::size_t v = 0; v < plans.size(); ++v) {
      if (plans[v] != views_[v]->learner().plan()) views_[v]->follow(std::move(plans[v]));
    }
  }

  /// Everything has been applied: the next clock may begin, with longer plans if that pays.
  void end() {
    for (WorkerView<T>* view : views_) view->begin_settled();
    tree_.reset();
    sums_.clear();
    learn();
  }

 private:
  using Epoch = typename UpdateRecords<T>::Epoch;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Range {
    std::size_t first, last;
  };
  /// What one worker added to a row; or, further up the tree, some workers.
  struct Contribution {
    std::size_t index;  ///< in its level of the tree
    T* sum;
  };
  using Contributions = std::vector<Contribution>;
  /// Those of a row that are known so far, in the order of views, as positions in links_.
  struct Chain {
    std::uint32_t settlement = 0;
    std::uint32_t first = 0, last = 0;
    std::uint32_t next_row = kNone;
  };
  struct Link {
    std::uint32_t view;
    std::uint32_t next;
    T* sum;
  };
  static constexpr double kNanosecondsOfPart = 1e4;  // a unit costs about a microsecond to start
  static constexpr std::size_t kMostParts = 64;
  static constexpr double kVisitsOfLink = 3;  // its row, the row's chain, and the sum

  UpdateBatch<T>& batch_of(WorkerId worker) { return views_[worker - first_worker_]->unplanned(); }

  template <class Apply>
  void settle_rows(Epoch epoch, Range rows, Apply&& apply) {
    Contributions sums;
    for (std::size_t v = 0; v < views_.size(); ++v) {
      link_unplanned(v, first_link_[v] + touched_in_plan(v, epoch), rows);
    }
    for (std::size_t row = rows.first; row < rows.last; ++row) {
      gather(static_cast<std::uint32_t>(row), epoch, sums);
      if (!sums.empty()) apply(static_cast<std::uint32_t>(row), add_up(sums));
    }
  }

  /// Gives what every view of `range` touched, in its plan and outside, a place in links_. @return how much that is.
  std::size_t number_touched(Epoch epoch, Range range) {
    ++settlements_;
    std::size_t all = 0;
    for (std::size_t v = range.first; v < range.last; ++v) {
      first_link_[v] = all;
      all += touched_in_plan(v, epoch) + views_[v]->unplanned().rows().size();
    }
    ORRERY_CHECK(all < kNone);  // places are 32 bits: links for more would take 64 GiB
    if (all > links_.size()) links_.resize(all);
    return all;
  }

  /// Those of `rows` that views of `range`, which have been numbered, added to: costs what was touched, not what is
  /// planned.
  template <class Apply>
  void settle_touched(Epoch epoch, Range range, Range rows, Apply&& apply) {
    Contributions sums;
    for (std::uint32_t row = link(epoch, range, rows); row != kNone; row = chains_[row].next_row) {
      sums.clear();
      add_linked(row, sums);
      apply(row, add_up(sums));
    }
  }
  /// Links what was added to each of `rows`. @return the last row of a list of those that were added to.
  std::uint32_t link(Epoch epoch, Range range, Range rows) {
    std::uint32_t last_row = kNone;
    for (std::size_t v = range.first; v < range.last; ++v) {
      const UpdateRecords<T>& records = views_[v]->records();
      const std::span<const std::uint32_t> slots = records.touched(epoch);
      for (std::size_t i = 0; i < slots.size(); ++i) {
        const std::uint32_t row = records.plan()->row(slots[i]);
        if (row < rows.first || row >= rows.last) continue;
        // Settled rows that were touched have a sum: the worker sees them other than the cache for that only.
        last_row = append(first_link_[v] + i, v, row, records.sum_at(i), last_row);
      }
      last_row = link_unplanned(v, first_link_[v] + slots.size(), rows, last_row);
    }
    return last_row;
  }
  /// The same of what a view added outside its plan, from place `at` on.
  std::uint32_t link_unplanned(std::size_t view, std::size_t at, Range rows, std::uint32_t last_row = kNone) {
    UpdateBatch<T>& batch = views_[view]->unplanned();
    for (std::size_t i = 0; i < batch.rows().size(); ++i) {
      const std::uint32_t row = batch.rows()[i];
      if (row < rows.first || row >= rows.last) continue;
      last_row = append(at + i, view, row, batch.values(i), last_row);
    }
    return last_row;
  }
  std::uint32_t append(std::size_t place, std::size_t view, std::uint32_t row, T* sum, std::uint32_t last_row) {
    const auto at = static_cast<std::uint32_t>(place);
    links_[at] = {.view = static_cast<std::uint32_t>(view), .next = kNone, .sum = sum};
    Chain& chain = chains_[row];
    if (chain.settlement == settlements_) {
      links_[chain.last].next = at;
      chain.last = at;
      return last_row;
    }
    chain = {.settlement = settlements_, .first = at, .last = at, .next_row = last_row};
    return row;
  }
  std::size_t touched_in_plan(std::size_t view, Epoch epoch) const {
    return views_[view]->records().touched(epoch).size();
  }

  /// What was added to a row by known writers, and by those that were linked.
  void gather(std::uint32_t row, Epoch epoch, Contributions& sums) {
    sums.clear();
    for (const RowWriters::Writer& writer : writers_.of(row)) {
      T* sum = views_[writer.view]->records().sum_of(writer.slot, epoch);
      if (sum != nullptr) sums.push_back({first_worker_ + writer.view, sum});
    }
    if (chains_[row].settlement != settlements_) return;
    add_linked(row, sums);
    std::sort(sums.begin(), sums.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
  }
  void add_linked(std::uint32_t row, Contributions& sums) const {
    for (std::uint32_t at = chains_[row].first; at != kNone; at = links_[at].next) {
      sums.push_back({first_worker_ + links_[at].view, links_[at].sum});
    }
  }

  /// Along the fixed tree over workers, in the leftmost place.
  T* add_up(Contributions& sums) const {
    while (sums.size() > 1) {
      std::size_t kept = 0;
      for (std::size_t i = 0; i < sums.size(); ++kept) {
        const Contribution left = sums[i++];
        if (i < sums.size() && sums[i].index / 2 == left.index / 2) {
          const T* right = sums[i++].sum;
          for (std::uint32_t d = 0; d < width_; ++d) left.sum[d] += right[d];
        }
        sums[kept] = {left.index / 2, left.sum};
      }
      sums.resize(kept);
    }
    return sums.front().sum;
  }

  UpdateBatch<T>& sum_of(Subtree at, Clock clock) {
    const auto found = sums_.find(at);
    if (found != sums_.end()) return found->second;
    UpdateBatch<T>& sum = sums_.emplace(at, UpdateBatch<T>(width_)).first->second;
    const std::size_t first = tree_.first_worker(at) - first_worker_;
    const Range range{first, std::min(views_.size(), first + (std::size_t{1} << at.level))};
    const auto append = [&](std::uint32_t row, const T* values) { sum.append(row, AccessSlots::kNone, values); };
    const Epoch epoch = UpdateRecords<T>::epoch_of(clock);
    number_touched(epoch, range);
    settle_touched(epoch, range, {0, rows_}, append);
    return sum;
  }

  // All workers together, because a row's sum is put together from what is known of all.
  void learn() {
    std::uint64_t lacked = 0, known = 0;
    bool in_vain = false;
    for (const WorkerView<T>* view : views_) {
      lacked += view->learner().lacked();
      known += view->learner().known();
      in_vain = in_vain || view->learner().is_in_vain();
    }
    if (!AccessLearner::pays(lacked, known) && !in_vain) return;
    std::vector<std::shared_ptr<const AccessSlots>> plans;
    for (WorkerView<T>* view : views_) plans.push_back(view->learner().extended());
    follow(std::move(plans));
  }

  CombiningTree tree_;
  const AccessCosts costs_;
  const WorkerId first_worker_;
  const std::uint32_t rows_, width_;
  const Views views_;
  RowWriters writers_;
  std::vector<std::size_t> first_link_;  ///< by view
  std::vector<Link> links_;              ///< of what was touched: worker for worker, in order
  std::vector<Chain> chains_;            ///< by row
  std::uint32_t settlements_ = 0;        ///< chains of other ones do not count
  bool are_whole_ = false;               ///< all plans
  bool walks_rows_ = false;              ///< so many rows were touched that looking at all is cheaper
  std::map<Subtree, UpdateBatch<T>> sums_;
};

}  // namespace orrery
