// Parameters as rows of a run-time width, read and added to by all workers under bounded staleness (design section 5).
// An author declares a table (TableStore::add), reads spans and adds deltas in units; consistency, caches and counting
// what reads saw come with it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/access_learner.h"
#include "engine/access_recorder.h"
#include "engine/assert.h"
#include "engine/clock.h"
#include "engine/combining_tree.h"
#include "engine/domain_cache.h"
#include "engine/error.h"
#include "engine/row_order.h"
#include "engine/row_stream.h"
#include "engine/settlement.h"
#include "engine/stream_cursor.h"
#include "engine/table_base.h"
#include "engine/types.h"
#include "engine/unit.h"
#include "engine/update_batch.h"
#include "engine/worker_view.h"
#include "numa/domain_pool.h"
#include "numa/memory.h"

namespace orrery {

template <class T>
class Table final : public TableBase {
 public:
  /// `learns`: what workers touch is learned, and found by slot afterwards; how, is decided by the costs.
  Table(TableSpec spec, Clock bound, RowDelivery delivery, const WorkerMap& map, const Topology& topology, bool learns,
        const AccessCosts& costs)
      : TableBase(std::move(spec), bound, delivery, map),
        rule_(spec_.rule, spec_.width, versioned()),
        first_worker_(map.first_worker(map.this_node())),
        view_of_worker_(map.workers()),
        applied_of_worker_(map.workers(), 0),
        in_flight_(map.first_worker(map.this_node() + 1) - first_worker_),
        included_(map.nodes(), std::vector<Clock>(in_flight_.size(), 0)) {
    for (DomainId d = 0; d < map.domains(); ++d) {
      pools_.push_back(std::make_unique<DomainPool>(d, topology));
      caches_.push_back(std::make_unique<LocalObject<DomainCache<T>>>(d, topology, spec_.rows, rule_.state_width(),
                                                                      map.nodes(), versioned(), d, topology));
    }
    for (WorkerId w = first_worker_; w < first_worker_ + in_flight_.size(); ++w) {
      const DomainId domain = map.domain_of(w);
      views_.push_back(std::make_unique<LocalObject<WorkerView<T>>>(domain, topology, cache(domain), rule_, spec_,
                                                                    homes_, versioned(), costs, near_bytes(topology),
                                                                    pools_[domain].get()));
      view_of_worker_[w] = &**views_.back();
      if (!learns) view(w).learner().switch_off();
    }
    std::vector<WorkerView<T>*> views;
    for (const auto& view : views_) views.push_back(&**view);
    settlement_ = std::make_unique<Settlement<T>>(map, spec_.rows, rule_.update_width(), costs, std::move(views));
  }

  /// The row as this unit's worker may see it: all updates that rules 1 to 6 of the design's section 5 promise, its own
  /// included. Valid until the worker's next clock; what the worker adds later may or may not show in it. Units of one
  /// worker must not run at the same time. Cost: a look-up among the rows that the worker has added to. @throws Error
  /// (internal) for a row that will_read() did not name.
  std::span<const T> read(const UnitContext& context, std::uint32_t row) {
    return view(context.worker).read(context.clock, row);
  }

  /// Adds `delta`, `width` values, to a row (or steps against it: TableSpec::rule), with the timestamp of this unit's
  /// clock.
  void add(const UnitContext& context, std::uint32_t row, std::span<const T> delta) {
    view(context.worker).add(context.clock, row, delta);
  }
  /// The same for one value of the row.
  void add(const UnitContext& context, std::uint32_t row, std::uint32_t column, T delta) {
    view(context.worker).add(context.clock, row, column, delta);
  }

  /// Rows that a worker of this node will access again and again in this order; `rows` must outlive the stream, and the
  /// table, too. Any time. Cost: that of the rows, once for each plan.
  RowStream stream(WorkerId worker, std::span<const std::uint32_t> rows) const {
    for (const std::uint32_t row : rows) ORRERY_CHECK(row < spec_.rows);
    return {rows, pools_[map_.domain_of(worker)].get()};
  }
  /// For a unit of the stream's worker: reads and adds by place in the stream. Cost of an access: no look-up.
  StreamCursor<T> along(const UnitContext& context, RowStream& stream) {
    return {view(context.worker), context.clock, stream};
  }

