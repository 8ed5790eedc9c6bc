// Parameters as rows of a run-time width, read and added to by all workers under bounded staleness (design section 5).
// An author declares a table (TableStore::add), reads spans and adds deltas in units; consistency, caches and counting
// what reads saw come with it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/assert.h"
#include "engine/clock.h"
#include "engine/combining_tree.h"
#include "engine/domain_cache.h"
#include "engine/program.h"
#include "engine/types.h"
#include "engine/unit.h"
#include "engine/update_batch.h"

namespace orrery {

struct TableSpec {
  std::string name;
  std::uint32_t rows = 0;
  std::uint32_t width = 1;
  std::optional<Clock> staleness;  ///< of this table, where it must be fresher than the engine's bound
};

/// How far behind its clock reads were: counts[k] reads of a worker at clock c saw every update with a timestamp below
/// c - k, and not all of c - k. The last bucket holds all beyond.
struct ObservedStaleness {
  static constexpr std::size_t kBuckets = 65;
  std::array<std::uint64_t, kBuckets> counts{};
  void add(const ObservedStaleness& other) {
    for (std::size_t k = 0; k < kBuckets; ++k) counts[k] += other.counts[k];
  }
};

/// What TableStore needs of a table whatever its type. Calls that may overlap units are said so.
class TableBase {
 public:
  TableBase(TableSpec spec, Clock bound) : spec_(std::move(spec)), bound_(bound) {}
  virtual ~TableBase() = default;
  const TableSpec& spec() const noexcept { return spec_; }
  /// Rows are replaced while units run, because clocks may differ.
  bool versioned() const noexcept { return bound_ > 0; }
  virtual ObservedStaleness observed() const = 0;

  /// The worker has ended its clock: its updates are handed over. On the thread that ended it; overlaps units of
  /// others.
  virtual void worker_ended(WorkerId worker, Clock clock) = 0;
  /// What this node's workers added in `clock`, for the other nodes. The processor's; overlaps units.
  virtual void pack(Clock clock, Bytes& out) = 0;
  /// What node `from` packed; moves `in` past it. The processor's; overlaps units.
  virtual void unpack(NodeId from, Clock clock, std::span<const std::byte>& in) = 0;
  /// Makes visible what may be. The processor's; overlaps units.
  virtual void clocks_moved(const ClockTree& clocks) = 0;
  /// Everybody has ended `clock`. The processor's; at staleness 0 no unit runs.
  virtual void commit(Clock clock) = 0;

  /// Between runs.
  virtual Bytes save() const = 0;
  /// @return false when the bytes are of a table of another shape.
  virtual bool load(std::span<const std::byte> bytes) = 0;

 protected:
  const TableSpec spec_;
  const Clock bound_;  ///< how far apart clocks may be
};

template <class T>
class Table final : public TableBase {
 public:
  Table(TableSpec spec, Clock bound, const WorkerMap& map, const Topology& topology)
      : TableBase(std::move(spec), bound), map_(map), tree_(map), first_worker_(map.first_worker(map.this_node())) {
    for (DomainId d = 0; d < map.domains(); ++d) {
      caches_.push_back(std::make_unique<DomainCache<T>>(spec_.rows, spec_.width, versioned(), d, topology));
    }
    for (WorkerId w = first_worker_; w < map.first_worker(map.this_node() + 1); ++w) {
      views_.push_back(std::make_unique<View>(spec_.width));
    }
  }

  /// The row as this unit's worker may see it: all updates that rules 1 to 6 of the design's section 5 promise, its own
  /// included. Valid until the worker's next clock; what the worker adds later may or may not show in it. Units of one
  /// worker must not run at the same time. Cost: a look-up among the rows that the worker has added to.
  std::span<const T> read(const UnitContext& context, std::uint32_t row) {
    ORRERY_HEAVY_CHECK(row < spec_.rows);
    View& view = view_of(context);
    DomainCache<T>& cache = *caches_[context.domain];
    note_lag(view, context, cache);
    if (const std::uint32_t own = view.own_index.find(row); own != RowIndex::kNone) {
      return {view.own_rows[own], spec_.width};
    }
    return versioned() ? read_versioned(view, cache, row) : read_settled(view, cache, row);
  }

