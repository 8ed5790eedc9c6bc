// What one worker accesses of a table, in order (design section 6), for a profile: which rows it reads and adds to over
// a range of clocks. Off the hot path unless a profile asks (TableStore::record).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/types.h"

namespace orrery {

/// Which accesses are recorded: those of clocks in [first, last), until `most_bytes` are full.
struct RecordedClocks {
  Clock first = 0, last = 0;
  std::size_t most_bytes = 0;  ///< of all workers and tables of this node together; half as much again while it grows
};

/// An access takes four bytes: its row, and one bit that says whether it adds. Belongs to the worker whose unit runs;
/// what was recorded is read between runs.
class AccessRecorder {
 public:
  /// Rows of tables that can be recorded.
  static constexpr std::uint32_t kMostRows = std::uint32_t{1} << 31;
  static constexpr std::size_t kBytesOfAccess = sizeof(std::uint32_t);

  struct Access {
    std::uint32_t row;
    bool adds;
  };
  /// The accesses of one clock.
  struct ClockRecord {
    Clock clock;
    std::size_t first, count;
  };

  /// Of clocks in [first, last), at most so many accesses.
  AccessRecorder(Clock first, Clock last, std::size_t most) : first_(first), last_(last), most_(most) {}

  void note(Clock clock, std::uint32_t row, bool adds) {
    if (clock < first_ || clock >= last_) return;
    if (accesses_.size() == most_) {
      ++dropped_;
      return;
    }
    if (clocks_.empty() || clocks_.back().clock != clock) clocks_.push_back({clock, accesses_.size(), 0});
    accesses_.push_back(row << 1 | static_cast<std::uint32_t>(adds));
    ++clocks_.back().count;
  }

  std::size_t size() const noexcept { return accesses_.size(); }
  Access operator[](std::size_t i) const noexcept { return {accesses_[i] >> 1, (accesses_[i] & 1) != 0}; }
  /// In order. A clock without an access is not there.
  std::span<const ClockRecord> clocks() const noexcept { return clocks_; }
  /// Accesses that came after the memory was full.
  std::uint64_t dropped() const noexcept { return dropped_; }

 private:
  const Clock first_, last_;
  const std::size_t most_;
  std::vector<std::uint32_t> accesses_;
  std::vector<ClockRecord> clocks_;
  std::uint64_t dropped_ = 0;
};

}  // namespace orrery
