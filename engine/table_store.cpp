#include "engine/table_store.h"

#include <string_view>

#include "engine/error.h"

namespace orrery {

void TableStore::check(const TableSpec& spec) const {
  if (spec.rows == 0 || spec.width == 0 || spec.rows == RowIndex::kNone) {
    throw usage_error("table " + orrery::quoted(spec.name) + ": expected rows and values, got " +
                      std::to_string(spec.rows) + " rows of " + std::to_string(spec.width));
  }
  // It names a section of checkpoints.
  if (spec.name.empty() || spec.name.find_first_of(" \t\n") != std::string::npos) {
    throw usage_error("expected a table name without blanks, got " + orrery::quoted(spec.name));
  }
  if (spec.rule.kind == UpdateRule::Kind::adaptive_revision && !(spec.rule.rate > 0)) {
    throw usage_error("table " + orrery::quoted(spec.name) + ": expected a rate above 0, got " +
                      std::to_string(spec.rule.rate));
  }
  if (spec.staleness && (*spec.staleness < 0 || *spec.staleness > engine_.clock_bound())) {
    throw usage_error("table " + orrery::quoted(spec.name) + ": expected a staleness of 0 to " +
                      std::to_string(engine_.clock_bound()) + ", the engine's, got " + std::to_string(*spec.staleness));
  }
}

void TableStore::check_whole_numbers(const TableSpec& spec) {
  if (spec.rule.kind == UpdateRule::Kind::add) return;
  throw usage_error("table " + orrery::quoted(spec.name) + ": adaptive steps need float or double, got whole numbers");
}

RowDelivery TableStore::delivery() const {
  return engine_.options().consistency == Consistency::ssp ? RowDelivery::pull : RowDelivery::push;
}

void TableStore::record(const RecordedClocks& clocks) {
  RecordedClocks of_table = clocks;
  of_table.most_bytes = tables_.empty() ? 0 : clocks.most_bytes / tables_.size();
  for (const auto& table : tables_) {
    const TableSpec& spec = table->spec();
    if (spec.rows > AccessRecorder::kMostRows) {
      throw usage_error("table " + orrery::quoted(spec.name) + ": accesses to at most " +
                        std::to_string(AccessRecorder::kMostRows) + " rows can be recorded, got " +
                        std::to_string(spec.rows));
    }
    table->record(of_table);
  }
}

ObservedStaleness TableStore::observed() const {
  ObservedStaleness all;
  for (const auto& table : tables_) all.add(table->observed());
  return all;
}

std::vector<std::pair<std::string, AccessCounts>> TableStore::accesses() const {
  std::vector<std::pair<std::string, AccessCounts>> all;
  for (const auto& table : tables_) all.emplace_back(table->spec().name, table->accesses());
  return all;
}

Bytes TableStore::share_observed() const {
  Bytes share;
  put(share, observed());
  return share;
}

void TableStore::take_observed(NodeId from, WireReader& in) {
  observed_of_others_[from] = in.take<ObservedStaleness>();
}

void TableStore::report(Evaluation& evaluation) const {
  ObservedStaleness seen = observed();
  for (const auto& [node, counts] : observed_of_others_) seen.add(counts);
  constexpr auto kLast = static_cast<Clock>(ObservedStaleness::kBuckets) - 1;
  Clock last = std::min(bound(), kLast);
  while (bound() > kLast && last > 0 && seen.counts[static_cast<std::size_t>(last)] == 0) --last;
  double reads = 0, sum = 0, highest = 0;
  for (Clock k = 0; k <= last; ++k) {
    const auto count = static_cast<double>(seen.counts[static_cast<std::size_t>(k)]);
    evaluation.extra.emplace_back("reads_staleness_" + std::to_string(k), count);
    reads += count;
    sum += static_cast<double>(k) * count;
    if (count > 0) highest = static_cast<double>(k);
  }
  evaluation.staleness_mean = reads > 0 ? sum / reads : 0;
  evaluation.staleness_max = highest;
}

void TableStore::worker_ended(WorkerId worker, Clock clock) {
  for (const auto& table : tables_) table->worker_ended(worker, clock);
}

void TableStore::connect(Outbox& outbox, Clock start) {
  for (std::uint32_t number = 0; number < tables_.size(); ++number) tables_[number]->connect(outbox, number, start);
}

void TableStore::node_ended(Clock clock) {
  for (const auto& table : tables_) table->node_ended(clock);
}

void TableStore::message_arrived(const Message& message, const ClockTree& clocks) {
  tables_.at(message.table)->message_arrived(message, clocks);
}

void TableStore::clocks_moved(const ClockTree& clocks) {
  for (const auto& table : tables_) table->clocks_moved(clocks);
}

std::size_t TableStore::settle_parts(Clock clock) {
  if (!parts_.empty()) return 0;  // until the commit: they were settled
  std::size_t all = 0;
  for (const auto& table : tables_) all += parts_.emplace_back(table->settle_parts(clock));
  return all;
}

void TableStore::settle(Clock clock, std::size_t part) {
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    if (part < parts_[t]) return tables_[t]->settle(clock, part);
    part -= parts_[t];
  }
}

