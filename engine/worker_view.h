// A table as one worker sees it: the rows of its domain's cache with its own updates on top (design section 5, rule 4).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/assert.h"
#include "engine/domain_cache.h"
#include "engine/error.h"
#include "engine/row_homes.h"
#include "engine/row_index.h"
#include "engine/table_base.h"
#include "engine/types.h"
#include "engine/update_batch.h"
#include "engine/update_rule.h"

namespace orrery {

/// A worker's updates of one clock on their way to the caches.
template <class T>
struct HandedBatch {
  HandedBatch(WorkerId w, Clock c, UpdateBatch<T> u, NodeId homes)
      : worker(w),
        clock(c),
        updates(std::move(u)),
        homes_without(homes),
        first_version(std::make_unique<std::atomic<std::uint64_t>[]>(updates.rows().size())) {}

  const WorkerId worker;
  const Clock clock;
  const UpdateBatch<T> updates;
  NodeId homes_without;  ///< homes in whose rows, as they stand here, it is not; the processor's
  /// For each row of `updates`: the number of the version, in the worker's own domain, that was the first to hold it;
  /// 0 before. So a worker knows which of its own updates a version lacks.
  const std::unique_ptr<std::atomic<std::uint64_t>[]> first_version;
  std::atomic<bool> applied{false};  ///< every version from now on holds it
};

/// Everything that reading and adding touch lies here or in the cache, so both are in the worker's domain. Belongs to
/// the worker whose unit runs; units of one worker do not overlap.
template <class T>
class WorkerView {
 public:
  /// The cache must outlive it. `versioned`: rows are replaced while units run.
  WorkerView(const DomainCache<T>& cache, const RowRule<T>& rule, const TableSpec& spec, const RowHomes& homes,
             bool versioned)
      : cache_(cache),
        rule_(rule),
        rows_(spec.rows),
        width_(spec.width),
        homes_(homes),
        versioned_(versioned),
        current_(rule.update_width()) {}

  /// Rows that may be read, by row; null: all. Before the first clock; must outlive the view.
  void set_readable(const std::vector<bool>* readable) noexcept { readable_ = readable; }

  /// See Table::read() and add(); `clock` is the unit's.
  std::span<const T> read(Clock clock, std::uint32_t row) {
    begin(clock);
    check_readable(row);
    note_lag(row);
    return {state_of(row), width_};
  }
  void add(Clock clock, std::uint32_t row, std::span<const T> delta) {
    ORRERY_HEAVY_CHECK(row < rows_ && delta.size() == width_);
    begin(clock);
    T* sum = update_of(row);
    for (std::uint32_t d = 0; d < width_; ++d) sum[d] += delta[d];
    if (const std::uint32_t own = own_index_.find(row); own != RowIndex::kNone) {
      rule_.apply_fresh(own_rows_[own], delta.data());
    }
  }
  void add(Clock clock, std::uint32_t row, std::uint32_t column, T delta) {
    ORRERY_HEAVY_CHECK(row < rows_ && column < width_);
    begin(clock);
    update_of(row)[column] += delta;
    if (const std::uint32_t own = own_index_.find(row); own != RowIndex::kNone) {
      rule_.apply_fresh(own_rows_[own], column, delta);
    }
  }

  /// The updates of the clock under way.
  UpdateBatch<T>& current() noexcept { return current_; }
  /// The updates have been applied, and the next clock begins. Where there are several domains the batch may have grown
  /// on another one's thread, which gave it that domain's memory: then the next one is new.
  void begin_settled(bool several_domains) {
    if (several_domains) {
      current_ = UpdateBatch<T>(rule_.update_width());
    } else {
      current_.clear();
    }
  }
  /// The worker has ended `clock`; it goes on adding these updates itself until every version has them.
  std::shared_ptr<HandedBatch<T>> hand_over(WorkerId worker, Clock clock, NodeId homes) {
    auto batch = std::make_shared<HandedBatch<T>>(worker, clock,
                                                  std::exchange(current_, UpdateBatch<T>(rule_.update_width())), homes);
    if (!batch->updates.empty()) pending_.push_back(batch);
    return batch;
  }
  const ObservedStaleness& lags() const noexcept { return lags_; }

