// A table as one worker sees it: the rows of its domain's cache with its own updates on top (design section 5, rule 4).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/access_costs.h"
#include "engine/access_learner.h"
#include "engine/access_recorder.h"
#include "engine/assert.h"
#include "engine/domain_cache.h"
#include "engine/error.h"
#include "engine/row_homes.h"
#include "engine/table_base.h"
#include "engine/touched_rows.h"
#include "engine/types.h"
#include "engine/update_batch.h"
#include "engine/update_records.h"
#include "engine/update_rule.h"

namespace orrery {

/// The memory of a worker's batches that have been applied, for its next ones.
template <class T>
class SpareBatches {
 public:
  void give(UpdateBatch<T>&& batch) {
    batch.clear();
    const std::lock_guard lock(mutex_);
    spare_.push_back(std::move(batch));
  }
  std::optional<UpdateBatch<T>> take() {
    const std::lock_guard lock(mutex_);
    if (spare_.empty()) return {};
    std::optional<UpdateBatch<T>> batch(std::move(spare_.back()));
    spare_.pop_back();
    return batch;
  }

 private:
  std::mutex mutex_;
  std::vector<UpdateBatch<T>> spare_;
};

/// A worker's updates of one clock on their way to the caches.
template <class T>
struct HandedBatch {
  /// `spare`: where the memory goes in the end; null: nowhere.
  HandedBatch(WorkerId w, Clock c, UpdateBatch<T> u, NodeId homes, std::pmr::memory_resource* memory,
              std::shared_ptr<SpareBatches<T>> spare)
      : worker(w),
        clock(c),
        updates(std::move(u)),
        homes_without(homes),
        first_version(updates.rows().size(), memory),
        spare_(std::move(spare)) {}
  ~HandedBatch() {
    if (spare_ != nullptr) spare_->give(std::move(updates));
  }
  HandedBatch(const HandedBatch&) = delete;
  HandedBatch& operator=(const HandedBatch&) = delete;

  const WorkerId worker;
  const Clock clock;
  UpdateBatch<T> updates;  ///< constant while it is handed over
  NodeId homes_without;    ///< homes in whose rows, as they stand here, it is not; the processor's
  /// For each row of `updates`: the number of the version, in the worker's own domain, that was the first to hold it;
  /// 0 before. So a worker knows which of its own updates a version lacks.
  std::pmr::vector<std::atomic<std::uint64_t>> first_version;
  std::atomic<bool> applied{false};  ///< every version from now on holds it

 private:
  std::shared_ptr<SpareBatches<T>> spare_;
};

/// Everything that reading and adding touch lies here or in the cache, so both are in the worker's domain. Belongs to
/// the worker whose unit runs; units of one worker do not overlap.
template <class T>
class WorkerView {
 public:
  /// Cache, homes and memory must outlive it. `versioned`: rows are replaced while units run. `near_bytes`: of a cache
  /// that is so near that fetching ahead into it does not pay.
  WorkerView(const DomainCache<T>& cache, const RowRule<T>& rule, const TableSpec& spec, const RowHomes& homes,
             bool versioned, const AccessCosts& costs, std::uint64_t near_bytes, std::pmr::memory_resource* memory)
      : cache_(cache),
        rule_(rule),
        rows_(spec.rows),
        width_(spec.width),
        homes_(homes),
        versioned_(versioned),
        fetches_ahead_(std::uint64_t{spec.rows} * rule.state_width() * sizeof(T) > near_bytes),
        memory_(memory),
        may_have_own_(spec.rows / 64 + std::size_t{1}, 0, memory),
        learner_(spec.rows, costs, !versioned, memory),
        records_(rule.state_width(), rule.update_width(), memory),
        current_(rule.update_width(), memory),
        own_(memory),
        own_values_(memory),
        own_chunks_(memory) {}

  /// Rows that may be read, by row; null: all. Before the first clock; must outlive the view.
  void set_readable(const std::vector<bool>* readable) noexcept { watch(readable, recorder_); }
  /// Notes every access from now on; null: none. Between clocks; must outlive the view.
  void set_recorder(AccessRecorder* recorder) noexcept { watch(readable_, recorder); }
  AccessLearner& learner() noexcept { return learner_; }
  const AccessLearner& learner() const noexcept { return learner_; }

