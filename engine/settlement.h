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
#include <utility>
#include <vector>

#include "engine/access_costs.h"
#include "engine/access_learner.h"
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
        views_(std::move(views)) {}

  /// Workers have plans: rows that they add to are known.
  bool is_planned() const noexcept { return !writers_.empty(); }

  /// The worker has ended its clock. Any thread.
  void worker_ended(WorkerId worker) {
    views_[worker - first_worker_]->end_settled();
    if (is_planned()) return;
    tree_.arrive(worker, [&](WorkerId left, WorkerId right) { batch_of(left).merge(batch_of(right)); });
  }

  /// Planned, one node: begins the settlement of a clock with what is outside plans. apply(row, sum) gets the sum of
  /// all workers for a row. @return in how many parts settle() may do the rest.
  template <class Apply>
  std::size_t begin(Clock clock, Apply&& apply) {
    settle_unplanned(clock, {0, views_.size()}, apply);
    const Epoch epoch = UpdateRecords<T>::epoch_of(clock);
    std::size_t added = 0;
    for (const WorkerView<T>* view : views_) added += view->records().added(epoch).size();
    // Whole plans lie in the order of rows; others do not. Who visits looks for the row's first writer, too.
    const double walking = static_cast<double>(writers_.size()) * (are_whole_ ? costs_.walk : costs_.visit);
    const double visiting = 2 * static_cast<double>(added) * costs_.visit;
    walks_rows_ = walking <= visiting;
    const double all = std::min(walking, visiting) + static_cast<double>(added * width_) * costs_.add;
    return std::clamp<std::size_t>(static_cast<std::size_t>(all / kNanosecondsOfPart), 1,
                                   walks_rows_ ? kMostParts : views_.size());
  }
  /// Calls apply(row, sum) for what planned workers added. Parts may overlap.
  template <class Apply>
  void settle(Clock clock, std::size_t part, std::size_t parts, Apply&& apply) {
    const Epoch epoch = UpdateRecords<T>::epoch_of(clock);
    if (walks_rows_) {
      settle_rows(epoch, {writers_.first_row(part, parts), writers_.first_row(part + 1, parts)}, apply);
    } else {
      settle_added(epoch, {0, views_.size()}, {views_.size() * part / parts, views_.size() * (part + 1) / parts},
                   apply);
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
  struct Range {
    std::size_t first, last;
  };
  /// What one worker added to a row; or, further up the tree, some workers.
  struct Contribution {
    std::size_t index;  ///< in its level of the tree
    T* sum;
  };
  using Contributions = std::vector<Contribution>;
  static constexpr double kNanosecondsOfPart = 1e4;  // a unit costs about a microsecond to start
  static constexpr std::size_t kMostParts = 64;

  UpdateBatch<T>& batch_of(WorkerId worker) { return views_[worker - first_worker_]->unplanned(); }

  template <class Apply>
  void settle_rows(Epoch epoch, Range rows, Apply&& apply) {
    Contributions sums;
    for (std::size_t row = rows.first; row < rows.last; ++row) {
      gather(static_cast<std::uint32_t>(row), epoch, {0, views_.size()}, sums);
      if (!sums.empty()) apply(static_cast<std::uint32_t>(row), add_up(sums));
    }
  }

  /// Rows that `among` added to and whose first contributor in `range` is one of those.
  template <class Apply>
  void settle_added(Epoch epoch, Range range, Range among, Apply&& apply) {
    Contributions sums;
    for (std::size_t v = among.first; v < among.last; ++v) {
      const UpdateRecords<T>& records = views_[v]->records();
      for (const std::uint32_t slot : records.added(epoch)) {
        const std::uint32_t row = records.plan()->row(slot);
        if (!is_first(row, epoch, range, v)) continue;
        gather(row, epoch, range, sums);
        if (!sums.empty()) apply(row, add_up(sums));  // else it was added up with what is outside plans
      }
    }
  }

  /// Rows that some worker in `range` added to outside its plan, with what others added to them inside theirs.
  template <class Apply>
  void settle_unplanned(Clock clock, Range range, Apply&& apply) {
    const Epoch epoch = UpdateRecords<T>::epoch_of(clock);
    Contributions sums;
    for (std::size_t v = range.first; v < range.last; ++v) {
      for (const std::uint32_t row : views_[v]->unplanned().rows()) {
        if (gather_all(row, epoch, range, sums) == v) apply(row, add_up(sums));
      }
    }
  }

  /// Has no view of `range` before this one, which has, added to the row? Who comes later stops at the first that did.
  bool is_first(std::uint32_t row, Epoch epoch, Range range, std::size_t view) {
    for (const RowWriters::Writer& writer : writers_.of(row)) {
      if (writer.view >= view) return true;
      if (writer.view < range.first) continue;
      if (views_[writer.view]->records().sum_of(writer.slot, epoch) != nullptr) return false;
    }
    return true;
  }

  void gather(std::uint32_t row, Epoch epoch, Range range, Contributions& sums) {
    sums.clear();
    for (const RowWriters::Writer& writer : writers_.of(row)) {
      if (writer.view < range.first || writer.view >= range.last) continue;
      T* sum = views_[writer.view]->records().sum_of(writer.slot, epoch);
      if (sum != nullptr) sums.push_back({first_worker_ + writer.view, sum});
    }
  }

  /// The same with what is outside plans; what is inside is taken, so that gather() will not find it. @return the first
  /// view with the row outside its plan.
  std::size_t gather_all(std::uint32_t row, Epoch epoch, Range range, Contributions& sums) {
    sums.clear();
    std::size_t first = range.last;
    for (std::size_t v = range.first; v < range.last; ++v) {
      UpdateRecords<T>& records = views_[v]->records();
      UpdateBatch<T>& unplanned = views_[v]->unplanned();
      const std::uint32_t slot = records.slot_of(row);
      if (slot != AccessSlots::kNone) {
        T* sum = records.sum_of(slot, epoch);
        if (sum == nullptr) continue;
        sums.push_back({first_worker_ + v, sum});
        records.take(slot);
      } else if (unplanned.find(row) != UpdateBatch<T>::kNone) {
        sums.push_back({first_worker_ + v, unplanned.at(row)});
        first = std::min(first, v);
      }
    }
    return first;
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
    settle_unplanned(clock, range, append);
    settle_added(UpdateRecords<T>::epoch_of(clock), range, range, append);
    return sum;
  }

  // All workers together, because a row's sum is put together from what is known of all.
  void learn() {
    std::uint64_t misses = 0, planned = 0;
    for (const WorkerView<T>* view : views_) {
      misses += view->learner().misses_since();
      planned += view->learner().planned();
    }
    if (!AccessLearner::pays(misses, planned)) return;
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
  bool are_whole_ = false;   ///< all plans
  bool walks_rows_ = false;  ///< so many rows were added to that looking at all is cheaper
  std::map<Subtree, UpdateBatch<T>> sums_;
};

}  // namespace orrery
