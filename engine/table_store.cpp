#include "engine/table_store.h"

#include "engine/error.h"

namespace orrery {

void TableStore::check(const TableSpec& spec) const {
  if (spec.rows == 0 || spec.width == 0 || spec.rows == RowIndex::kNone) {
    throw usage_error("table " + orrery::quoted(spec.name) + ": expected rows and values, got " +
                      std::to_string(spec.rows) + " rows of " + std::to_string(spec.width));
  }
  if (spec.staleness && (*spec.staleness < 0 || *spec.staleness > engine_.clock_bound())) {
    throw usage_error("table " + orrery::quoted(spec.name) + ": expected a staleness of 0 to " +
                      std::to_string(engine_.clock_bound()) + ", the engine's, got " + std::to_string(*spec.staleness));
  }
}

ObservedStaleness TableStore::observed() const {
  ObservedStaleness all;
  for (const auto& table : tables_) all.add(table->observed());
  return all;
}

void TableStore::report(Evaluation& evaluation) const {
  const ObservedStaleness seen = observed();
  constexpr auto kLast = static_cast<Clock>(ObservedStaleness::kBuckets) - 1;
  Clock last = std::min(bound(), kLast);
  while (bound() > kLast && last > 0 && seen.counts[static_cast<std::size_t>(last)] == 0) --last;
  for (Clock k = 0; k <= last; ++k) {
    evaluation.extra.emplace_back("reads_staleness_" + std::to_string(k),
                                  static_cast<double>(seen.counts[static_cast<std::size_t>(k)]));
  }
}

void TableStore::worker_ended(WorkerId worker, Clock clock) {
  for (const auto& table : tables_) table->worker_ended(worker, clock);
}

Bytes TableStore::pack(Clock clock) {
  Bytes out;
  if (map_.nodes() == 1) return out;
  for (const auto& table : tables_) table->pack(clock, out);
  return out;
}

void TableStore::unpack(NodeId from, Clock clock, std::span<const std::byte> bytes) {
  for (const auto& table : tables_) table->unpack(from, clock, bytes);
}

void TableStore::clocks_moved(const ClockTree& clocks) {
  for (const auto& table : tables_) table->clocks_moved(clocks);
}

void TableStore::commit(Clock clock) {
  for (const auto& table : tables_) table->commit(clock);
}

std::vector<StateSection> TableStore::save() const {
  std::vector<StateSection> sections;
  for (const auto& table : tables_) sections.push_back({"table " + table->spec().name, table->save()});
  return sections;
}

void TableStore::load(const std::vector<StateSection>& sections) {
  for (const auto& table : tables_) {
    const std::string name = "table " + table->spec().name;
    const auto found =
        std::find_if(sections.begin(), sections.end(), [&](const StateSection& s) { return s.name == name; });
    if (found == sections.end()) throw Error(ErrorKind::data, "the checkpoint has no section '" + name + "'");
    if (!table->load(found->bytes)) {
      throw Error(ErrorKind::data, "section '" + name + "' has " + std::to_string(found->bytes.size()) +
                                       " bytes, which is not this table's size");
    }
  }
}

}  // namespace orrery
