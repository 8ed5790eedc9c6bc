#include "tools/profile_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/access_report.h"
#include "engine/node_traffic.h"
#include "engine/phase_report.h"
#include "engine/profile_advice.h"
#include "numa/topology.h"
#include "tools/output.h"
#include "tools/profile_trials.h"
#include "tools/train_observer.h"

namespace orrery::tools {
namespace {

constexpr std::size_t kHotRows = 20;
constexpr std::size_t kMostReuse = std::size_t{1} << 21;  // accesses; a second or so
constexpr std::size_t kTimelineBins = 240;                // of a timeline
constexpr Clock kShownIterations = 2;                     // at either end of the run

constexpr std::array<const char*, kRowClasses> kClassNames{"only read", "one writer", "several writers"};

/// How the engine serves a class of rows, and why: what Settlement, WorkerView and DomainCache do.
struct Policy {
  const char* what;
  const char* why;
};
Policy policy_of(RowClass kind, bool versioned, bool planned, bool replicated) {
  if (kind == RowClass::only_read) {
    return versioned ? Policy{"the current version in the domain's cache", "nobody adds, so it never gets another one"}
                     : Policy{"in place in the domain's cache", "nobody adds: a read is an array access"};
  }
  if (!planned) {
    return {"a hashed batch for each worker and clock", "the plan is off: nothing is known of the next clock"};
  }
  if (replicated) {
    return {"summed in the worker's record of the row, of which it has one for every row",
            "workers touch most rows: looking slots up would cost more than the records in vain"};
  }
  if (versioned) {
    return {"summed at the row's slot, handed over as a batch at the end of the clock",
            "clocks overlap: a batch becomes a new version of the row in each domain"};
  }
  if (kind == RowClass::one_writer) {
    return {"summed at the writer's slot, applied to the caches when all have ended the clock",
            "one worker adds: its sum is the row's, and there is nothing to combine"};
  }
  return {"summed at each writer's slot, the sums added up along the fixed tree",
          "several workers add: private sums need no lock, and the tree keeps the bits"};
}

Json json_of(const AccessSum& sum) { return {{"rows", sum.rows}, {"reads", sum.reads}, {"adds", sum.adds}}; }

/// [{key: k, rows, reads, adds}], without empty ones.
Json json_of_counts(const std::vector<AccessSum>& sums, const char* key) {
  Json out = Json::array();
  for (std::size_t k = 0; k < sums.size(); ++k) {
    if (sums[k].rows == 0) continue;
    Json one{{key, k}};
    one.update(json_of(sums[k]));
    out.push_back(one);
  }
  return out;
}

class ReportBuilder {
 public:
  ReportBuilder(const ProfiledRun& run, const RunRecord& record)
      : run_(run), record_(record), per_(run.training.clocks_per_iteration), start_(run.trainee.start()) {}

  Json build() {
    phases_ = phases_of(trace(), run_.map, run_.bound);
    Json report{{"format", 1}, {"run", parse_json(to_json(record_))}};
    report["threads"] = run_.engine.threads();
    report["domains"] = run_.map.domains();
    report["plan"] = run_.engine.options().plan;
    report["caches"] = caches();
    report["recorded"] = recorded();
    report["tables"] = tables();
    report["blocks"] = blocks();
    report["phases"] = phases();
    report["clocks"] = clocks();
    report["first_against_later"] = first_against_later();
    report["timeline"] = timeline();
    report["recommendations"] = recommendations();
    report["notes"] = notes();
    return report;
  }

 private:
  const PhaseTrace& trace() const { return run_.trainee.trace(); }
  Clock iteration_of(Clock clock) const { return (clock - start_) / per_; }

  Json caches() const {
    const CacheSizes& sizes = run_.engine.topology().caches();
    return {{"l1d", sizes.l1d}, {"l2", sizes.l2}, {"l3", sizes.l3}};
  }

  /// The capacities that reuse is held against, with their names.
  std::vector<std::pair<const char*, std::uint64_t>> levels() const {
    const CacheSizes& sizes = run_.engine.topology().caches();
    std::vector<std::pair<const char*, std::uint64_t>> known{{"L1", sizes.l1d}, {"L2", sizes.l2}, {"L3", sizes.l3}};
    std::erase_if(known, [](const auto& level) { return level.second == 0; });
    return known;
  }

