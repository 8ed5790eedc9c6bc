// Learns which rows one worker adds to, and counts how well what was learned serves it (design section 6). The dynamic
// path notes rows that the plan lacks; between clocks, once enough accesses have missed to pay for it, the plan grows
// by them. A plan only grows, and what was found by slot before is found by the same slot after, until it has all rows.
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
  std::uint64_t given_up = 0;    ///< workers whose accesses do not repeat
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
      : table_rows_(rows), costs_(costs), is_walked_(is_walked), memory_(memory), missed_(memory) {}

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
    if (slot != kNone || !is_on_) return;
    ++misses_since_;
    ++counts_.misses;
  }

  /// The clock is over, in which so many rows of the plan were touched and the adds to these rows missed.
  void note_clock(std::size_t touched, std::span<const std::uint32_t> missed) {
    ++clocks_;
    ++clocks_since_;
    touched_since_ += touched + missed.size();
    if (is_on_) missed_.insert(missed_.end(), missed.begin(), missed.end());
  }
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

  /// Have so many adds missed since the plan was made that a longer one pays? It costs about as much as a quarter as
  /// many dynamic adds as it has rows.
  bool is_due() const noexcept { return pays(misses_since_, planned()); }
  static bool pays(std::uint64_t misses, std::uint64_t planned) { return misses > 0 && misses >= planned / 4; }
  std::uint64_t misses_since() const noexcept { return misses_since_; }
  std::uint32_t planned() const noexcept { return plan_ == nullptr ? 0 : plan_->size(); }
  /// A copy of the plan with the missed rows, in the order of their first touch, to be followed next; the plan itself
  /// when nothing missed; a plan of every row when that is cheaper than looking slots up (then slots change). Null when
  /// adds do not repeat: then nothing is learned any more.
  std::shared_ptr<const AccessSlots> extended();
  const std::shared_ptr<const AccessSlots>& plan() const noexcept { return plan_; }
  void follow(std::shared_ptr<const AccessSlots> plan);

  /// The rows of the plan in the order of slots, and those that have missed since.
  std::vector<std::uint32_t> known_rows() const;

  AccessCounts counts() const {
    AccessCounts all = counts_;
    all.rows = planned();
    all.replicated = plan_ != nullptr && plan_->is_whole() ? 1 : 0;
    return all;
  }

 private:
  static constexpr std::uint64_t kEnoughClocks = 8;
  static constexpr std::size_t kCacheLine = 64;

  bool repeats();
  bool replicates(std::uint32_t rows) const;
  std::shared_ptr<AccessSlots> everything() const;

  const std::uint32_t table_rows_;
  const AccessCosts costs_;
  const bool is_walked_;
  std::pmr::memory_resource* const memory_;
  bool is_on_ = true;
  std::shared_ptr<const AccessSlots> plan_;  ///< null: none yet, or given up
  std::pmr::vector<std::uint32_t> missed_;   ///< rows outside the plan, since it was made; each once a clock
  std::uint64_t misses_since_ = 0;
  std::uint64_t adds_before_ = 0;  ///< when the plan was made
  std::uint64_t along_ = 0;        ///< accesses that came along streams
  std::uint64_t clocks_ = 0;
  std::uint64_t clocks_since_ = 0, touched_since_ = 0;  ///< clocks, and rows of each, since they were arranged
  std::uint64_t adds_before_arranged_ = 0;
  unsigned poor_plans_ = 0;  ///< in a row, of which most adds missed
  AccessCounts counts_;
};

}  // namespace orrery
