// Learns which rows one worker adds to, and counts how well what was learned serves it (design section 6). The dynamic
// path notes rows that the plan lacks. What a first clock touched is planned at once; after that a plan grows between
// clocks, by all that is known, once enough of what it lacks has come again: rows that are new in an iteration of many
// clocks gain nothing from a plan before the next iteration. A plan only grows, and what was found by slot before is
// found by the same slot after, until it has all rows; one that serves nothing for long is put aside until then.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "engine/access_costs.h"
#include "engine/access_slots.h"

namespace orrery {

/// What is known of accesses to a table, over some workers.
struct AccessCounts {
  std::uint64_t reads = 0, adds = 0;
  std::uint64_t misses = 0;      ///< adds to rows outside the plan as it was then, the first clock's included
  std::uint64_t rows = 0;        ///< in plans of workers
  std::uint64_t extensions = 0;  ///< of plans, the first plans included
  std::uint64_t given_up = 0;    ///< workers whose accesses do not repeat, as far as is known
  std::uint64_t replicated = 0;  ///< workers with a record of every row, which need no look-up
  void add(const AccessCounts& other) {
    reads += other.reads;
    adds += other.adds;
    misses += other.misses;
    rows += other.rows;
    extensions += other.extensions;
    given_up += other.given_up;
    replicated += other.replicated;
  }
};

/// Belongs to the worker whose unit runs, and between clocks to whoever plans.
class AccessLearner {
 public:
  static constexpr std::uint32_t kNone = AccessSlots::kNone;

  /// For a table of `rows`. `is_walked`: records are looked at in the order of rows, needed or not, after every clock.
  /// `memory` must outlive it.
  AccessLearner(std::uint32_t rows, const AccessCosts& costs, bool is_walked, std::pmr::memory_resource* memory)
      : table_rows_(rows), costs_(costs), is_walked_(is_walked), memory_(memory) {}

  /// Without learning every access takes the dynamic path and nothing is noted. Before the first clock.
  void switch_off() { is_on_ = false; }

  void count_read() noexcept { ++counts_.reads; }
  /// Along a stream, without a look-up.
  void count_along(std::uint64_t reads, std::uint64_t adds) noexcept {
    counts_.reads += reads;
    counts_.adds += adds;
    along_ += reads + adds;
  }
  /// An add to a row with this slot in the plan; kNone: it has none.
  void count_add(std::uint32_t slot) noexcept {
    ++counts_.adds;
    if (slot == kNone && is_on_) ++counts_.misses;
  }

  /// The clock is over, in which so many rows of the plan were touched and the adds to these rows missed, each of which
  /// comes once.
  void note_clock(std::size_t touched, std::span<const std::uint32_t> missed);
  /// Had the values of rows better stand side by side (UpdateRecords)? `now`: do they, which is changed only for much;
  /// `record_bytes`: of a row with its values at its slot. They had, measured, if clocks touch few of the plan's rows,
  /// or touch a row about once and it takes more than a cache line: then the lines count. Else the further load of
  /// every access does.
  bool prefers_side_by_side(bool now, std::size_t record_bytes) const noexcept {
    if (touched_since_ == 0) return now;
    const std::uint64_t all = planned() * clocks_since_;
    const std::uint64_t adds = 4 * (counts_.adds - adds_before_arranged_);
    return 4 * touched_since_ < (now ? 3 : 2) * all ||
           (record_bytes > kCacheLine && adds < (now ? 12 : 8) * touched_since_);
  }
  /// Has that been seen for long enough to arrange them anew?
  bool has_seen_enough() const noexcept { return clocks_since_ >= kEnoughClocks; }
  /// From now on others count.
  void arranged() noexcept {
    clocks_since_ = touched_since_ = 0;
    adds_before_arranged_ = counts_.adds;
  }

  /// Rows, once for each clock, that a plan of all that is known would have served.
  std::uint64_t lacked() const noexcept { return lacked_; }
  /// In the plan, and outside.
  std::uint64_t known() const noexcept { return known_ == nullptr ? planned() : known_->size(); }
  /// Does a longer plan pay, when so many rows are known and so many were lacked? It costs about as much as a quarter
  /// as many dynamic adds as it has rows.
  static bool pays(std::uint64_t lacked, std::uint64_t known) { return lacked > 0 && lacked >= known / 4; }
  /// The plan has served next to nothing for many clocks, in which nothing came again.
  bool is_in_vain() const noexcept { return plan_ != nullptr && strange_clocks_ >= kManyStrange; }
  /// Is it time to follow another plan?
  bool is_due() const noexcept { return pays(lacked_, known()) || is_in_vain(); }
  std::uint32_t planned() const noexcept { return plan_ == nullptr ? 0 : plan_->size(); }
  /// What to follow next: the plan and all rows that are known beside it, in the order of their first touch, the plan
  /// itself when there are none; a plan of every row when that is cheaper than looking slots up (then slots change).
  /// Null when the plan is in vain: nothing is followed until enough rows come again.
  std::shared_ptr<const AccessSlots> extended();
  const std::shared_ptr<const AccessSlots>& plan() const noexcept { return plan_; }
  void follow(std::shared_ptr<const AccessSlots> plan);

  /// The rows of the plan in the order of slots, and those that have missed since.
  std::vector<std::uint32_t> known_rows() const;

  AccessCounts counts() const {
    AccessCounts all = counts_;
    all.rows = planned();
    all.replicated = plan_ != nullptr && plan_->is_whole() ? 1 : 0;
    all.given_up = plan_ == nullptr && (strange_clocks_ >= kManyStrange || !is_on_) && counts_.misses > 0 ? 1 : 0;
    return all;
  }

 private:
  static constexpr std::uint64_t kEnoughClocks = 8;
  static constexpr unsigned kManyStrange = 12;
  static constexpr std::size_t kCacheLine = 64;

  bool replicates(std::uint32_t rows) const;
  std::shared_ptr<AccessSlots> everything() const;

  const std::uint32_t table_rows_;
  const AccessCosts costs_;
  const bool is_walked_;
  std::pmr::memory_resource* const memory_;
  bool is_on_ = true;
  std::shared_ptr<const AccessSlots> plan_;  ///< null: none yet, or put aside
  std::shared_ptr<AccessSlots> known_;       ///< the plan and what missed, if that is more
  std::uint64_t lacked_ = 0;                 ///< since the plan was made
  unsigned strange_clocks_ = 0;              ///< in a row, of which most rows were never seen before
  std::uint64_t along_ = 0;                  ///< accesses that came along streams
  std::uint64_t clocks_ = 0;
  std::uint64_t clocks_since_ = 0, touched_since_ = 0;  ///< clocks, and rows of each, since they were arranged
  std::uint64_t adds_before_arranged_ = 0;
  AccessCounts counts_;
};

}  // namespace orrery