  Json recorded() {
    std::uint64_t accesses = 0, dropped = 0;
    if (run_.trainee.tables() != nullptr) {
      for (const auto& table : run_.trainee.tables()->all()) {
        for (const AccessRecorder* worker : table->recorded()) {
          accesses += worker->size();
          dropped += worker->dropped();
        }
      }
    }
    facts_.is_cut = dropped > 0;
    if (dropped > 0) {
      notes_.push_back("the record of accesses was cut: " + count_text(static_cast<double>(dropped)) + " of " +
                       count_text(static_cast<double>(accesses + dropped)) +
                       " are not in it, so counts of rows and accesses are too low (--record-memory)");
    }
    return {{"iterations", run_.recorded_iterations},
            {"clocks", run_.recorded_iterations * per_},
            {"accesses", accesses},
            {"bytes_per_access", AccessRecorder::kBytesOfAccess},
            {"limit_bytes", run_.recorded_bytes},
            {"cut", dropped > 0},
            {"dropped", dropped}};
  }

  Json tables() {
    Json out = Json::array();
    if (run_.trainee.tables() == nullptr) return out;
    const auto all = run_.trainee.tables()->all();
    for (std::size_t t = 0; t < all.size(); ++t) out.push_back(table(*all[t], t));
    return out;
  }

  Json table(const TableBase& table, std::size_t number) {
    const RecordedTable records{.rows = table.spec().rows, .workers = table.recorded()};
    const TableUse use = use_of(records, run_.map, kHotRows);
    const AccessCounts counts = table.accesses();
    facts_.adds_to_shared += static_cast<double>(use.by_class[2].adds);
    all_adds_ += static_cast<double>(use.all.adds);
    facts_.rows_of_one_domain += static_cast<double>(use.by_domain_count[1].rows);
    all_rows_ += static_cast<double>(use.all.rows);
    Json out{{"name", table.spec().name},
             {"rows", table.spec().rows},
             {"width", table.spec().width},
             {"row_bytes", table.row_bytes()},
             {"update_bytes", table.update_bytes()},
             {"versioned", table.versioned()}};
    out["whole_run"] = {{"reads", counts.reads},
                        {"adds", counts.adds},
                        {"misses", counts.misses},
                        {"slots", counts.rows},
                        {"extensions", counts.extensions},
                        {"workers_given_up", counts.given_up},
                        {"workers_replicating", counts.replicated}};
    out["touched"] = json_of(use.all);
    out["by_worker"] = by_worker(use);
    out["hot_rows"] = hot_rows(use);
    out["by_workers_that_touch"] = json_of_counts(use.by_worker_count, "workers");
    out["by_domains_that_touch"] = json_of_counts(use.by_domain_count, "domains");
    out["classes"] = classes(use, table.versioned(), counts.replicated > 0);
    out["repetition"] = repetition(records);
    out["reuse"] = reuse(records, table.row_bytes());
    out["plan"] = plan(number);
    out["staleness_of_reads"] = staleness(table.observed());
    out["between_domains"] = between_domains(table, records);
    out["between_nodes"] = between_nodes(table, records);
    return out;
  }

  Json by_worker(const TableUse& use) const {
    Json out = Json::array();
    const WorkerId first = run_.map.first_worker(run_.map.this_node());
    for (WorkerId w = 0; w < use.by_worker.size(); ++w) {
      Json one{{"worker", first + w}, {"domain", run_.map.domain_of(first + w)}};
      one.update(json_of(use.by_worker[w]));
      out.push_back(one);
    }
    return out;
  }

  static Json hot_rows(const TableUse& use) {
    Json out = Json::array();
    for (const HotRow& row : use.hot) {
      out.push_back({{"row", row.row},
                     {"reads", row.reads},
                     {"adds", row.adds},
                     {"workers", row.workers},
                     {"writers", row.writers},
                     {"domains", row.domains}});
    }
    return out;
  }

