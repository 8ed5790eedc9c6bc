// What one worker adds to one table in one clock: the unit in which updates are handed over, merged and made visible
// (design section 5). Sparse in rows, dense in a row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/message.h"
#include "engine/row_index.h"
#include "engine/wire.h"

namespace orrery {

/// Not thread-safe; handed from one owner to the next.
template <class T>
class UpdateBatch {
 public:
  explicit UpdateBatch(std::uint32_t width) : width_(width) {}

  bool empty() const noexcept { return rows_.empty(); }
  /// The rows that were added to, in the order of their first touch.
  std::span<const std::uint32_t> rows() const noexcept { return rows_; }
  /// The sum for rows()[i]; `width` values.
  const T* values(std::size_t i) const noexcept { return values_.data() + i * width_; }
  /// The position of `row` in rows(), or RowIndex::kNone.
  std::uint32_t find(std::uint32_t row) const noexcept { return index_.find(row); }

  /// The sum for `row`, zero when it is new. Valid until the next call.
  T* at(std::uint32_t row) {
    std::uint32_t position = index_.find(row);
    if (position == RowIndex::kNone) {
      position = static_cast<std::uint32_t>(rows_.size());
      index_.insert(row, position);
      rows_.push_back(row);
      values_.resize(values_.size() + width_, T{});
    }
    return values_.data() + std::size_t{position} * width_;
  }

  /// Adds what stands to the right of this batch in the reduction tree. Rows that only one side has keep their bits.
  void merge(const UpdateBatch& right) {
    for (std::size_t i = 0; i < right.rows_.size(); ++i) {
      const bool is_new = find(right.rows_[i]) == RowIndex::kNone;
      T* mine = at(right.rows_[i]);
      const T* theirs = right.values(i);
      for (std::uint32_t d = 0; d < width_; ++d) mine[d] = is_new ? theirs[d] : mine[d] + theirs[d];
    }
  }

  void clear() noexcept {
    index_.clear();
    rows_.clear();
    values_.clear();
  }

  /// Appends what falls into rows [first, last) to `out`; unpack() reads it back.
  void pack(std::uint32_t first, std::uint32_t last, Bytes& out) const {
    const auto falls_in = [=](std::uint32_t row) { return first <= row && row < last; };
    put(out, static_cast<std::uint64_t>(std::count_if(rows_.begin(), rows_.end(), falls_in)));
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!falls_in(rows_[i])) continue;
      put(out, rows_[i]);
      put_all(out, std::span(values(i), width_));
    }
  }
  void unpack(WireReader& in) {
    for (auto left = in.take<std::uint64_t>(); left > 0; --left) {
      const auto row = in.take<std::uint32_t>();
      in.take_all(std::span(at(row), width_));
    }
  }

 private:
  std::uint32_t width_;
  RowIndex index_;
  std::vector<std::uint32_t> rows_;
  std::vector<T> values_;
};

}  // namespace orrery
