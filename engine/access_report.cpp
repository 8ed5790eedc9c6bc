#include "engine/access_report.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>

namespace orrery {
namespace {

constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();

/// What is known of a row, while workers are gone through in order.
struct RowUse {
  std::uint64_t reads = 0, adds = 0;
  std::uint32_t workers = 0, writers = 0, domains = 0;
  std::uint32_t last_worker = kNobody, last_writer = kNobody, last_domain = kNobody;

  void touch(std::uint32_t worker, DomainId domain, bool is_add) {
    ++(is_add ? adds : reads);
    workers += last_worker != worker;
    domains += last_domain != domain;
    last_worker = worker;
    last_domain = domain;
    if (!is_add) return;
    writers += last_writer != worker;
    last_writer = worker;
  }
  RowClass kind() const {
    return writers == 0 ? RowClass::only_read : writers == 1 ? RowClass::one_writer : RowClass::several_writers;
  }
};

DomainId domain_of(const WorkerMap& map, std::size_t worker) {
  return map.domain_of(map.first_worker(map.this_node()) + static_cast<WorkerId>(worker));
}

std::vector<RowUse> uses_of_rows(const RecordedTable& table, const WorkerMap& map) {
  std::vector<RowUse> uses(table.rows);
  for (std::uint32_t w = 0; w < table.workers.size(); ++w) {
    const AccessRecorder& record = *table.workers[w];
    const DomainId domain = domain_of(map, w);
    for (std::size_t i = 0; i < record.size(); ++i) uses[record[i].row].touch(w, domain, record[i].adds);
  }
  return uses;
}

void add_row(AccessSum& sum, const RowUse& use) {
  ++sum.rows;
  sum.reads += use.reads;
  sum.adds += use.adds;
}

AccessSum sum_of(const AccessRecorder& record, std::vector<std::uint32_t>& last_worker, std::uint32_t worker) {
  AccessSum sum;
  for (std::size_t i = 0; i < record.size(); ++i) {
    const AccessRecorder::Access access = record[i];
    ++(access.adds ? sum.adds : sum.reads);
    sum.rows += last_worker[access.row] != worker;
    last_worker[access.row] = worker;
  }
  return sum;
}

std::vector<HotRow> hottest(const std::vector<RowUse>& uses, std::size_t count) {
  std::vector<std::uint32_t> rows;
  for (std::uint32_t row = 0; row < uses.size(); ++row) {
    if (uses[row].workers > 0) rows.push_back(row);
  }
  const auto accesses = [&](std::uint32_t row) { return uses[row].reads + uses[row].adds; };
  count = std::min(count, rows.size());
  std::partial_sort(
      rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count), rows.end(),
      [&](std::uint32_t a, std::uint32_t b) { return accesses(a) != accesses(b) ? accesses(a) > accesses(b) : a < b; });
  std::vector<HotRow> hot;
  for (std::size_t i = 0; i < count; ++i) {
    const RowUse& use = uses[rows[i]];
    hot.push_back({rows[i], use.reads, use.adds, use.workers, use.writers, use.domains});
  }
  return hot;
}

/// Calls visit(access, position) for the accesses of clocks in [first, last).
template <class Visit>
void for_clocks(const AccessRecorder& record, Clock first, Clock last, Visit&& visit) {
  std::size_t position = 0;
  for (const AccessRecorder::ClockRecord& clock : record.clocks()) {
    if (clock.clock < first || clock.clock >= last) continue;
    for (std::size_t i = 0; i < clock.count; ++i) visit(record[clock.first + i], position++);
  }
}

/// Marks at positions, and how many there are behind one (Fenwick 1994).
class Marks {
 public:
  explicit Marks(std::size_t size) : sums_(size + 1, 0) {}
  void set(std::size_t position, int by) {
    all_ += by;
    for (std::size_t i = position + 1; i < sums_.size(); i += i & (~i + 1)) sums_[i] += by;
  }
  std::uint64_t after(std::size_t position) const {
    int up_to = 0;
    for (std::size_t i = position + 1; i > 0; i &= i - 1) up_to += sums_[i];
    return static_cast<std::uint64_t>(all_ - up_to);
  }

 private:
  std::vector<int> sums_;
  int all_ = 0;
};

void add_reuse(const AccessRecorder& record, std::size_t count, std::vector<std::uint32_t>& last,
               std::span<const std::uint64_t> capacities, Reuse& reuse) {
  Marks latest(count);  // positions at which some row was touched last
  std::fill(last.begin(), last.end(), kNobody);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t& before = last[record[i].row];
    if (before == kNobody) {
      ++reuse.first_touches;
    } else {
      const std::uint64_t distance = latest.after(before);
      const auto bucket = static_cast<std::size_t>(std::bit_width(distance));
      if (reuse.by_log2.size() <= bucket) reuse.by_log2.resize(bucket + 1, 0);
      ++reuse.by_log2[bucket];
      for (std::size_t c = 0; c < capacities.size(); ++c) reuse.served_by[c] += distance < capacities[c];
      latest.set(before, -1);
    }
    latest.set(i, 1);
    before = static_cast<std::uint32_t>(i);
  }
  reuse.accesses += count;
}

/// The first worker of the largest subtree of the tree over `workers` that holds `worker` and lies in [first, last).
std::uint32_t subtree_of(std::uint32_t worker, std::uint32_t first, std::uint32_t last, std::uint32_t workers) {
  std::uint32_t begin = worker;
  for (std::uint32_t size = 2; size / 2 < workers; size *= 2) {
    const std::uint32_t parent = worker / size * size;
    if (parent < first || std::min(parent + size, workers) > last) break;
    begin = parent;
  }
  return begin;
}