  Json classes(const TableUse& use, bool versioned, bool replicated) const {
    Json out = Json::array();
    for (std::size_t c = 0; c < kRowClasses; ++c) {
      const Policy policy = policy_of(static_cast<RowClass>(c), versioned, run_.engine.options().plan, replicated);
      Json one{{"class", kClassNames[c]}};
      one.update(json_of(use.by_class[c]));
      one["slots"] = use.slots[c];
      one["policy"] = policy.what;
      one["reason"] = policy.why;
      out.push_back(one);
    }
    return out;
  }

  Json repetition(const RecordedTable& records) const {
    Json out = Json::array();
    for (Clock i = 1; i < run_.recorded_iterations; ++i) {
      const Repetition again = repetition_of(records, start_, per_, i);
      if (again.accesses == 0) continue;
      out.push_back({{"iteration", i + 1},
                     {"accesses", again.accesses},
                     {"known", again.known},
                     {"same_place", again.same_place}});
    }
    return out;
  }

  Json reuse(const RecordedTable& records, std::size_t row_bytes) const {
    std::vector<std::uint64_t> capacities;
    for (const auto& [name, bytes] : levels()) capacities.push_back(bytes / row_bytes);
    const Reuse found = reuse_of(records, capacities, kMostReuse);
    Json out{{"accesses", found.accesses},
             {"recorded", found.recorded},
             {"sampled", found.accesses < found.recorded},
             {"first_touches", found.first_touches}};
    out["by_distance"] = Json::array();
    for (std::size_t k = 0; k < found.by_log2.size(); ++k) {
      const std::uint64_t up_to = std::uint64_t{1} << k;  // distances below it
      out["by_distance"].push_back(
          {{"rows_below", up_to}, {"bytes_below", up_to * row_bytes}, {"accesses", found.by_log2[k]}});
    }
    out["served_by"] = Json::array();
    for (std::size_t c = 0; c < capacities.size(); ++c) {
      out["served_by"].push_back({{"cache", levels()[c].first},
                                  {"bytes", levels()[c].second},
                                  {"rows", capacities[c]},
                                  {"accesses", found.served_by[c]}});
    }
    return out;
  }

  /// Adds and misses between evaluations.
  Json plan(std::size_t table) const {
    Json out = Json::array();
    const std::vector<TableCounts>& counts = trace().counts;
    for (std::size_t i = 1; i < counts.size(); ++i) {
      const AccessCounts &before = counts[i - 1].accesses[table], &now = counts[i].accesses[table];
      out.push_back({{"iteration", iteration_of(counts[i].clock)},
                     {"reads", now.reads - before.reads},
                     {"adds", now.adds - before.adds},
                     {"misses", now.misses - before.misses},
                     {"slots", now.rows}});
    }
    return out;
  }

  Json staleness(const ObservedStaleness& seen) {
    Json out = Json::array();
    for (std::size_t k = 0; k < ObservedStaleness::kBuckets; ++k) {
      if (seen.counts[k] == 0) continue;
      out.push_back({{"clocks", k}, {"reads", seen.counts[k]}});
      lag_sum_ += static_cast<double>(k * seen.counts[k]);
      lag_reads_ += static_cast<double>(seen.counts[k]);
    }
    return out;
  }

  Json between_domains(const TableBase& table, const RecordedTable& records) {
    Json out = Json::array();
    for (const CrossDomain& clock : cross_domain(records, run_.map, table.versioned())) {
      out.push_back({{"clock", clock.clock},
                     {"rows_added_to", clock.updates},
                     {"bytes", clock.moved * table.update_bytes()},
                     {"least", clock.least * table.update_bytes()}});
      moved_ += clock.moved * table.update_bytes();
      least_ += clock.least * table.update_bytes();
    }
    crossing_clocks_ = std::max<std::uint64_t>(crossing_clocks_, out.size());
    return out;
  }

  /// What would cross in a clock, were the workers on several nodes.
  Json between_nodes(const TableBase& table, const RecordedTable& records) const {
    Json out = Json::array();
    for (const NodeId nodes : {2, 4, 8}) {
      if (nodes > records.workers.size()) break;
      const NodeTraffic found =
          node_traffic(records, nodes, table.versioned(), {.update = table.update_bytes(), .state = table.row_bytes()});
      out.push_back({{"nodes", nodes},
                     {"bytes_by_range", found.by_range},
                     {"bytes_by_use", found.by_use},
                     {"least", found.least}});
    }
    return out;
  }