  /// See Table::read() and add(); `clock` is the unit's.
  std::span<const T> read(Clock clock, std::uint32_t row) {
    ORRERY_HEAVY_CHECK(row < rows_);
    if (clock != clock_) [[unlikely]]
      begin(clock);
    if (is_watched_) [[unlikely]]
      watch_read(row);
    learner_.count_read();
    if (versioned_) note_lag(row);
    return {may_have_own(row) ? state_of(row, records_.slot_of(row)) : of_cache(row), width_};
  }
  void add(Clock clock, std::uint32_t row, std::span<const T> delta) {
    ORRERY_HEAVY_CHECK(row < rows_ && delta.size() == width_);
    add_at(row, slot_to_add(clock, row), delta);
  }
  void add(Clock clock, std::uint32_t row, std::uint32_t column, T delta) {
    ORRERY_HEAVY_CHECK(row < rows_ && column < width_);
    add_at(row, slot_to_add(clock, row), column, delta);
  }

  /// For StreamCursor: an access to a row of which the slot in the plan is known (kNone: it has none), and what it
  /// needs to do without. @return does nobody watch reads, are rows settled and updates just added?
  bool begin_stream(Clock clock) {
    if (clock != clock_) begin(clock);
    return !versioned_ && !is_watched_ && !rule_.is_adaptive();
  }
  [[gnu::noinline]] const T* read_at(Clock clock, std::uint32_t row, std::uint32_t slot) {
    if (slot == kNone) return read(clock, row).data();
    if (is_watched_) watch_read(row);
    learner_.count_read();
    if (versioned_) note_lag(row);
    return state_of(row, slot);
  }
  void add_at(std::uint32_t row, std::uint32_t slot, std::span<const T> delta) {
    note_add(row, slot);
    add_to_sum(sum_to_add(row, slot), delta.data());
    if (T* own = own_copy(row, slot)) rule_.apply_fresh(own, delta.data());
  }
  void add_at(std::uint32_t row, std::uint32_t slot, std::uint32_t column, T delta) {
    note_add(row, slot);
    sum_to_add(row, slot)[column] += delta;
    if (T* own = own_copy(row, slot)) rule_.apply_fresh(own, column, delta);
  }
  const T* settled() const noexcept { return cache_.read(0); }
  const T* settled_unplanned(std::uint32_t row) { return may_have_own(row) ? make_own(row, kNone) : cache_.read(row); }
  std::uint32_t width() const noexcept { return width_; }
  bool fetches_ahead() const noexcept { return fetches_ahead_; }
  [[gnu::noinline]] const T* make_own(std::uint32_t row, std::uint32_t slot) { return state_of(row, slot); }
  [[gnu::noinline]] void begin_sum(std::uint32_t row, std::uint32_t slot) {
    note_own(row);
    records_.begin_sum(slot);
  }

  /// What was added in the clock under way: to planned rows, and to others.
  UpdateRecords<T>& records() noexcept { return records_; }
  const UpdateRecords<T>& records() const noexcept { return records_; }
  UpdateBatch<T>& unplanned() noexcept { return current_; }
  /// Settled: the worker has ended its clock; others' updates may be merged into its own from now on.
  void end_settled(Clock clock) {
    learner_.note_clock(records_.touched(UpdateRecords<T>::epoch_of(clock)).size(), current_.rows());
  }
  /// Settled: the updates have been applied, and the next clock begins.
  void begin_settled() {
    current_.clear();
    arrange();
  }
  /// Follows what was learned, between clocks: no update is under way.
  void follow(std::shared_ptr<const AccessSlots> plan) {
    ORRERY_CHECK(current_.empty());
    own_.clear();
    if (plan != nullptr && plan->is_whole() && !is_whole(records_.plan())) renumbered_since_ = clock_;
    learner_.follow(plan);
    lay_out(std::move(plan), prefers_side_by_side());
  }
  /// The worker has ended `clock`; it goes on adding these updates itself until every version has them.
  std::shared_ptr<HandedBatch<T>> hand_over(WorkerId worker, Clock clock, NodeId homes) {
    if (clock != clock_) begin(clock);
    auto batch = std::allocate_shared<HandedBatch<T>>(std::pmr::polymorphic_allocator<>(memory_), worker, clock,
                                                      take_updates(), homes, memory_, spare_);
    if (!batch->updates.empty()) pending_.push_back(batch);
    return batch;
  }
  ObservedStaleness observed() const {
    ObservedStaleness seen = lags_;
    if (!versioned_) seen.counts[0] = learner_.counts().reads;
    return seen;
  }

 private:
  static constexpr std::uint32_t kNone = TouchedRows::kNone;

  /// Between clocks, when nothing is in the records that is still needed.
  void lay_out(std::shared_ptr<const AccessSlots> plan, bool side_by_side) {
    records_.follow(std::move(plan), side_by_side);
    records_.begin(std::max<Clock>(clock_, 0));
    planned_since_ = clock_;
    learner_.arranged();
  }
  void arrange() {
    if (!learner_.has_seen_enough() || records_.plan() == nullptr) return;
    if (prefers_side_by_side() == records_.is_side_by_side()) {
      learner_.arranged();
    } else {
      lay_out(records_.plan(), !records_.is_side_by_side());
    }
  }
  bool prefers_side_by_side() const {
    return learner_.prefers_side_by_side(records_.is_side_by_side(), records_.record_bytes());
  }