  /// Adds `delta`, `width` values, to a row, with the timestamp of this unit's clock.
  void add(const UnitContext& context, std::uint32_t row, std::span<const T> delta) {
    ORRERY_HEAVY_CHECK(row < spec_.rows && delta.size() == spec_.width);
    View& view = view_of(context);
    T* sum = view.current.at(row);
    for (std::uint32_t d = 0; d < spec_.width; ++d) sum[d] += delta[d];
    if (const std::uint32_t own = view.own_index.find(row); own != RowIndex::kNone) {
      for (std::uint32_t d = 0; d < spec_.width; ++d) view.own_rows[own][d] += delta[d];
    }
  }
  void add(const UnitContext& context, std::uint32_t row, std::uint32_t column, T delta) {
    ORRERY_HEAVY_CHECK(row < spec_.rows && column < spec_.width);
    View& view = view_of(context);
    view.current.at(row)[column] += delta;
    if (const std::uint32_t own = view.own_index.find(row); own != RowIndex::kNone) view.own_rows[own][column] += delta;
  }

  /// The row with everything in it, while no unit runs.
  std::span<const T> row(std::uint32_t row) const { return {caches_.front()->values(row), spec_.width}; }
  /// Sets a row on all domains, while no unit runs; on several nodes all must set the same.
  void set(std::uint32_t row, std::span<const T> values) {
    for (const auto& cache : caches_) std::copy(values.begin(), values.end(), cache->values(row));
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
    for (const auto& view : views_) all.add(view->lags);
    return all;
  }
  /// Versions that wait for their last readers, over all domains. While no unit runs.
  std::size_t retired_versions() const {
    std::size_t count = 0;
    for (const auto& cache : caches_) count += cache->retired();
    return count;
  }

  void worker_ended(WorkerId worker, Clock clock) override {
    View& view = *views_[worker - first_worker_];
    if (versioned()) {
      hand_over(view, worker, clock);
    } else {
      tree_.arrive(worker, [&](WorkerId left, WorkerId right) { batch_of(left).merge(batch_of(right)); });
    }
  }

  void pack(Clock clock, Bytes& out) override {
    if (!versioned()) {
      for (const Subtree at : tree_.largest()) batch_of(tree_.first_worker(at)).pack(out);
      return;
    }
    take_handed();
    auto own = own_batches_.extract(clock);
    std::sort(own.mapped().begin(), own.mapped().end(),
              [](const auto& a, const auto& b) { return a->worker < b->worker; });
    for (const auto& batch : own.mapped()) batch->updates.pack(out);
  }

  void unpack(NodeId from, Clock clock, std::span<const std::byte>& in) override {
    if (versioned()) {
      for (WorkerId w = map_.first_worker(from); w < map_.first_worker(from + 1); ++w) {
        auto batch = std::make_shared<Handed>(w, clock, spec_.width);
        batch->updates.unpack(in);
        parked_[clock].push_back(std::move(batch));
      }
      return;
    }
    const WorkerMap theirs(map_.workers(), map_.nodes(), from, map_.domains());
    for (const Subtree at : CombiningTree(theirs).largest()) {
      UpdateBatch<T> batch(spec_.width);
      batch.unpack(in);
      arrived_[clock].emplace(at, std::move(batch));
    }
  }

  void clocks_moved(const ClockTree& clocks) override {
    if (!versioned()) return;
    take_handed();
    // Visible once every worker has finished clock τ - s: rule 3 (nothing beyond c + s - 1) holds exactly.
    const Clock visible_below = clocks.cluster() + bound_;
    for (auto at = parked_.begin(); at != parked_.end() && at->first < visible_below;) {
      for (const auto& batch : at->second) apply(*batch, clocks.fastest());
      applied_[at->first] += at->second.size();
      at = parked_.erase(at);
    }
    raise_frontier(clocks.cluster());
    for (const auto& cache : caches_) cache->reclaim(clocks.node(map_.this_node()));
  }

