// The seam between the command line (tools/) and an algorithm. Data flows one way: load → plan (prepare) → train →
// write; a Model is what comes back from the files. The next algorithm costs one header, one source, one line in
// registry.cpp and one test.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/collective.h"
#include "engine/memory_estimate.h"
#include "engine/metrics.h"
#include "engine/model_store.h"
#include "engine/params.h"
#include "engine/schedule.h"
#include "engine/training.h"
#include "engine/types.h"

namespace orrery {

class Engine;

/// What `orrery list` and `orrery describe` print.
struct AlgorithmInfo {
  std::string name;       ///< on the command line
  std::string title;      ///< one line
  std::string objective;  ///< in plain notation
  std::string method;     ///< update rule, and why the schedule is safe
  std::string reference;  ///< paper, section
  std::string data;       ///< formats it reads
  std::string metric;     ///< primary metric: key in metrics.jsonl's `valid`, result.metric
  bool smaller_is_better = true;
  bool objective_is_residual = false;  ///< it says how far the state is from a solution: --tolerance bounds it
  bool uses_seed = true;               ///< something in it is random
  std::vector<std::string> schedules;  ///< that it offers; the first is what `auto` takes
};

/// Input of a training.
struct DataRequest {
  std::string path;
  std::string format;  ///< empty: recognised from the content
  std::optional<std::string> valid;
  std::optional<std::string> init;  ///< model directory of a warm start
  std::string schedule = "auto";    ///< what prepare() will be called with
  std::uint32_t groups = 1;         ///< above 1: that of a hybrid schedule, of an algorithm that offers one
  /// Bytes that the run may hold in memory, and where it may put what does not fit. 0: as many as it takes.
  std::uint64_t memory_limit = 0;
  std::filesystem::path scratch = ".";
  Collective nodes = {};  ///< who loads, all at once: for data in parts (data_parts.h)
};

/// For run.json's "data": what was read. Values are JSON texts.
struct DataSummary {
  std::string format;
  std::uint64_t checksum = 0;                              ///< of the content, the same however it was read
  std::vector<std::pair<std::string, std::string>> shape;  ///< "users": "943", …
};

/// What a prepared training consists of. Lives as long as the algorithm that made it.
struct Training {
  Schedule* schedule = nullptr;
  Trainee* trainee = nullptr;
  Clock clocks_per_iteration = 1;
  std::string schedule_reason;  ///< why `auto` took this schedule
  /// What an iteration works through, for the rate in the progress line and in metrics.jsonl; 0: nothing is said.
  std::uint64_t items_per_iteration = 0;
  std::string item_name;  ///< "tokens": the key is tokens_per_second
  /// Sections of a checkpoint that may be larger than memory: load_state() takes them as sources.
  std::vector<std::string> sections_on_disk = {};
};

/// One training job. Calls come in the order of declaration.
class Algorithm {
 public:
  virtual ~Algorithm() = default;
  virtual const AlgorithmInfo& info() const = 0;
  /// Own parameters, bound to the fields of this object.
  virtual ParamSet& params() = 0;
  /// Default stopping rules; the command line overrides single fields.
  virtual StopRules default_stop() const = 0;
  /// What can be said of a request before anything is read or made. @throws Error (usage) for a format that it does
  /// not read or a start model that does not fit its parameters, (data) for one that cannot be read.
  virtual void check(const DataRequest& request) const = 0;
  /// Whether it trains on several nodes when prepared with that schedule; then every node has the whole state at a cut.
  /// Asked when the parameters are set and before anything is loaded.
  virtual bool runs_on_several_nodes(const std::string& /*schedule*/) const { return false; }
  /// Whether DATA and held-out data may be in parts (data_parts.h).
  virtual bool reads_parts() const { return false; }
  /// @throws Error (data) naming the place; engine is used for parallel loading and for warn().
  virtual void load(const DataRequest& request, Engine& engine) = 0;
  virtual DataSummary data_summary() const = 0;
  /// A function of the data alone: at least 16 unless the data is tiny.
  virtual WorkerId default_workers() const = 0;
  /// What training with `workers` will hold in memory at its peak, part by part. Called after load().
  virtual MemoryEstimate memory(WorkerId workers) const = 0;
  /// Lays the data out for the workers and makes the initial state. `schedule` is one of info().schedules or "auto".
  virtual Training prepare(Engine& engine, WorkerId workers, std::uint64_t seed, const std::string& schedule) = 0;
  /// Writes the state as a model: arrays, id maps, and what a Model needs to know. Returns nothing half-done: the
  /// caller commits the writer.
  virtual void write_model(ModelWriter& writer, Engine& engine) const = 0;
};

/// One finding of `orrery verify`.
struct Check {
  std::string what;
  bool passed = false;
  std::string detail;  ///< numbers: expected and found
};

/// What a topic is about.
struct TopicSummary {
  std::size_t id = 0;
  double share = 0;      ///< of the training tokens
  double coherence = 0;  ///< of its most probable words in the training documents, in [-1, 1]
  std::vector<std::pair<std::string, double>> words;  ///< with their probabilities, most probable first
};

/// A model read back from its directory. What an algorithm cannot do stays at the default, which refuses by name.
class Model {
 public:
  virtual ~Model() = default;
  /// One prediction a line, in the order of the input.
  virtual void predict(const std::string& data, const std::string& format, Engine& engine, std::ostream& out) const;
  /// The held-out metrics on `data`; the primary one first.
  virtual ValueList evaluate(const std::string& data, const std::string& format, Engine& engine) const;
  /// Latent state of unseen data, one row a line: `id value value …`.
  virtual void infer(const std::string& data, const std::string& format, Engine& engine, std::ostream& out) const;
  /// The `top` best items for `user` with their scores, best first, without those it has rated in training.
  /// Whether recommend() has anything of this user's own to go by.
  virtual bool knows_user(const std::string& /*user*/) const { return true; }
  virtual std::vector<std::pair<std::string, double>> recommend(const std::string& user, std::size_t top) const;
  /// What each topic is about, by its `top` most probable words; topics in the order of their numbers.
  virtual std::vector<TopicSummary> topics(std::size_t top) const;
  /// Re-checks the defining property; `run` says what was trained on what (run.json).
  struct Run {
    std::string data, format;
    std::optional<std::string> valid;
    std::uint64_t data_checksum = 0;
    std::optional<double> value;  ///< result.value of run.json
  };
  virtual std::vector<Check> verify(const Run& run, Engine& engine) const = 0;
};

/// One line of the registry.
struct AlgorithmEntry {
  const char* name;
  std::unique_ptr<Algorithm> (*make)();
  std::unique_ptr<Model> (*open)(const ModelReader& reader);
};

/// Every algorithm of this build, in the order in which they are listed.
std::span<const AlgorithmEntry> algorithms();
/// @throws Error (usage) with a suggestion when there is none of that name.
const AlgorithmEntry& find_algorithm(const std::string& name);

}  // namespace orrery
