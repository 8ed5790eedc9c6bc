// What access plans are measured against: a parameter cache as IterStore (Cui et al., SoCC 2014) describes its dynamic
// one and Bösen's process cache: rows in a hash map, each with a mutex; a reader copies the row under it; updates
// gather in a hash map of the worker and go into the rows, under their mutexes, when its clock is over.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/types.h"

namespace orrery::bench {

/// `deferred`: updates of a clock go in at settle(), when nobody reads (staleness 0); else when their worker ends.
template <class T>
class HashedTable {
 public:
  HashedTable(std::uint32_t width, WorkerId workers, bool deferred)
      : width_(width), deferred_(deferred), workers_(workers) {}

  void set(std::uint32_t row, std::span<const T> values) {
    std::copy(values.begin(), values.end(), row_of(row).values.begin());
  }
  /// Valid until the worker has read twice more.
  std::span<const T> read(WorkerId worker, std::uint32_t row) {
    Worker& own = workers_[worker];
    std::vector<T>& copy = own.copies[own.reads++ % own.copies.size()];
    Row& shared = row_of(row);
    {
      const std::lock_guard lock(shared.mutex);
      copy.assign(shared.values.begin(), shared.values.end());
    }
    if (const auto found = own.updates.find(row); found != own.updates.end()) {
      for (std::uint32_t d = 0; d < width_; ++d) copy[d] += found->second[d];
    }
    return copy;
  }
  void add(WorkerId worker, std::uint32_t row, std::span<const T> delta) {
    std::vector<T>& sum = update_of(worker, row);
    for (std::uint32_t d = 0; d < width_; ++d) sum[d] += delta[d];
  }
  void add(WorkerId worker, std::uint32_t row, std::uint32_t column, T delta) {
    update_of(worker, row)[column] += delta;
  }

  void worker_ended(WorkerId worker) {
    if (!deferred_) flush(worker);
  }
  void settle() {
    if (!deferred_) return;
    for (WorkerId worker = 0; worker < workers_.size(); ++worker) flush(worker);
  }
  std::span<const T> row(std::uint32_t row) { return row_of(row).values; }

 private:
  struct Row {
    explicit Row(std::uint32_t width) : values(width, T{}) {}
    std::mutex mutex;
    std::vector<T> values;
  };
  struct alignas(64) Worker {
    std::unordered_map<std::uint32_t, std::vector<T>> updates;
    std::array<std::vector<T>, 2> copies;
    std::size_t reads = 0;
  };

  Row& row_of(std::uint32_t row) {
    {
      const std::shared_lock lock(index_mutex_);
      if (const auto found = rows_.find(row); found != rows_.end()) return *found->second;
    }
    const std::unique_lock lock(index_mutex_);
    std::unique_ptr<Row>& made = rows_[row];
    if (made == nullptr) made = std::make_unique<Row>(width_);
    return *made;
  }
  std::vector<T>& update_of(WorkerId worker, std::uint32_t row) {
    std::vector<T>& sum = workers_[worker].updates[row];
    sum.resize(width_);
    return sum;
  }
  void flush(WorkerId worker) {
    for (const auto& [row, sum] : workers_[worker].updates) {
      Row& shared = row_of(row);
      const std::lock_guard lock(shared.mutex);
      for (std::uint32_t d = 0; d < width_; ++d) shared.values[d] += sum[d];
    }
    workers_[worker].updates.clear();
  }

  const std::uint32_t width_;
  const bool deferred_;
  std::shared_mutex index_mutex_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Row>> rows_;
  std::vector<Worker> workers_;
};

}  // namespace orrery::bench