/// Who adds to a row in one clock, while workers are gone through in order.
struct RowWritersOfClock {
  DomainId first_domain = kNoDomain;
  std::uint32_t last_worker = kNobody, last_subtree = kNobody;
  std::uint32_t writers = 0, elsewhere = 0, subtrees_elsewhere = 0;

  void add(std::uint32_t worker, DomainId domain, std::uint32_t subtree) {
    if (last_worker == worker) return;
    last_worker = worker;
    ++writers;
    if (first_domain == kNoDomain) first_domain = domain;
    if (domain == first_domain) return;
    ++elsewhere;
    subtrees_elsewhere += last_subtree != subtree;
    last_subtree = subtree;
  }
};

std::vector<std::uint32_t> subtrees(const RecordedTable& table, const WorkerMap& map) {
  const WorkerId start = map.first_worker(map.this_node());
  const auto count = static_cast<std::uint32_t>(table.workers.size());
  std::vector<std::uint32_t> found(count);
  for (std::uint32_t w = 0; w < count; ++w) {
    std::uint32_t first = w, last = w + 1;
    while (first > 0 && domain_of(map, first - 1) == domain_of(map, w)) --first;
    while (last < count && domain_of(map, last) == domain_of(map, w)) ++last;
    found[w] = subtree_of(start + w, start + first, start + last, map.workers());
  }
  return found;
}

}  // namespace

TableUse use_of(const RecordedTable& table, const WorkerMap& map, std::size_t hot_rows) {
  const std::vector<RowUse> uses = uses_of_rows(table, map);
  TableUse out;
  out.by_worker_count.resize(table.workers.size() + 1);
  out.by_domain_count.resize(map.domains() + std::size_t{1});
  for (const RowUse& use : uses) {
    add_row(out.by_worker_count[use.workers], use);
    add_row(out.by_domain_count[use.domains], use);
    if (use.workers == 0) continue;
    const auto kind = static_cast<std::size_t>(use.kind());
    add_row(out.all, use);
    add_row(out.by_class[kind], use);
    out.slots[kind] += use.writers;
  }
  std::vector<std::uint32_t> last_worker(table.rows, kNobody);
  for (std::uint32_t w = 0; w < table.workers.size(); ++w) {
    out.by_worker.push_back(sum_of(*table.workers[w], last_worker, w));
  }
  out.hot = hottest(uses, hot_rows);
  return out;
}

Repetition repetition_of(const RecordedTable& table, Clock start, Clock clocks, Clock iteration) {
  Repetition out;
  std::vector<std::uint8_t> kinds(table.rows);  // a bit for a read, one for an add
  for (const AccessRecorder* record : table.workers) {
    std::fill(kinds.begin(), kinds.end(), std::uint8_t{0});
    std::vector<AccessRecorder::Access> order;
    for_clocks(*record, start, start + clocks, [&](const AccessRecorder::Access& access, std::size_t) {
      kinds[access.row] |= access.adds ? 2 : 1;
      order.push_back(access);
    });
    const Clock first = start + iteration * clocks;
    for_clocks(*record, first, first + clocks, [&](const AccessRecorder::Access& access, std::size_t at) {
      ++out.accesses;
      out.known += (kinds[access.row] & (access.adds ? 2 : 1)) != 0;
      out.same_place += at < order.size() && order[at].row == access.row && order[at].adds == access.adds;
    });
  }
  return out;
}

Reuse reuse_of(const RecordedTable& table, std::span<const std::uint64_t> capacities, std::size_t most) {
  Reuse out;
  out.served_by.assign(capacities.size(), 0);
  std::vector<std::uint32_t> last(table.rows);
  const std::size_t each = most / std::max<std::size_t>(1, table.workers.size());
  for (const AccessRecorder* record : table.workers) {
    out.recorded += record->size();
    add_reuse(*record, std::min(record->size(), each), last, capacities, out);
  }
  return out;
}

std::vector<CrossDomain> cross_domain(const RecordedTable& table, const WorkerMap& map, bool versioned) {
  const std::vector<RowUse> uses = uses_of_rows(table, map);
  const std::vector<std::uint32_t> subtree = subtrees(table, map);
  std::map<Clock, std::vector<std::pair<std::uint32_t, const AccessRecorder::ClockRecord*>>> clocks;
  for (std::uint32_t w = 0; w < table.workers.size(); ++w) {
    for (const AccessRecorder::ClockRecord& clock : table.workers[w]->clocks())
      clocks[clock.clock].push_back({w, &clock});
  }
  std::vector<CrossDomain> out;
  for (const auto& [clock, parts] : clocks) {
    std::vector<RowWritersOfClock> rows(table.rows);
    for (const auto& [w, part] : parts) {
      const DomainId domain = domain_of(map, w);
      for (std::size_t i = part->first; i < part->first + part->count; ++i) {
        const AccessRecorder::Access access = (*table.workers[w])[i];
        if (access.adds) rows[access.row].add(w, domain, subtree[w]);
      }
    }
    CrossDomain& sum = out.emplace_back(CrossDomain{.clock = clock});
    for (std::uint32_t row = 0; row < table.rows; ++row) {
      const RowWritersOfClock& of = rows[row];
      if (of.writers == 0) continue;
      ++sum.updates;
      sum.moved += versioned ? std::uint64_t{of.writers} * (map.domains() - 1) : of.elsewhere + map.domains() - 1;
      sum.least += of.subtrees_elsewhere + uses[row].domains - 1;
    }
  }
  return out;
}

}  // namespace orrery