  Json blocks() {
    const BlockId count = run_.training.schedule->blocks();
    if (count == 0) return nullptr;
    std::vector<std::size_t> bytes(count);
    for (BlockId b = 0; b < count; ++b) bytes[b] = run_.trainee.block_bytes(b);
    const BlockTravel travel = travel_of(trace(), run_.map, bytes);
    const std::size_t all_bytes = std::accumulate(bytes.begin(), bytes.end(), std::size_t{0});
    Json out{{"count", count},
             {"bytes", all_bytes},
             {"least_moves_of_clock", travel.least_moves_of_clock},
             {"least_bytes_of_clock", travel.least_moves_of_clock * all_bytes / count}};
    out["clocks"] = Json::array();
    for (const BlockClock& clock : travel.clocks) {
      out["clocks"].push_back(
          {{"clock", clock.clock}, {"visits", clock.visits}, {"moves", clock.moves}, {"bytes", clock.bytes}});
      moved_ += clock.bytes;
      least_ += travel.least_moves_of_clock * all_bytes / count;
    }
    crossing_clocks_ = travel.clocks.size();
    out["visits"] = Json::array();
    for (BlockId b = 0; b < count; ++b) {
      std::vector<std::uint64_t> domains(run_.map.domains(), 0);
      std::uint64_t workers = 0;
      for (WorkerId w = 0; w < travel.visits[b].size(); ++w) {
        workers += travel.visits[b][w] > 0;
        domains[run_.map.domain_of(run_.map.first_worker(run_.map.this_node()) + w)] += travel.visits[b][w];
      }
      out["visits"].push_back({{"block", b}, {"bytes", bytes[b]}, {"workers", workers}, {"by_domain", domains}});
    }
    return out;
  }

  Json phases() {
    std::array<double, kActivities> sums{};
    Json workers = Json::array();
    const WorkerId first = run_.map.first_worker(run_.map.this_node());
    for (WorkerId w = 0; w < phases_.workers.size(); ++w) {
      Json one{{"worker", first + w}, {"domain", run_.map.domain_of(first + w)}, {"units", phases_.workers[w].units}};
      for (std::size_t a = 0; a < kActivities; ++a) {
        one[to_string(static_cast<Activity>(a))] = phases_.workers[w].seconds[a];
        sums[a] += phases_.workers[w].seconds[a];
      }
      workers.push_back(one);
    }
    const double thread_seconds = phases_.seconds * run_.engine.threads();
    const double all = std::max(1e-12, std::accumulate(sums.begin(), sums.end(), 0.0));
    facts_.idle = thread_seconds > 0 ? std::max(0.0, 1 - phases_.busy_seconds / thread_seconds) : 0;
    facts_.clock_wait = sums[static_cast<std::size_t>(Activity::clock_wait)] / all;
    facts_.block_wait = sums[static_cast<std::size_t>(Activity::block_wait)] / all;
    Json by_activity = Json::object();
    for (std::size_t a = 0; a < kActivities; ++a) by_activity[to_string(static_cast<Activity>(a))] = sums[a];
    return {{"seconds", phases_.seconds},
            {"thread_seconds", thread_seconds},
            {"busy_thread_seconds", phases_.busy_seconds},
            {"settle_thread_seconds", phases_.settle_thread_seconds},
            {"commit_seconds", phases_.commit_seconds},
            {"evaluate_seconds", phases_.evaluate_seconds},
            {"worker_seconds", by_activity},
            {"workers", workers}};
  }

  Json clocks() {
    Json out = Json::array();
    double sum = 0;
    for (const ClockTime& clock : phases_.clocks) {
      out.push_back({{"clock", clock.clock},
                     {"iteration", iteration_of(clock.clock) + 1},
                     {"seconds", clock.seconds},
                     {"compute", clock.compute},
                     {"longest", clock.longest},
                     {"shortest", clock.shortest},
                     {"flush", clock.flush},
                     {"settle", clock.settle},
                     {"commit", clock.commit}});
      sum += clock.longest / std::max(1e-12, clock.compute / run_.engine.threads());
    }
    if (!phases_.clocks.empty()) facts_.longest_over_share = sum / static_cast<double>(phases_.clocks.size());
    return out;
  }

