// orrery_bench_tables: what access plans are worth, in whole iterations of three programs on tables.
//
//   orrery_bench_tables PROGRAM planned|streamed|unplanned|hashed|array STALENESS THREADS TOPOLOGY CLOCKS
//
// PROGRAM is mf, lda or pagerank; or `own-WIDTH` or `shared-WIDTH` (1, 16, 100): nothing but a read and an add of a
// row, in an order without a pattern, of rows that one worker writes or that all do. `array`, on one thread, is the
// same program on a plain array, where an add changes the row at once.
//
// The programs touch a row for every rating, token or edge, as an author who thinks of nothing else would write them;
// their sizes are those of IterStore's own kinds of work (Cui et al., SoCC 2014): 2 M ratings of 20,000 x 5,000 at rank
// 16, 2 M tokens at 50 topics, 1.9 M edges. `hashed` is the same program on hashed_table.h. Prints a line {"iteration",
// "seconds", "quality"} for every iteration (the time without evaluation) and {"result": …} with the median iteration
// after the first three. The quality is that of the program, so that all stores can be seen to compute the same.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "bench/tools/hashed_table.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/executor.h"
#include "engine/params.h"
#include "engine/random.h"
#include "engine/table_store.h"

namespace orrery::bench {
namespace {

constexpr WorkerId kWorkers = 8;
constexpr std::uint64_t kSeed = 7;

RandomStream draws(std::uint64_t item) { return Random(kSeed, Purpose::generator).stream(0, item); }

/// The program's data of one worker, and what it does with a store in a clock. Store: read(row), add(row, …).
struct MatrixFactors {
  using Value = float;
  static constexpr std::uint32_t kUsers = 20000, kItems = 5000, kRank = 16, kRatings = 2000000;
  static constexpr std::uint32_t kRows = kItems, kWidth = kRank;
  struct Rating {
    std::uint32_t user;
    float value;
  };

  explicit MatrixFactors(WorkerId worker) {
    RandomStream draw = draws(worker);
    const std::uint32_t users = kUsers / kWorkers;
    for (std::uint32_t u = 0; u < users * kRank; ++u) factors.push_back(0.3F * static_cast<float>(draw.uniform()));
    for (std::uint32_t i = 0; i < kRatings / kWorkers; ++i) {
      const auto user = static_cast<std::uint32_t>(std::uint64_t{i} * users / (kRatings / kWorkers));
      items.push_back(static_cast<std::uint32_t>(draw.below(kItems)));
      ratings.push_back({user, 1 + 4 * static_cast<float>(draw.uniform())});
    }
  }
  std::span<const std::uint32_t> stream() const { return items; }
  static void first_row(std::uint32_t row, std::span<float> values) {
    RandomStream draw = draws(1000 + row);
    for (float& value : values) value = 0.3F * static_cast<float>(draw.uniform());
  }