  UpdateBatch<T> take_updates() {
    learner_.note_clock(records_.touched().size(), current_.rows());
    std::optional<UpdateBatch<T>> spare = spare_->take();
    UpdateBatch<T> updates = spare ? std::move(*spare) : UpdateBatch<T>(rule_.update_width(), memory_);
    if (records_.plan() == nullptr) {
      std::swap(updates, current_);
      return updates;
    }
    updates.follow(records_.plan());
    for (const std::uint32_t slot : records_.touched()) {
      if (const T* sum = records_.sum(slot)) updates.append(records_.plan()->row(slot), slot, sum);
    }
    for (std::size_t i = 0; i < current_.rows().size(); ++i) {
      updates.append(current_.rows()[i], kNone, current_.values(i));
    }
    current_.clear();
    return updates;
  }

  [[gnu::noinline, gnu::cold]] void begin(Clock clock) {
    clock_ = clock;
    own_.clear();
    own_values_.clear();
    if (versioned_) {  // else Table learns between clocks, for all workers together
      if (learner_.is_due()) {
        follow(learner_.extended());
      } else {
        arrange();
      }
      // acquire: pairs with the release where a batch is applied (Table); every version from now on holds it.
      while (!pending_.empty() && pending_.front()->applied.load(std::memory_order_acquire)) pending_.pop_front();
    }
    records_.begin(clock);
  }

  // No span that a unit may hold points into a sum, so the two do not overlap.
  void add_to_sum(T* __restrict sum, const T* __restrict delta) const {
    for (std::uint32_t d = 0; d < width_; ++d) sum[d] += delta[d];
  }

  void watch(const std::vector<bool>* readable, AccessRecorder* recorder) noexcept {
    readable_ = readable;
    recorder_ = recorder;
    is_watched_ = readable_ != nullptr || recorder_ != nullptr;
  }
  [[gnu::noinline]] void watch_read(std::uint32_t row) {
    check_readable(row);
    if (recorder_ != nullptr) recorder_->note(clock_, row, false);
  }

  /// The slot of a row (kNone: none) that is about to be added to in `clock`.
  std::uint32_t slot_to_add(Clock clock, std::uint32_t row) {
    if (clock != clock_) [[unlikely]]
      begin(clock);
    return records_.slot_of(row);
  }
  void note_add(std::uint32_t row, std::uint32_t slot) {
    learner_.count_add(slot);
    if (recorder_ != nullptr) [[unlikely]]
      recorder_->note(clock_, row, true);
    if (rule_.carries_seen()) [[unlikely]]
      note_seen(row, slot);
  }
  /// The first update of a clock to a row carries the gradients that the worker had seen in it.
  [[gnu::noinline]] void note_seen(std::uint32_t row, std::uint32_t slot) {
    if (sum_of_clock(row, slot) != nullptr) return;
    check_readable(row);
    const T* seen = rule_.gradients(state_of(row, slot));
    std::copy(seen, seen + width_, sum_to_add(row, slot) + width_);
  }

  static bool is_whole(const std::shared_ptr<const AccessSlots>& plan) { return plan != nullptr && plan->is_whole(); }

  // A row that this worker has never added to is as the cache has it: one bit says so.
  bool may_have_own(std::uint32_t row) const noexcept { return (may_have_own_[row / 64] >> (row % 64) & 1) != 0; }
  void note_own(std::uint32_t row) noexcept { may_have_own_[row / 64] |= std::uint64_t{1} << (row % 64); }
  const T* of_cache(std::uint32_t row) const {
    return versioned_ ? cache_.read_version(row).values() : cache_.read(row);
  }

  void check_readable(std::uint32_t row) const {
    if (readable_ == nullptr || (*readable_)[row]) return;
    throw Error(ErrorKind::internal, "a worker reads row " + std::to_string(row) +
                                         " of a table, which is not among those that its node said it will read");
  }

  void note_lag(std::uint32_t row) {
    const Clock lag = std::clamp<Clock>(clock_ - cache_.frontier(homes_.of(row)), 0, ObservedStaleness::kBuckets - 1);
    ++lags_.counts[static_cast<std::size_t>(lag)];
  }

  /// The state of a row as the worker may see it.
  const T* state_of(std::uint32_t row, std::uint32_t slot) {
    if (const T* own = own_copy(row, slot)) return own;
    return versioned_ ? of_version(row, slot) : of_settled(row, slot);
  }