  /// Phases of one iteration, summed over its clocks.
  using Iteration = std::array<double, 5>;
  Json first_against_later() const {
    std::vector<Iteration> all;
    for (const ClockTime& clock : phases_.clocks) {
      const auto i = static_cast<std::size_t>(iteration_of(clock.clock));
      if (all.size() <= i) all.resize(i + 1, Iteration{});
      const Iteration now{clock.seconds, clock.compute, clock.flush, clock.settle, clock.commit};
      for (std::size_t k = 0; k < now.size(); ++k) all[i][k] += now[k];
    }
    if (all.size() < 3) return nullptr;
    constexpr std::array<const char*, 5> kNames{"seconds", "compute", "flush", "settle", "commit"};
    Json out{{"later_iterations", all.size() - 2}};  // the second one may still learn
    for (std::size_t k = 0; k < kNames.size(); ++k) {
      std::vector<double> later;
      for (std::size_t i = 2; i < all.size(); ++i) later.push_back(all[i][k]);
      const auto middle = later.begin() + static_cast<std::ptrdiff_t>(later.size() / 2);
      std::nth_element(later.begin(), middle, later.end());
      out[kNames[k]] = {{"first", all[0][k]}, {"later_median", *middle}};
    }
    return out;
  }

  Json timeline() const {
    Json out = Json::array();
    if (phases_.clocks.empty()) return out;
    const Clock iterations = iteration_of(phases_.clocks.back().clock) + 1;
    if (iterations <= 2 * kShownIterations) {
      out.push_back(window("the whole run", start_, start_ + iterations * per_));
      return out;
    }
    const std::string count = std::to_string(kShownIterations) + " iterations";
    out.push_back(window("the first " + count, start_, start_ + kShownIterations * per_));
    out.push_back(
        window("the last " + count, start_ + (iterations - kShownIterations) * per_, start_ + iterations * per_));
    return out;
  }

  Json window(const std::string& name, Clock first, Clock last) const {
    double from = phases_.seconds, to = 0;
    for (const Stretch& stretch : phases_.stretches) {
      if (stretch.clock < first || stretch.clock >= last || stretch.activity != Activity::compute) continue;
      from = std::min(from, stretch.start);
      to = std::max(to, stretch.end);
    }
    std::vector<std::vector<std::array<double, kActivities>>> bins(
        phases_.workers.size(),
        std::vector<std::array<double, kActivities>>(kTimelineBins, std::array<double, kActivities>{}));
    const WorkerId first_worker = run_.map.first_worker(run_.map.this_node());
    const double width = std::max(1e-12, (to - from) / kTimelineBins);
    for (const Stretch& stretch : phases_.stretches) {
      const double start = std::max(stretch.start, from), end = std::min(stretch.end, to);
      if (end <= start) continue;
      const auto bin_of = [&](double at) {
        return std::min(kTimelineBins - 1, static_cast<std::size_t>((at - from) / width));
      };
      for (std::size_t bin = bin_of(start); bin <= bin_of(end); ++bin) {
        const double low = from + static_cast<double>(bin) * width;
        const double part = std::min(end, low + width) - std::max(start, low);
        bins[stretch.worker - first_worker][bin][static_cast<std::size_t>(stretch.activity)] += std::max(0.0, part);
      }
    }
    Json out{{"name", name}, {"start", from}, {"end", to}, {"workers", Json::array()}};
    for (WorkerId w = 0; w < bins.size(); ++w) {
      out["workers"].push_back({{"worker", first_worker + w}, {"stretches", runs_of(bins[w])}});
    }
    return out;
  }

  /// [[activity, first bin, bins]]: what most of each bin went to.
  static Json runs_of(const std::vector<std::array<double, kActivities>>& bins) {
    Json out = Json::array();
    for (std::size_t b = 0; b < bins.size(); ++b) {
      const auto most = static_cast<std::size_t>(std::max_element(bins[b].begin(), bins[b].end()) - bins[b].begin());
      if (bins[b][most] <= 0) continue;
      if (!out.empty() && out.back()[0] == most &&
          out.back()[1].get<std::size_t>() + out.back()[2].get<std::size_t>() == b) {
        out.back()[2] = out.back()[2].get<std::size_t>() + 1;
      } else {
        out.push_back({most, b, 1});
      }
    }
    return out;
  }