void TableStore::commit(Clock clock) {
  parts_.clear();
  for (const auto& table : tables_) table->commit(clock);
}

// Every table is asked, so that all ask for what they lack at the same time.
bool TableStore::may_begin(Clock clock) {
  bool all = true;
  for (const auto& table : tables_) all = table->may_begin(clock) && all;
  return all;
}

bool TableStore::may_end(Clock clock) {
  bool all = true;
  for (const auto& table : tables_) all = table->may_end(clock) && all;
  return all;
}

std::vector<StateSection> TableStore::save() const {
  std::vector<StateSection> sections;
  for (const auto& table : tables_) sections.push_back({"table-" + table->spec().name, table->save()});
  return sections;
}

namespace {

const StateSection& section_of(const std::vector<StateSection>& sections, const std::string& name) {
  const auto found =
      std::find_if(sections.begin(), sections.end(), [&](const StateSection& s) { return s.name == name; });
  if (found == sections.end()) throw Error(ErrorKind::data, "there is no section '" + name + "'");
  return *found;
}

}  // namespace

std::vector<StateSection> TableStore::save_plans() const {
  std::vector<StateSection> sections;
  for (const auto& table : tables_) sections.push_back({"plan-" + table->spec().name, table->save_plan()});
  return sections;
}

void TableStore::follow_plans(const std::vector<StateSection>& plans) {
  for (const auto& table : tables_) {
    const StateSection& section = section_of(plans, "plan-" + table->spec().name);
    if (!table->follow_plan(section.bytes)) {
      throw Error(ErrorKind::data, "section '" + section.name + "' is of another table or of other workers");
    }
  }
}

void TableStore::load(const std::vector<StateSection>& sections) {
  for (const auto& table : tables_) {
    const StateSection& found = section_of(sections, "table-" + table->spec().name);
    if (!table->load(found.bytes)) {
      throw Error(ErrorKind::data, "section '" + found.name + "' has " + std::to_string(found.bytes.size()) +
                                       " bytes, which is not this table's size");
    }
  }
}

namespace {

constexpr std::string_view kBest = "best-";

}  // namespace

std::vector<StateSection> TableProgram::save_state() const {
  std::vector<StateSection> sections = tables().save();
  for (const StateSection& of_best : best_) {
    StateSection& copy = sections.emplace_back(of_best);
    copy.name.insert(0, kBest);
  }
  return sections;
}

void TableProgram::load_state(const std::vector<StateSection>& sections) {
  tables().load(sections);
  best_.clear();
  for (const StateSection& section : sections) {
    if (!section.name.starts_with(kBest)) continue;
    StateSection& of_best = best_.emplace_back(section);
    of_best.name.erase(0, kBest.size());
  }
}

}  // namespace orrery