  const T* of_settled(std::uint32_t row, std::uint32_t slot) {
    const T* base = cache_.read(row);
    const T* mine = sum_of_clock(row, slot);
    if (mine == nullptr) return base;
    T* own = make_own(row, slot, base);
    rule_.apply(own, mine);
    return own;
  }

  const T* of_version(std::uint32_t row, std::uint32_t slot) {
    const auto& version = cache_.read_version(row);
    T* own = nullptr;
    const auto lacks = [&](const T* update) {
      if (own == nullptr) own = make_own(row, slot, version.values());
      rule_.apply(own, update);
    };
    if (may_lack(slot)) {
      for (const auto& batch : pending_) {
        const std::uint32_t i =
            batch->clock < renumbered_since_ ? batch->updates.find(row) : batch->updates.find(row, slot);
        if (i == kNone) continue;
        // relaxed: if the version holds the batch, its acquire in read_version() has made the number visible; if it
        // does not, both 0 and a higher number say so.
        const std::uint64_t first = batch->first_version[i].load(std::memory_order_relaxed);
        if (first == 0 || first > version.number()) lacks(batch->updates.values(i));
      }
    }
    if (const T* mine = sum_of_clock(row, slot)) lacks(mine);
    return own != nullptr ? own : version.values();
  }

  /// May a batch that some version lacks hold the row? Not if the worker touched it last before all of those.
  bool may_lack(std::uint32_t slot) const {
    if (pending_.empty()) return false;
    const Clock oldest = pending_.front()->clock;
    return slot == kNone || oldest < planned_since_ || records_.touched_in(slot) >= UpdateRecords<T>::epoch_of(oldest);
  }

  /// What the worker added to the row in this clock, or null.
  const T* sum_of_clock(std::uint32_t row, std::uint32_t slot) const noexcept {
    if (slot != kNone) return records_.sum(slot);
    const std::uint32_t mine = current_.find(row);
    return mine == kNone ? nullptr : current_.values(mine);
  }

  /// The row with this worker's own updates on top, or null: it has none that the cache lacks.
  T* own_copy(std::uint32_t row, std::uint32_t slot) noexcept {
    if (slot != kNone) return records_.own(slot);
    const std::uint32_t own = own_.find(row);
    return own == kNone ? nullptr : own_values_[own];
  }

  T* make_own(std::uint32_t row, std::uint32_t slot, const T* base) {
    T* own = slot != kNone ? records_.make_own(slot) : make_unplanned(row);
    std::copy(base, base + rule_.state_width(), own);
    return own;
  }
  T* make_unplanned(std::uint32_t row) {
    const std::uint32_t n = own_.insert(row, kNone);
    if (n == own_chunks_.size() * kRowsOfChunk) own_chunks_.emplace_back(kRowsOfChunk * rule_.state_width());
    return own_values_.emplace_back(own_chunks_[n / kRowsOfChunk].data() + n % kRowsOfChunk * rule_.state_width());
  }

  /// Where the additions to a row add up in this clock.
  T* sum_to_add(std::uint32_t row, std::uint32_t slot) {
    if (slot == kNone) {
      note_own(row);
      return current_.at(row);
    }
    if (!records_.has_sum(slot)) begin_sum(row, slot);
    return records_.sum_to_add(slot);
  }

  static constexpr std::size_t kRowsOfChunk = 64;

  const DomainCache<T>& cache_;
  const RowRule<T> rule_;
  const std::uint32_t rows_, width_;
  const std::vector<bool>* readable_ = nullptr;
  const RowHomes& homes_;
  const bool versioned_, fetches_ahead_;
  std::pmr::memory_resource* const memory_;
  Clock clock_ = -1;
  std::pmr::vector<std::uint64_t> may_have_own_;  ///< a bit for each row
  AccessLearner learner_;
  AccessRecorder* recorder_ = nullptr;
  bool is_watched_ = false;     ///< one of the two is set: one test for each read instead of two
  UpdateRecords<T> records_;    ///< of planned rows
  Clock planned_since_ = 0;     ///< records know nothing of clocks before
  Clock renumbered_since_ = 0;  ///< rows had other slots in clocks before
  UpdateBatch<T> current_;      ///< of others, in this clock
  std::deque<std::shared_ptr<HandedBatch<T>>> pending_;  ///< own batches that some version may lack, oldest first
  const std::shared_ptr<SpareBatches<T>> spare_ = std::make_shared<SpareBatches<T>>();
  TouchedRows own_;                                   ///< unplanned rows as this worker sees them
  std::pmr::vector<T*> own_values_;                   ///< by position in own_
  std::pmr::vector<std::pmr::vector<T>> own_chunks_;  ///< kept over clocks; spans point into them
  ObservedStaleness lags_;
};

}  // namespace orrery