  Json recommendations() {
    facts_.iterations = record_.result->iterations;
    facts_.threads = run_.engine.threads();
    facts_.workers = run_.map.workers();
    facts_.domains = run_.map.domains();
    facts_.staleness = run_.bound;
    facts_.schedule = run_.training.schedule->name();
    facts_.groups = run_.training.schedule->groups();
    facts_.schedules = run_.algorithm.info().schedules;
    facts_.has_tables = run_.trainee.tables() != nullptr;
    facts_.has_blocks = run_.training.schedule->blocks() > 0;
    facts_.adds_to_shared = all_adds_ > 0 ? facts_.adds_to_shared / all_adds_ : 0;
    facts_.rows_of_one_domain = all_rows_ > 0 ? facts_.rows_of_one_domain / all_rows_ : 0;
    facts_.mean_lag = lag_reads_ > 0 ? lag_sum_ / lag_reads_ : 0;
    facts_.moved = crossing_clocks_ > 0 ? moved_ / crossing_clocks_ : 0;
    facts_.least = crossing_clocks_ > 0 ? least_ / crossing_clocks_ : 0;
    Json out = Json::array();
    for (const Advice& advice : advise(facts_)) {
      const Advice said = run_.trials != nullptr ? run_.trials->judge(advice)
                          : advice.change        ? untried(advice, "--trials off")
                                                 : advice;
      out.push_back({{"about", said.about}, {"what", said.what}, {"evidence", said.evidence}});
    }
    return out;
  }

  Json notes() {
    if (trace().dropped > 0) {
      notes_.push_back(count_text(static_cast<double>(trace().dropped)) +
                       " phases were not kept: times and blocks are those of the beginning");
    }
    if (run_.trainee.tables() != nullptr) {
      notes_.push_back("accesses to tables are part of compute: timing each would take longer than the access");
      std::string costs;
      for (const auto& [name, value] : named(run_.engine.access_costs())) {
        costs += (costs.empty() ? "" : ", ") + name + " " + fixed_text(std::get<double>(value), 2);
      }
      notes_.push_back("costs of accesses as measured here, which decide how rows are found and sums put together: " +
                       costs);
      notes_.push_back(
          "bytes between domains are counted from the recorded accesses: what settling has to bring from "
          "one domain to another, wherever its parts ran");
      notes_.push_back(
          "reuse is that of each worker's own accesses to one table, as if whole rows and nothing else were cached");
    }
    return notes_;
  }