 private:
  void begin(Clock clock) {
    if (clock_ == clock) return;
    clock_ = clock;
    own_index_.clear();
    own_rows_.clear();
    // acquire: pairs with the release where a batch is applied (Table); every version from now on holds it.
    while (!pending_.empty() && pending_.front()->applied.load(std::memory_order_acquire)) pending_.pop_front();
  }

  void check_readable(std::uint32_t row) const {
    ORRERY_HEAVY_CHECK(row < rows_);
    if (readable_ == nullptr || (*readable_)[row]) return;
    throw Error(ErrorKind::internal, "a worker reads row " + std::to_string(row) +
                                         " of a table, which is not among those that its node said it will read");
  }

  void note_lag(std::uint32_t row) {
    const Clock frontier = versioned_ ? cache_.frontier(homes_.of(row)) : clock_;
    const Clock lag = std::clamp<Clock>(clock_ - frontier, 0, ObservedStaleness::kBuckets - 1);
    ++lags_.counts[static_cast<std::size_t>(lag)];
  }

  /// The state of a row as the worker may see it.
  const T* state_of(std::uint32_t row) {
    if (const std::uint32_t own = own_index_.find(row); own != RowIndex::kNone) return own_rows_[own];
    return versioned_ ? of_version(row) : of_settled(row);
  }

  const T* of_settled(std::uint32_t row) {
    const T* base = cache_.read(row);
    const std::uint32_t mine = current_.find(row);
    if (mine == RowIndex::kNone) return base;
    T* own = own_row(row, base);
    rule_.apply(own, current_.values(mine));
    return own;
  }

  const T* of_version(std::uint32_t row) {
    const auto& version = cache_.read_version(row);
    T* own = nullptr;
    const auto lacks = [&](const T* update) {
      if (own == nullptr) own = own_row(row, version.values);
      rule_.apply(own, update);
    };
    for (const auto& batch : pending_) {
      const std::uint32_t i = batch->updates.find(row);
      if (i == RowIndex::kNone) continue;
      // relaxed: if the version holds the batch, its acquire in read_version() has made the number visible; if it does
      // not, both 0 and a higher number say so.
      const std::uint64_t first = batch->first_version[i].load(std::memory_order_relaxed);
      if (first == 0 || first > version.number) lacks(batch->updates.values(i));
    }
    if (const std::uint32_t mine = current_.find(row); mine != RowIndex::kNone) lacks(current_.values(mine));
    return own != nullptr ? own : version.values;
  }

  T* own_row(std::uint32_t row, const T* base) {
    const std::size_t n = own_rows_.size();
    if (n == own_memory_.size()) own_memory_.push_back(std::make_unique<T[]>(rule_.state_width()));
    T* own = own_memory_[n].get();
    std::copy(base, base + rule_.state_width(), own);
    own_index_.insert(row, static_cast<std::uint32_t>(n));
    own_rows_.push_back(own);
    return own;
  }

  /// Where the additions to a row add up in this clock.
  T* update_of(std::uint32_t row) {
    if (!rule_.carries_seen() || current_.find(row) != RowIndex::kNone) return current_.at(row);
    check_readable(row);
    const T* seen = rule_.gradients(state_of(row));
    T* update = current_.at(row);
    std::copy(seen, seen + width_, update + width_);
    return update;
  }

  const DomainCache<T>& cache_;
  const RowRule<T> rule_;
  const std::uint32_t rows_, width_;
  const std::vector<bool>* readable_ = nullptr;
  const RowHomes homes_;
  const bool versioned_;
  Clock clock_ = -1;
  UpdateBatch<T> current_;
  std::deque<std::shared_ptr<HandedBatch<T>>> pending_;  ///< own batches that some version may lack, oldest first
  RowIndex own_index_;                                   ///< rows as this worker sees them because of its own updates
  std::vector<T*> own_rows_;
  std::vector<std::unique_ptr<T[]>> own_memory_;  ///< kept over clocks; spans point into it
  ObservedStaleness lags_;
};

}  // namespace orrery