  template <class Store>
  void run(Clock, Store& store) {
    std::array<float, kRank> gain{};
    squares = 0;
    auto&& rows = store.stream();
    for (std::size_t i = 0; i < ratings.size(); ++i) {
      const Rating& rating = ratings[i];
      float* user = factors.data() + std::size_t{rating.user} * kRank;
      const std::span<const float> item = rows.read(i);
      const float error = rating.value - dot(user, item.data());
      squares += double{error} * error;
      for (std::uint32_t d = 0; d < kRank; ++d) {
        gain[d] = kStep / kWorkers * error * user[d];
        user[d] += kStep * error * item[d];
      }
      rows.add(i, gain);
    }
  }
  /// In four sums, as vector units add.
  static float dot(const float* a, const float* b) {
    std::array<float, 4> sums{};
    for (std::uint32_t d = 0; d < kRank; d += 4) {
      for (std::uint32_t k = 0; k < 4; ++k) sums[k] += a[d + k] * b[d + k];
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  double quality() const { return squares; }

  static constexpr float kStep = 0.01F;
  std::vector<float> factors;
  std::vector<std::uint32_t> items;  ///< of the ratings
  std::vector<Rating> ratings;
  double squares = 0;
};

struct Topics {
  using Value = std::int32_t;
  static constexpr std::uint32_t kTopics = 50, kTopicsOfBlock = 10, kWords = 8000, kTokens = 2000000,
                                 kTokensOfDocument = 200;
  static constexpr std::uint32_t kRows = kWords + 1, kWidth = kTopics;  ///< the last row: tokens of each topic

  explicit Topics(WorkerId w) : worker(w) {
    RandomStream draw = draws(w);
    for (std::uint32_t i = 0; i < kTokens / kWorkers; ++i) {
      const double at = draw.uniform();  // words are skewed, as words are
      words.push_back(static_cast<std::uint32_t>(at * at * at * kWords));
      topics.push_back(static_cast<std::uint16_t>(draw.below(kTopics)));
    }
    words.push_back(kWords);
  }
  std::span<const std::uint32_t> stream() const { return words; }
  static void first_row(std::uint32_t, std::span<std::int32_t> values) { std::fill(values.begin(), values.end(), 0); }

  template <class Store>
  void run(Clock clock, Store& store) {
    auto&& rows = store.stream();
    if (clock == 0) {
      for (std::size_t i = 0; i < topics.size(); ++i) count(rows, i, 1);
      return;
    }
    std::array<std::int32_t, kTopics> of_document{};
    std::array<float, kTopics> weights{};
    RandomStream draw = draws((static_cast<std::uint64_t>(clock) << 32) + worker);
    likelihood = 0;
    for (std::size_t i = 0; i < topics.size(); ++i) {
      if (i % kTokensOfDocument == 0) {
        of_document.fill(0);
        for (std::size_t j = i; j < std::min(topics.size(), i + kTokensOfDocument); ++j) ++of_document[topics[j]];
      }
      count(rows, i, -1);
      --of_document[topics[i]];
      weigh(of_document.data(), rows.read(i).data(), rows.read(topics.size()).data(), weights.data());
      topics[i] = drawn(weights, static_cast<float>(draw.uniform()));
      ++of_document[topics[i]];
      count(rows, i, 1);
    }
  }

  /// p(topic) up to a factor. At staleness > 0 counts may be seen before the ones that they take back: not below 0.
  __attribute__((target_clones("avx512f", "avx2", "default"))) static void weigh(
      const std::int32_t* __restrict of_document, const std::int32_t* __restrict of_word,
      const std::int32_t* __restrict totals, float* __restrict weights) {
    for (std::uint32_t k = 0; k < kTopics; ++k) {
      const std::int32_t word = of_word[k] < 0 ? 0 : of_word[k], total = totals[k] < 0 ? 0 : totals[k];
      weights[k] = (static_cast<float>(of_document[k]) + 0.1F) * (static_cast<float>(word) + 0.01F) /
                   (static_cast<float>(total) + 0.01F * kWords);
    }
  }
  std::uint16_t drawn(const std::array<float, kTopics>& weights, float uniform) {
    std::array<float, kTopics / kTopicsOfBlock> blocks{};
    for (std::uint32_t b = 0; b < blocks.size(); ++b) {
      for (std::uint32_t k = 0; k < kTopicsOfBlock; ++k) blocks[b] += weights[b * kTopicsOfBlock + k];
    }
    float sum = 0;
    for (const float block : blocks) sum += block;
    likelihood += sum;
    float left = uniform * sum;
    std::uint32_t b = 0;
    while (b + 1U < blocks.size() && left >= blocks[b]) left -= blocks[b++];
    std::uint32_t k = b * kTopicsOfBlock;
    while (k + 1U < kTopics && (left -= weights[k]) >= 0) ++k;
    return static_cast<std::uint16_t>(k);
  }

  template <class Rows>
  void count(Rows& rows, std::size_t token, std::int32_t change) {
    rows.add(token, topics[token], change);
    rows.add(topics.size(), topics[token], change);
  }
  double quality() const { return likelihood; }

  WorkerId worker;
  std::vector<std::uint32_t> words;  ///< of the tokens, then the row of totals
  std::vector<std::uint16_t> topics;
  double likelihood = 0;
};

struct Ranks {
  using Value = double;
  static constexpr std::uint32_t kNodes = 300000, kEdges = 1900000;
  static constexpr std::uint32_t kRows = kNodes, kWidth = 1;

  explicit Ranks(WorkerId worker) : first(worker * (kNodes / kWorkers)) {
    RandomStream draw = draws(worker);
    const std::uint32_t edges = kEdges / kWorkers, nodes = kNodes / kWorkers;
    for (std::uint32_t v = 0; v <= nodes; ++v)
      starts.push_back(static_cast<std::uint32_t>(std::uint64_t{v} * edges / nodes));
    for (std::uint32_t e = 0; e < edges; ++e) {
      const double at = draw.uniform();
      sources.push_back(static_cast<std::uint32_t>(at * at * kNodes));
    }
    for (std::uint32_t v = 0; v < nodes; ++v) sources.push_back(first + v);
  }
  std::span<const std::uint32_t> stream() const { return sources; }
  static void first_row(std::uint32_t, std::span<double> values) { values[0] = 1.0 / kNodes; }

  template <class Store>
  void run(Clock, Store& store) {
    change = 0;
    auto&& rows = store.stream();
    const std::uint32_t edges = starts.back();
    for (std::uint32_t v = 0; v + 1 < starts.size(); ++v) {
      double sum = 0;
      for (std::uint32_t e = starts[v]; e < starts[v + 1]; ++e) sum += rows.read(e)[0];
      // Every node has as many edges in as out in the mean: the ranks stay a distribution but for rounding.
      const double next = 0.15 / kNodes + 0.85 * sum * kNodes / kEdges;
      const double delta = next - rows.read(edges + v)[0];
      change += std::abs(delta);
      rows.add(edges + v, 0, delta);
    }
  }
  double quality() const { return change; }

  std::uint32_t first;
  std::vector<std::uint32_t> starts, sources;  ///< sources of the edges, then the own nodes
  double change = 0;
};

/// Reads and adds, nothing else.
template <std::uint32_t kOfRow, bool kShared>
struct Touches {
  using Value = float;
  static constexpr std::uint32_t kRows = 4096, kWidth = kOfRow, kTouches = 1U << 18;

  explicit Touches(WorkerId worker) {
    RandomStream draw = draws(worker);
    for (std::uint32_t i = 0; i < kTouches; ++i) {
      const auto row = static_cast<std::uint32_t>(draw.below(kShared ? kRows : kRows / kWorkers));
      order.push_back(kShared ? row : worker * (kRows / kWorkers) + row);
    }
    delta.fill(1.0F / 1024);
  }
  std::span<const std::uint32_t> stream() const { return order; }
  static void first_row(std::uint32_t, std::span<float> values) { std::fill(values.begin(), values.end(), 0.0F); }

  template <class Store>
  void run(Clock, Store& store) {
    auto&& rows = store.stream();
    for (std::size_t i = 0; i < order.size(); ++i) {
      sum += rows.read(i)[0];
      rows.add(i, delta);
    }
  }
  double quality() const { return sum; }

  std::vector<std::uint32_t> order;
  std::array<float, kWidth> delta{};
  double sum = 0;
};

/// Places of the stream looked up by row.
template <class Store>
struct ByRow {
  Store& store;
  std::span<const std::uint32_t> rows;
  auto read(std::size_t place) { return store.read(rows[place]); }
  template <class... Delta>
  void add(std::size_t place, const Delta&... delta) {
    store.add(rows[place], delta...);
  }
};

template <class Value>
struct AlongTable {
  Table<Value>& table;
  const UnitContext& context;
  RowStream& rows;
  StreamCursor<Value> stream() { return table.along(context, rows); }
};

template <class Value>
struct OnTable {
  Table<Value>& table;
  const UnitContext& context;
  std::span<const std::uint32_t> rows;
  ByRow<OnTable> stream() { return {*this, rows}; }
  std::span<const Value> read(std::uint32_t row) { return table.read(context, row); }
  void add(std::uint32_t row, std::span<const Value> delta) { table.add(context, row, delta); }
  void add(std::uint32_t row, std::uint32_t column, Value delta) { table.add(context, row, column, delta); }
};

template <class Value>
struct OnHash {
  HashedTable<Value>& table;
  WorkerId worker;
  std::span<const std::uint32_t> rows;
  ByRow<OnHash> stream() { return {*this, rows}; }
  std::span<const Value> read(std::uint32_t row) { return table.read(worker, row); }
  void add(std::uint32_t row, std::span<const Value> delta) { table.add(worker, row, delta); }
  void add(std::uint32_t row, std::uint32_t column, Value delta) { table.add(worker, row, column, delta); }
};

template <class Value, std::uint32_t kWidth>
struct OnArray {
  Value* values;
  std::span<const std::uint32_t> rows;
  ByRow<OnArray> stream() { return {*this, rows}; }
  std::span<const Value> read(std::uint32_t row) { return {values + std::size_t{row} * kWidth, kWidth}; }
  void add(std::uint32_t row, std::span<const Value> delta) {
    for (std::uint32_t d = 0; d < kWidth; ++d) values[std::size_t{row} * kWidth + d] += delta[d];
  }
  void add(std::uint32_t row, std::uint32_t column, Value delta) {
    values[std::size_t{row} * kWidth + column] += delta;
  }
};

template <class Work>
std::vector<Work> work_of_all() {
  std::vector<Work> parts;
  for (WorkerId w = 0; w < kWorkers; ++w) parts.emplace_back(w);
  return parts;
}

template <class Work, class Set>
void set_first_rows(Set&& set) {
  std::vector<typename Work::Value> values(Work::kWidth);
  for (std::uint32_t row = 0; row < Work::kRows; ++row) {
    Work::first_row(row, values);
    set(row, values);
  }
}

template <class Work>
class TableRun : public TableProgram {
 public:
  TableRun(const Engine& engine, const WorkerMap& map)
      : TableProgram(engine, map),
        parts(work_of_all<Work>()),
        rows_(tables().add<typename Work::Value>({.name = "rows", .rows = Work::kRows, .width = Work::kWidth})) {
    set_first_rows<Work>([&](std::uint32_t row, auto values) { rows_.set(row, values); });
  }
  void run_unit(const WorkUnit& unit, UnitContext& context) override {
    OnTable<typename Work::Value> store{rows_, context, parts[unit.worker].stream()};
    parts[unit.worker].run(unit.clock, store);
  }
  Evaluation evaluate(Engine&, bool) override { return {}; }
  AccessCounts counted() const { return rows_.accesses(); }
  std::vector<Work> parts;

 protected:
  Table<typename Work::Value>& rows_;
};

template <class Work>
class StreamedRun final : public TableRun<Work> {
 public:
  StreamedRun(const Engine& engine, const WorkerMap& map) : TableRun<Work>(engine, map) {
    for (WorkerId w = 0; w < kWorkers; ++w) streams_.push_back(this->rows_.stream(w, this->parts[w].stream()));
  }
  void run_unit(const WorkUnit& unit, UnitContext& context) override {
    AlongTable<typename Work::Value> store{this->rows_, context, streams_[unit.worker]};
    this->parts[unit.worker].run(unit.clock, store);
  }

 private:
  std::vector<RowStream> streams_;
};

template <class Work>
class HashedRun final : public Program {
 public:
  HashedRun(const Engine& engine, const WorkerMap&)
      : parts(work_of_all<Work>()), rows_(Work::kWidth, kWorkers, engine.clock_bound() == 0) {
    set_first_rows<Work>([&](std::uint32_t row, auto values) { rows_.set(row, values); });
  }
  void run_unit(const WorkUnit& unit, UnitContext&) override {
    OnHash<typename Work::Value> store{rows_, unit.worker, parts[unit.worker].stream()};
    parts[unit.worker].run(unit.clock, store);
  }
  void worker_ended(WorkerId worker, Clock) override { rows_.worker_ended(worker); }
  void commit(Clock, std::span<const Bytes>) override { rows_.settle(); }
  AccessCounts counted() const { return {}; }
  std::vector<Work> parts;

 private:
  HashedTable<typename Work::Value> rows_;
};

/// One thread only: nothing keeps workers apart.
template <class Work>
class ArrayRun final : public Program {
 public:
  ArrayRun(const Engine&, const WorkerMap&)
      : parts(work_of_all<Work>()), rows_(std::size_t{Work::kRows} * Work::kWidth) {
    set_first_rows<Work>([&](std::uint32_t row, const auto& values) {
      std::copy(values.begin(), values.end(), rows_.begin() + std::ptrdiff_t{row} * Work::kWidth);
    });
  }
  void run_unit(const WorkUnit& unit, UnitContext&) override {
    OnArray<typename Work::Value, Work::kWidth> store{rows_.data(), parts[unit.worker].stream()};
    parts[unit.worker].run(unit.clock, store);
  }
  AccessCounts counted() const { return {}; }
  std::vector<Work> parts;

 private:
  std::vector<typename Work::Value> rows_;
};

template <class Run>
void race(Engine& engine, Clock clocks) {
  const WorkerMap map(kWorkers, 1, 0, engine.domains());
  Run run(engine, map);
  DataParallelSchedule schedule(std::vector<std::uint32_t>(kWorkers, 1));
  Executor executor(engine, schedule, run, kWorkers, {});
  double total = 0;
  std::vector<double> seconds;
  for (Clock clock = 1; clock <= clocks; ++clock) {
    const auto start = std::chrono::steady_clock::now();
    executor.run(clock);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    total += seconds.back();
    double quality = 0;
    for (const auto& part : run.parts) quality += part.quality();
    std::printf("{\"iteration\": %lld, \"seconds\": %.9g, \"quality\": %.17g}\n", static_cast<long long>(clock), total,
                quality);
  }
  const double first = seconds.front(), second = seconds.at(1);
  std::sort(seconds.begin() + 3, seconds.end());
  const AccessCounts counts = run.counted();
  std::printf(
      "{\"result\": {\"iteration_seconds\": %.6g, \"first\": %.6g, \"second\": %.6g, \"reads\": %llu, \"adds\": %llu, "
      "\"misses\": %llu, \"planned_rows\": %llu}}\n",
      seconds[3 + (seconds.size() - 3) / 2], first, second, static_cast<unsigned long long>(counts.reads),
      static_cast<unsigned long long>(counts.adds), static_cast<unsigned long long>(counts.misses),
      static_cast<unsigned long long>(counts.rows));
}

template <class Work>
void race_on(const std::string& store, Engine& engine, Clock clocks) {
  if (store == "hashed") return race<HashedRun<Work>>(engine, clocks);
  if (store == "array") return race<ArrayRun<Work>>(engine, clocks);
  if (store == "streamed") return race<StreamedRun<Work>>(engine, clocks);
  race<TableRun<Work>>(engine, clocks);
}

using Race = void (*)(const std::string& store, Engine& engine, Clock clocks);
const std::map<std::string, Race> kRaces = {{"mf", race_on<MatrixFactors>},
                                            {"lda", race_on<Topics>},
                                            {"pagerank", race_on<Ranks>},
                                            {"own-1", race_on<Touches<1, false>>},
                                            {"own-16", race_on<Touches<16, false>>},
                                            {"own-100", race_on<Touches<100, false>>},
                                            {"shared-1", race_on<Touches<1, true>>},
                                            {"shared-16", race_on<Touches<16, true>>},
                                            {"shared-100", race_on<Touches<100, true>>}};

}  // namespace
}  // namespace orrery::bench

int main(int argc, char** argv) try {
  using namespace orrery;
  const std::string program = argc > 1 ? argv[1] : "", store = argc > 2 ? argv[2] : "";
  const bool is_store =
      store == "planned" || store == "streamed" || store == "unplanned" || store == "hashed" || store == "array";
  const auto found = bench::kRaces.find(program);
  if (argc != 7 || !is_store || found == bench::kRaces.end()) {
    std::fprintf(
        stderr,
        "usage: %s mf|lda|pagerank|own-WIDTH|shared-WIDTH planned|streamed|unplanned|hashed|array STALENESS THREADS "
        "TOPOLOGY CLOCKS\nWIDTH: 1, 16 or 100\n",
        argv[0]);
    return 2;
  }
  EngineOptions options;
  options.staleness = parse_integer("STALENESS", argv[3]);
  options.consistency = options.staleness == 0 ? Consistency::bsp : Consistency::ssp;
  options.threads = static_cast<unsigned>(parse_integer("THREADS", argv[4]));
  options.topology = argv[5];
  options.plan = store != "unplanned";
  const Clock clocks = parse_integer("CLOCKS", argv[6]);
  if (clocks < 4) throw usage_error("expected at least 4 clocks");
  if (store == "array" && options.threads != 1) throw usage_error("an array is for one thread");
  Engine engine(options);
  found->second(store, engine, clocks);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return 1;
}