  /// The row with everything in it, while no unit runs.
  std::span<const T> row(std::uint32_t row) const { return {cache(0).values(row), spec_.width}; }
  /// Sets the values of a row on all domains, while no unit runs; on several nodes all must set the same.
  void set(std::uint32_t row, std::span<const T> values) {
    for (DomainId d = 0; d < map_.domains(); ++d) std::copy(values.begin(), values.end(), cache(d).values(row));
  }
  /// All rows, one after the other, while no unit runs.
  std::vector<T> snapshot() const {
    std::vector<T> all;
    all.reserve(std::size_t{spec_.rows} * spec_.width);
    for (std::uint32_t r = 0; r < spec_.rows; ++r) {
      const std::span<const T> values = row(r);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  ObservedStaleness observed() const override {
    ObservedStaleness all;
    for (const auto& view : views_) all.add((**view).observed());
    return all;
  }
  AccessCounts accesses() const override {
    AccessCounts all;
    for (const auto& view : views_) all.add((**view).learner().counts());
    return all;
  }
  void record(const RecordedClocks& clocks) override {
    recorders_.clear();
    for (const auto& view : views_) {
      const std::size_t most = clocks.most_bytes / AccessRecorder::kBytesOfAccess / views_.size();
      recorders_.push_back(std::make_unique<AccessRecorder>(clocks.first, clocks.last, most));
      (**view).set_recorder(recorders_.back().get());
    }
  }
  std::vector<const AccessRecorder*> recorded() const override {
    std::vector<const AccessRecorder*> all;
    for (const auto& recorder : recorders_) all.push_back(recorder.get());
    return all;
  }
  std::size_t row_bytes() const noexcept override { return rule_.state_width() * sizeof(T); }
  std::size_t update_bytes() const noexcept override { return rule_.update_width() * sizeof(T); }
  /// Versions that wait for their last readers, over all domains. While no unit runs.
  std::size_t retired_versions() const {
    std::size_t count = 0;
    for (const auto& cache : caches_) count += (**cache).retired();
    return count;
  }

  void worker_ended(WorkerId worker, Clock clock) override {
    if (versioned()) {
      auto batch = view(worker).hand_over(worker, clock, homes_.count());
      const std::lock_guard lock(handed_mutex_);
      handed_.push_back(std::move(batch));
    } else {
      settlement_->worker_ended(worker, clock);
    }
  }

  std::size_t settle_parts(Clock clock) override {
    if (!is_settled_in_parts()) return 0;
    parts_ = settlement_->begin(clock);
    return parts_;
  }
  void settle(Clock clock, std::size_t part) override {
    settlement_->settle(clock, part, parts_, [&](std::uint32_t row, const T* sum) { apply_to_all(row, sum); });
  }

  Bytes save_plan() const override {
    Bytes bytes;
    put(bytes, spec_.rows);
    put(bytes, static_cast<std::uint32_t>(views_.size()));
    for (const auto& view : views_) {
      const std::vector<std::uint32_t> rows = (**view).learner().known_rows();
      put(bytes, static_cast<std::uint32_t>(rows.size()));
      put_all(bytes, std::span<const std::uint32_t>(rows));
    }
    return bytes;
  }
  bool follow_plan(std::span<const std::byte> bytes) override {
    WireReader in(bytes);
    if (in.take<std::uint32_t>() != spec_.rows || in.take<std::uint32_t>() != views_.size()) return false;
    std::vector<std::shared_ptr<const AccessSlots>> plans;
    for (std::size_t v = 0; v < views_.size(); ++v) {
      std::pmr::memory_resource* memory = pools_[map_.domain_of(first_worker_ + static_cast<WorkerId>(v))].get();
      auto plan = std::allocate_shared<AccessSlots>(std::pmr::polymorphic_allocator<>(memory), spec_.rows, memory);
      for (auto left = in.take<std::uint32_t>(); left > 0; --left) plan->enter(in.take<std::uint32_t>());
      plans.push_back(std::move(plan));
    }
    settlement_->follow(std::move(plans));
    return true;
  }

  Bytes save() const override {
    Bytes bytes;
    for (std::uint32_t r = 0; r < spec_.rows; ++r) put_all(bytes, state_of(r));
    return bytes;
  }
  bool load(std::span<const std::byte> bytes) override {
    if (bytes.size() != std::size_t{spec_.rows} * rule_.state_width() * sizeof(T)) return false;
    WireReader in(bytes);
    for (std::uint32_t r = 0; r < spec_.rows; ++r) take_state(in, r);
    return true;
  }

 protected:
  void pack_updates(Clock clock, NodeId home, Bytes& out) override {
    std::uint32_t part = 0;
    if (!versioned()) {
      for (const auto& [at, batch] : settlement_->subtrees(clock)) pack(*batch, home, part++, out);
      return;
    }
    take_handed();
    auto& own = own_batches_[clock];
    std::sort(own.begin(), own.end(), [](const auto& a, const auto& b) { return a->worker < b->worker; });
    for (const auto& batch : own) pack(batch->updates, home, part++, out);
  }
  void updates_packed(Clock clock) override { own_batches_.erase(clock); }

  void unpack_updates(NodeId from, Clock clock, WireReader& in) override {
    std::uint32_t part = 0;
    if (versioned()) {
      for (WorkerId w = map_.first_worker(from); w < map_.first_worker(from + 1); ++w) {
        UpdateBatch<T> updates = unpack(from, part++, in);
        parked_[clock].push_back(
            std::make_shared<Handed>(w, clock, std::move(updates), 1, std::pmr::get_default_resource(), nullptr));
      }
      return;
    }
    const WorkerMap theirs(map_.workers(), map_.nodes(), from, map_.domains());
    for (const Subtree at : CombiningTree(theirs).largest()) {
      arrived_[clock].emplace(at, unpack(from, part++, in));
    }
  }

  // How many clocks of each of the peer's workers are in, then the rows: so the peer knows which of its own updates it
  // must go on adding itself.
  void pack_rows(NodeId peer, bool whole, std::span<const std::uint32_t> rows, Bytes& out) override {
    const WorkerId first = map_.first_worker(peer), count = map_.first_worker(peer + 1) - first;
    put_all(out, std::span<const Clock>(applied_of_worker_).subspan(first, count));
    writer(rows_out_, {peer, whole})
        .template write<T>(
            rows, rule_.state_width(), [&](std::size_t i) { return state_of(rows[i]).data(); }, out);
  }

  void unpack_rows(NodeId home, bool whole, const ClockTree& clocks, WireReader& in) override {
    std::vector<Clock> included(in_flight_.size());
    in.take_all(std::span(included));
    const std::vector<std::shared_ptr<Handed>> newly = newly_included(home, included);
    const std::uint32_t width = rule_.state_width();
    rows_in_[{home, whole}].template read<T>(in, width, [&](std::uint32_t row, const T* state) {
      if (!versioned()) {
        for (const auto& cache : caches_) std::copy(state, state + width, (**cache).values(row));
        return;
      }
      replace(row, newly, state);
    });
    for (const auto& cache : caches_) (**cache).publish(clocks.fastest());
    for (const auto& batch : newly) is_in_at_one_more_home(*batch);
    note_included(home, included);
  }

  Clock apply_visible(const ClockTree& clocks) override {
    take_handed();
    // Visible once every worker has finished clock τ - s: rule 3 (nothing beyond c + s - 1) holds exactly.
    const Clock visible_below = clocks.cluster() + bound_;
    const auto end = parked_.lower_bound(visible_below);
    for (auto at = parked_.begin(); at != end; ++at) {
      for (const auto& batch : at->second) apply(*batch);
      applied_[at->first] += at->second.size();
    }
    for (const auto& cache : caches_) {
      (**cache).publish(clocks.fastest());
      (**cache).reclaim(clocks.node(here()));
    }
    for (auto at = parked_.begin(); at != end; ++at) {
      for (const auto& batch : at->second) note_applied(*batch);
    }
    parked_.erase(parked_.begin(), end);
    return complete_below(clocks.cluster());
  }

  void apply_settled(Clock clock) override {
    // A program of its own that does not pass settle_parts() and settle() on would lose updates.
    ORRERY_CHECK(!is_settled_in_parts() || parts_ > 0);
    parts_ = 0;
    if (homes_.has_rows(here()) && !is_settled_in_parts()) {
      std::map<Subtree, UpdateBatch<T>*> parts = settlement_->subtrees(clock);
      for (auto& [at, batch] : arrived_[clock]) parts.emplace(at, &batch);
      const UpdateBatch<T>& all = settlement_->finish(std::move(parts));
      for (std::size_t i = 0; i < all.rows().size(); ++i) {
        const std::uint32_t row = all.rows()[i];
        if (!is_home_of(row)) continue;  // sent to its home, from where it comes back
        apply_to_all(row, all.values(i));
        row_changed(row);
      }
    }
    arrived_.erase(clock);
    settlement_->end();
  }

  void connected() override {
    for (const auto& view : views_) (**view).set_readable(readable());
  }
  void frontier_rose(NodeId home, Clock frontier) override {
    for (const auto& cache : caches_) (**cache).raise_frontier(home, frontier);
  }

 private:
  using Handed = HandedBatch<T>;
  static std::uint64_t near_bytes(const Topology& topology) {
    constexpr std::uint64_t kUsual = std::uint64_t{1} << 20;
    return topology.caches().l2 > 0 ? topology.caches().l2 : kUsual;
  }
  /// The other node, and which of several lists.
  using Link = std::pair<NodeId, std::uint32_t>;

  // Two loads that may be from another domain's memory; all that follows is in the worker's own.
  WorkerView<T>& view(WorkerId worker) const { return *view_of_worker_[worker]; }
  DomainCache<T>& cache(DomainId domain) const { return **caches_[domain]; }

  /// What one part of this node (of the fixed tree, or a worker) added to the rows of `home`.
  void pack(const UpdateBatch<T>& updates, NodeId home, std::uint32_t part, Bytes& out) {
    packed_rows_.clear();
    packed_values_.clear();
    for (std::size_t i = 0; i < updates.rows().size(); ++i) {
      if (!homes_.is_home(home, updates.rows()[i])) continue;
      packed_rows_.push_back(updates.rows()[i]);
      packed_values_.push_back(updates.values(i));
    }
    writer(updates_out_, {home, part})
        .template write<T>(
            packed_rows_, rule_.update_width(), [&](std::size_t i) { return packed_values_[i]; }, out);
  }
  UpdateBatch<T> unpack(NodeId from, std::uint32_t part, WireReader& in) {
    UpdateBatch<T> updates(rule_.update_width());
    updates_in_[{from, part}].template read<T>(in, rule_.update_width(), [&](std::uint32_t row, const T* values) {
      updates.append(row, UpdateBatch<T>::kNone, values);
    });
    return updates;
  }
  RowOrderWriter& writer(std::map<Link, RowOrderWriter>& of, Link link) const {
    return of.try_emplace(link, spec_.rows).first->second;
  }

  bool is_settled_in_parts() const noexcept { return !versioned() && is_alone() && settlement_->is_planned(); }
  void apply_to_all(std::uint32_t row, const T* sum) {
    for (const auto& cache : caches_) rule_.apply((**cache).values(row), sum);
  }

  void take_handed() {
    std::vector<std::shared_ptr<Handed>> handed;
    {
      const std::lock_guard lock(handed_mutex_);
      handed.swap(handed_);
    }
    for (auto& batch : handed) {
      if (!is_alone()) own_batches_[batch->clock].push_back(batch);
      in_flight_[batch->worker - first_worker_].push_back(batch);
      parked_[batch->clock].push_back(std::move(batch));
    }
  }

  /// Into the next versions of the rows that are at home here.
  void apply(Handed& batch) {
    const UpdateBatch<T>& updates = batch.updates;
    const bool is_own = map_.node_of(batch.worker) == here();
    for (DomainId d = 0; d < map_.domains(); ++d) {
      const bool is_readers = is_own && map_.domain_of(batch.worker) == d;
      for (std::size_t i = 0; i < updates.rows().size(); ++i) {
        if (!is_home_of(updates.rows()[i])) continue;
        auto& version = cache(d).open(updates.rows()[i]);
        rule_.apply(version.values(), updates.values(i));
        // relaxed: published by the release of the version itself.
        if (is_readers) batch.first_version[i].store(version.number(), std::memory_order_relaxed);
        if (d == 0) row_changed(updates.rows()[i]);
      }
    }
  }
  /// After the versions that hold it have been published.
  void note_applied(Handed& batch) {
    applied_of_worker_[batch.worker] = batch.clock + 1;
    if (map_.node_of(batch.worker) != here()) return;
    if (homes_.has_rows(here())) is_in_at_one_more_home(batch);
    drop_applied(in_flight_[batch.worker - first_worker_]);
  }

  /// The next version of a row in all domains is `state`, which is the first to hold `newly`, batches of this node's
  /// workers.
  void replace(std::uint32_t row, std::span<const std::shared_ptr<Handed>> newly, const T* state) {
    for (DomainId d = 0; d < map_.domains(); ++d) {
      auto& version = cache(d).open(row);
      std::copy(state, state + rule_.state_width(), version.values());
      for (const auto& batch : newly) {
        if (map_.domain_of(batch->worker) != d) continue;
        const std::uint32_t i = batch->updates.find(row);
        // relaxed: published by the release of the version itself.
        if (i != UpdateBatch<T>::kNone) batch->first_version[i].store(version.number(), std::memory_order_relaxed);
      }
    }
  }

  /// Own batches that the rows of `home` hold from now on: it has applied `included` clocks of each worker.
  std::vector<std::shared_ptr<Handed>> newly_included(NodeId home, std::span<const Clock> included) const {
    std::vector<std::shared_ptr<Handed>> newly;
    for (std::size_t w = 0; w < in_flight_.size(); ++w) {
      for (const auto& batch : in_flight_[w]) {
        if (included_[home][w] <= batch->clock && batch->clock < included[w]) newly.push_back(batch);
      }
    }
    return newly;
  }

  void is_in_at_one_more_home(Handed& batch) {
    if (--batch.homes_without > 0) return;
    batch.applied.store(true, std::memory_order_release);  // release: pairs with the acquire in WorkerView
  }

  void note_included(NodeId home, const std::vector<Clock>& included) {
    included_[home] = included;
    for (auto& batches : in_flight_) drop_applied(batches);
  }
  static void drop_applied(std::deque<std::shared_ptr<Handed>>& batches) {
    while (!batches.empty() && batches.front()->homes_without == 0) batches.pop_front();
  }

  // Below the cluster's clock all is applied. Beyond it, clocks that are complete count too.
  Clock complete_below(Clock cluster) {
    applied_.erase(applied_.begin(), applied_.lower_bound(cluster));
    complete_ = std::max(complete_, cluster);
    for (auto at = applied_.find(complete_); at != applied_.end() && at->second == map_.workers();
         at = applied_.find(complete_)) {
      applied_.erase(at);
      ++complete_;
    }
    return complete_;
  }

  /// With everything in it, while no unit runs; for the processor also meanwhile.
  std::span<const T> state_of(std::uint32_t row) const { return {cache(0).values(row), rule_.state_width()}; }
  void take_state(WireReader& in, std::uint32_t row) {
    T* first = cache(0).values(row);
    in.take_all(std::span(first, rule_.state_width()));
    for (DomainId d = 1; d < map_.domains(); ++d) std::copy(first, first + rule_.state_width(), cache(d).values(row));
  }

  const RowRule<T> rule_;
  std::vector<std::unique_ptr<DomainPool>> pools_;  ///< by domain: what its workers' views allocate
  const WorkerId first_worker_;
  std::vector<std::unique_ptr<LocalObject<DomainCache<T>>>> caches_;  ///< by domain
  std::vector<WorkerView<T>*> view_of_worker_;                        ///< by worker of the cluster; null: elsewhere
  std::vector<std::unique_ptr<LocalObject<WorkerView<T>>>> views_;    ///< by worker of this node
  std::vector<std::unique_ptr<AccessRecorder>> recorders_;            ///< like views_, for a profile; else none
  std::unique_ptr<Settlement<T>> settlement_;                         ///< of settled tables
  std::size_t parts_ = 0;                                             ///< of the settlement under way

  std::mutex handed_mutex_;
  std::vector<std::shared_ptr<Handed>> handed_;

  // The processor's own.
  std::map<Clock, std::vector<std::shared_ptr<Handed>>> parked_;
  std::map<Clock, std::vector<std::shared_ptr<Handed>>> own_batches_;  ///< until they are packed
  std::map<Clock, std::size_t> applied_;                               ///< batches, of clocks that are not complete
  Clock complete_ = 0;                                                 ///< all updates below it are applied
  std::vector<Clock> applied_of_worker_;                               ///< all below it, of each worker of the cluster
  std::vector<std::deque<std::shared_ptr<Handed>>> in_flight_;         ///< by own worker: batches that some home lacks
  std::vector<std::vector<Clock>> included_;  ///< by home and own worker: clocks that its rows hold
  std::map<Link, RowOrderWriter> updates_out_, rows_out_;
  std::map<Link, RowOrderReader> updates_in_, rows_in_;
  std::vector<std::uint32_t> packed_rows_;  ///< scratch of pack()
  std::vector<const T*> packed_values_;
  /// A node that knows sooner that all have finished a clock may be a clock ahead.
  std::map<Clock, std::map<Subtree, UpdateBatch<T>>> arrived_;
};

}  // namespace orrery