  const ProfiledRun& run_;
  const RunRecord& record_;
  const Clock per_, start_;
  PhaseReport phases_;
  ProfileFacts facts_;
  double all_adds_ = 0, all_rows_ = 0, lag_sum_ = 0, lag_reads_ = 0;
  std::uint64_t moved_ = 0, least_ = 0, crossing_clocks_ = 0;
  std::vector<std::string> notes_;
};

/// `value` with three digits and the largest prefix of `prefixes` (each a thousand times the one before) that fits.
std::string scaled(double value, const std::vector<std::string>& units) {
  std::size_t u = 0;
  while (value >= 999.5 && u + 1 < units.size()) {
    value /= 1000;
    ++u;
  }
  const int digits = u == 0 && value == std::floor(value) ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0;
  return fixed_text(value, digits) + units[u];
}

double number_of(const Json& value) { return value.get<double>(); }

void append_table_text(std::string& text, const Json& table) {
  const Json& run = table["whole_run"];
  text += "\ntable " + table["name"].get<std::string>() + ": " + count_text(number_of(table["rows"])) + " rows of " +
          bytes_text(number_of(table["row_bytes"])) + "; " + count_text(number_of(run["reads"])) + " reads, " +
          count_text(number_of(run["adds"])) + " adds, " +
          share_text(number_of(run["misses"]), number_of(run["adds"])) + " of the adds outside the plan\n";
  std::vector<std::vector<std::string>> rows{{"  rows", "touched", "reads", "adds", "slots", "policy"}};
  for (const Json& one : table["classes"]) {
    rows.push_back({"  " + one["class"].get<std::string>(), count_text(number_of(one["rows"])),
                    count_text(number_of(one["reads"])), count_text(number_of(one["adds"])),
                    count_text(number_of(one["slots"])), one["policy"].get<std::string>()});
  }
  text += aligned(rows);
  const Json& reuse = table["reuse"];
  text += "  a worker's accesses served by a cache of its own:";
  if (reuse["served_by"].empty()) text += " sizes of caches are not known";
  for (const Json& level : reuse["served_by"]) {
    text += " " + level["cache"].get<std::string>() + " " +
            share_text(number_of(level["accesses"]), number_of(reuse["accesses"]));
  }
  text += "\n";
  for (const Json& many : table["between_nodes"]) {
    text += "  on " + std::to_string(many["nodes"].get<int>()) + " nodes a clock would send " +
            bytes_text(number_of(many["bytes_by_range"])) + " with homes in ranges, " +
            bytes_text(number_of(many["bytes_by_use"])) + " with homes by use; at the least " +
            bytes_text(number_of(many["least"])) + "\n";
  }
  for (const Json& again : table["repetition"]) {
    text += "  iteration " + std::to_string(again["iteration"].get<int>()) +
            " repeats the first: " + share_text(number_of(again["known"]), number_of(again["accesses"])) +
            " of the accesses, " + share_text(number_of(again["same_place"]), number_of(again["accesses"])) +
            " in the same order\n";
  }
}

}  // namespace

std::string count_text(double value) { return scaled(value, {"", " k", " M", " G", " T"}); }
std::string bytes_text(double bytes) { return scaled(bytes, {" B", " kB", " MB", " GB", " TB"}); }
std::string seconds_text(double seconds) {
  if (seconds >= 1) return fixed_text(seconds, seconds < 100 ? 2 : 0) + " s";
  return scaled(seconds * 1e9, {" ns", " µs", " ms"});
}
std::string share_text(double part, double whole) {
  return whole > 0 ? fixed_text(100 * part / whole, 1) + " %" : std::string{"–"};
}

Json profile_json(const ProfiledRun& run, const RunRecord& record) { return ReportBuilder(run, record).build(); }

std::string profile_text(const Json& report) {
  const Json& run = report["run"];
  const Json& phases = report["phases"];
  std::string text = "profile of " + run["algorithm"].get<std::string>() + ", schedule " +
                     run["schedule"].get<std::string>() + ": " + std::to_string(run["workers"].get<int>()) +
                     " workers on " + std::to_string(report["threads"].get<int>()) + " threads in " +
                     std::to_string(report["domains"].get<int>()) + " domains\n\nwhere the time of workers went\n";
  double all = 0;
  for (const Json& seconds : phases["worker_seconds"]) all += number_of(seconds);
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, seconds] : phases["worker_seconds"].items()) {
    rows.push_back({"  " + name, seconds_text(number_of(seconds)), share_text(number_of(seconds), all)});
  }
  text += aligned(rows) + "threads were busy for " +
          share_text(number_of(phases["busy_thread_seconds"]), number_of(phases["thread_seconds"])) + " of " +
          seconds_text(number_of(phases["seconds"])) + "\n";
  for (const Json& table : report["tables"]) append_table_text(text, table);
  if (const Json& blocks = report["blocks"]; !blocks.is_null()) {
    double moves = 0, bytes = 0;
    for (const Json& clock : blocks["clocks"]) {
      moves += number_of(clock["moves"]);
      bytes += number_of(clock["bytes"]);
    }
    text += "\n" + count_text(number_of(blocks["count"])) + " blocks of " + bytes_text(number_of(blocks["bytes"])) +
            " in all went " + count_text(moves) + " times to another domain (" + bytes_text(bytes) + ")\n";
  }
  if (const Json& change = report["first_against_later"]; !change.is_null()) {
    text += "\nan iteration took " + seconds_text(number_of(change["seconds"]["first"])) + " at first, " +
            seconds_text(number_of(change["seconds"]["later_median"])) + " later\n";
  }
  text += "\nrecommendations\n";
  for (const Json& advice : report["recommendations"]) {
    text += "  " + advice["about"].get<std::string>() + ": " + advice["what"].get<std::string>() + "\n    because " +
            advice["evidence"].get<std::string>() + "\n";
  }
  for (const Json& note : report["notes"]) text += "note: " + note.get<std::string>() + "\n";
  return text;
}

}  // namespace orrery::tools