  void commit(Clock clock) override {
    if (versioned()) return;
    auto& arrived = arrived_[clock];
    std::map<Subtree, UpdateBatch<T>*> parts;
    for (const Subtree at : tree_.largest()) parts.emplace(at, &batch_of(tree_.first_worker(at)));
    for (auto& [at, batch] : arrived) parts.emplace(at, &batch);
    const UpdateBatch<T>& all =
        *tree_.finish(std::move(parts), [](UpdateBatch<T>& left, const UpdateBatch<T>& right) { left.merge(right); });
    for (std::size_t i = 0; i < all.rows().size(); ++i) {
      const T* delta = all.values(i);
      for (const auto& cache : caches_) {
        T* values = cache->values(all.rows()[i]);
        for (std::uint32_t d = 0; d < spec_.width; ++d) values[d] += delta[d];
      }
    }
    for (const auto& view : views_) view->current.clear();
    arrived_.erase(clock);
    tree_.reset();
  }

  Bytes save() const override {
    const std::vector<T> all = snapshot();
    Bytes bytes(all.size() * sizeof(T));
    if (!bytes.empty()) std::memcpy(bytes.data(), all.data(), bytes.size());
    return bytes;
  }
  bool load(std::span<const std::byte> bytes) override {
    const std::size_t row_bytes = spec_.width * sizeof(T);
    if (bytes.size() != spec_.rows * row_bytes) return false;
    std::vector<T> values(spec_.width);
    for (std::uint32_t r = 0; r < spec_.rows; ++r) {
      std::memcpy(values.data(), bytes.data() + r * row_bytes, row_bytes);
      set(r, values);
    }
    return true;
  }

 private:
  /// A worker's updates of one clock on their way to the caches.
  struct Handed {
    Handed(WorkerId w, Clock c, std::uint32_t width) : worker(w), clock(c), updates(width) {}
    WorkerId worker;
    Clock clock;
    UpdateBatch<T> updates;
    /// For each row of `updates`: the number of the version, in the worker's own domain, that was the first to hold it;
    /// 0 before. So a worker knows which of its own updates a version lacks.
    std::unique_ptr<std::atomic<std::uint64_t>[]> first_version;
    std::atomic<bool> applied{false};
  };

  /// What belongs to one worker alone.
  struct alignas(64) View {
    explicit View(std::uint32_t width) : current(width) {}
    Clock turn = -1;
    UpdateBatch<T> current;                       ///< of the clock under way
    std::deque<std::shared_ptr<Handed>> pending;  ///< own batches that some version may lack, oldest first
    RowIndex own_index;                           ///< rows as this worker sees them because of its own updates
    std::vector<T*> own_rows;
    std::vector<std::unique_ptr<T[]>> own_memory;  ///< kept over turns; spans point into it
    ObservedStaleness lags;
  };

  UpdateBatch<T>& batch_of(WorkerId worker) { return views_[worker - first_worker_]->current; }

  View& view_of(const UnitContext& context) {
    View& view = *views_[context.worker - first_worker_];
    if (view.turn != context.clock) start_turn(view, context.clock);
    return view;
  }

  void start_turn(View& view, Clock clock) {
    view.turn = clock;
    view.own_index.clear();
    view.own_rows.clear();
    // acquire: pairs with the release in apply(); every version from now on holds the batch.
    while (!view.pending.empty() && view.pending.front()->applied.load(std::memory_order_acquire)) {
      view.pending.pop_front();
    }
  }

  void note_lag(View& view, const UnitContext& context, const DomainCache<T>& cache) {
    const Clock frontier = versioned() ? cache.frontier() : context.clock;
    const Clock lag = std::clamp<Clock>(context.clock - frontier, 0, ObservedStaleness::kBuckets - 1);
    ++view.lags.counts[static_cast<std::size_t>(lag)];
  }

  std::span<const T> read_settled(View& view, DomainCache<T>& cache, std::uint32_t row) {
    const T* base = cache.read(row);
    const std::uint32_t mine = view.current.find(row);
    if (mine == RowIndex::kNone) return {base, spec_.width};
    T* own = own_row(view, row, base);
    add_to(own, view.current.values(mine));
    return {own, spec_.width};
  }

  std::span<const T> read_versioned(View& view, DomainCache<T>& cache, std::uint32_t row) {
    const auto& version = cache.read_version(row);
    T* own = nullptr;
    const auto lacks = [&](const T* delta) {
      if (own == nullptr) own = own_row(view, row, version.values);
      add_to(own, delta);
    };
    for (const auto& batch : view.pending) {
      const std::uint32_t i = batch->updates.find(row);
      if (i == RowIndex::kNone) continue;
      // relaxed: if the version holds the batch, its acquire in read_version() has made the number visible; if it does
      // not, both 0 and a higher number say so.
      const std::uint64_t first = batch->first_version[i].load(std::memory_order_relaxed);
      if (first == 0 || first > version.number) lacks(batch->updates.values(i));
    }
    if (const std::uint32_t mine = view.current.find(row); mine != RowIndex::kNone) lacks(view.current.values(mine));
    return {own != nullptr ? own : version.values, spec_.width};
  }

  T* own_row(View& view, std::uint32_t row, const T* base) {
    const std::size_t n = view.own_rows.size();
    if (n == view.own_memory.size()) view.own_memory.push_back(std::make_unique<T[]>(spec_.width));
    T* own = view.own_memory[n].get();
    std::copy(base, base + spec_.width, own);
    view.own_index.insert(row, static_cast<std::uint32_t>(n));
    view.own_rows.push_back(own);
    return own;
  }

  void add_to(T* to, const T* delta) const {
    for (std::uint32_t d = 0; d < spec_.width; ++d) to[d] += delta[d];
  }

  void hand_over(View& view, WorkerId worker, Clock clock) {
    auto batch = std::make_shared<Handed>(worker, clock, spec_.width);
    std::swap(batch->updates, view.current);
    batch->first_version = std::make_unique<std::atomic<std::uint64_t>[]>(batch->updates.rows().size());
    if (!batch->updates.empty()) view.pending.push_back(batch);
    const std::lock_guard lock(handed_mutex_);
    handed_.push_back(std::move(batch));
  }

  void take_handed() {
    std::vector<std::shared_ptr<Handed>> handed;
    {
      const std::lock_guard lock(handed_mutex_);
      handed.swap(handed_);
    }
    for (auto& batch : handed) {
      if (map_.nodes() > 1) own_batches_[batch->clock].push_back(batch);
      parked_[batch->clock].push_back(std::move(batch));
    }
  }

  void apply(Handed& batch, Clock latest_reader) {
    const bool is_own = map_.node_of(batch.worker) == map_.this_node();
    const DomainId home = is_own ? map_.domain_of(batch.worker) : kNoDomain;
    for (std::size_t i = 0; i < batch.updates.rows().size(); ++i) {
      for (DomainId d = 0; d < map_.domains(); ++d) {
        caches_[d]->replace(batch.updates.rows()[i], batch.updates.values(i), latest_reader, [&](std::uint64_t number) {
          // relaxed: published by the release of the version itself.
          if (d == home) batch.first_version[i].store(number, std::memory_order_relaxed);
        });
      }
    }
    batch.applied.store(true, std::memory_order_release);  // release: pairs with the acquire in start_turn()
  }

  // Below the cluster's clock all is applied. Beyond it, clocks that are complete count too.
  void raise_frontier(Clock cluster) {
    applied_.erase(applied_.begin(), applied_.lower_bound(cluster));
    frontier_ = std::max(frontier_, cluster);
    for (auto at = applied_.find(frontier_); at != applied_.end() && at->second == map_.workers();
         at = applied_.find(frontier_)) {
      applied_.erase(at);
      ++frontier_;
    }
    for (const auto& cache : caches_) cache->raise_frontier(frontier_);
  }

  const WorkerMap map_;
  CombiningTree tree_;
  const WorkerId first_worker_;
  std::vector<std::unique_ptr<DomainCache<T>>> caches_;
  std::vector<std::unique_ptr<View>> views_;

  std::mutex handed_mutex_;
  std::vector<std::shared_ptr<Handed>> handed_;

  // The processor's own.
  std::map<Clock, std::vector<std::shared_ptr<Handed>>> parked_;
  std::map<Clock, std::vector<std::shared_ptr<Handed>>> own_batches_;  ///< until they are packed
  std::map<Clock, std::size_t> applied_;                               ///< batches, of clocks that are not complete
  Clock frontier_ = 0;
  /// A node that knows sooner that all have finished a clock may be a clock ahead.
  std::map<Clock, std::map<Subtree, UpdateBatch<T>>> arrived_;
};

}  // namespace orrery
