#include "tools/train_run.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <utility>

#include "algorithms/data_parts.h"
#include "engine/checksum.h"
#include "engine/error.h"
#include "engine/json.h"
#include "engine/memory_estimate.h"
#include "engine/metrics.h"
#include "engine/simd.h"
#include "engine/wire.h"
#include "numa/memory.h"
#include "numa/topology.h"
#include "numa/topology_report.h"
#include "tools/commands.h"
#include "tools/model_access.h"
#include "tools/output.h"
#include "tools/plan_file.h"
#include "tools/toml.h"
#include "tools/train_observer.h"

namespace orrery::tools {

namespace {

ExistingRun existing_run(const SessionOptions& session) {
  if (session.resume && session.overwrite) throw usage_error("--resume and --overwrite exclude each other");
  if (session.resume) return ExistingRun::resume;
  return session.overwrite ? ExistingRun::overwrite : ExistingRun::refuse;
}

std::string absolute(const std::string& path) { return std::filesystem::absolute(path).lexically_normal().string(); }

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

/// A word as a POSIX shell takes it back.
std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted_word = "'";
  for (const char c : word) quoted_word += c == '\'' ? std::string{"'\\''"} : std::string(1, c);
  return quoted_word + "'";
}

// Piece by piece: it is the program itself, which may be larger than what it trains on.
std::uint64_t checksum_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw data_error(path, "cannot be read");
  Checksum sum;
  std::vector<char> piece(std::size_t{1} << 16);
  do {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    sum.update(std::string_view(piece.data(), static_cast<std::size_t>(in.gcount())));
  } while (in);
  if (in.bad()) throw data_error(path, "cannot be read to its end");
  return sum.value();
}

/// @throws Error (usage) for a topology or kernels that the engine would refuse.
void check_machine(const RunOptions& options) {
  static_cast<void>(options.engine_options());
  if (options.topology.empty()) return;
  try {
    static_cast<void>(Topology::synthetic(options.topology));
  } catch (const TopologyError& error) {
    throw usage_error(std::string{"--topology: "} + error.what());
  }
}

std::string to_json(const Fingerprint& fingerprint) {
  Json object = Json::object();
  for (const auto& [key, value] : fingerprint.items()) object[key] = value;
  return json_text(object);
}

/// @throws Error (usage) when the workers cannot be dealt evenly to the groups.
void check_even_groups(int groups, WorkerId workers) {
  if (workers % static_cast<WorkerId>(groups) == 0) return;
  throw usage_error("--groups: " + std::to_string(groups) + " groups of equal size need a multiple of " +
                    std::to_string(groups) + " workers, got " + std::to_string(workers) + " (--workers)");
}

/// The command that goes on with this run.
std::string resume_command(const std::vector<std::string>& command) {
  std::vector<std::string> words;
  for (const std::string& word : command) {
    if (word != "--overwrite" && word != "--resume") words.push_back(shell_word(word));
  }
  words.emplace_back("--resume");
  return joined(words, " ");
}

}  // namespace

TrainRun::TrainRun(TrainRequest& request, RunOptions& options, const SessionOptions& session, Progress& progress,
                   Nodes& nodes, InterruptGuard& interrupt)
    : request_(request),
      options_(options),
      session_(session),
      progress_(progress),
      nodes_(nodes),
      interrupt_(interrupt) {
  if (!nodes_.is_first()) interrupt_.announce(nullptr);
  nodes_.set_advice("; nothing was written");
}

TrainRun::~TrainRun() = default;

int TrainRun::run() {
  check_options();
  agree_on_command();
  if (nodes_.is_first()) directory_ = std::make_unique<RunDirectory>(options_.out, existing_run(session_));
  open_engine();
  load();
  check_memory();
  prepare();
  find_checkpoint();
  nodes_.require_same(fingerprint().items());
  stop_if_interrupted();
  start_files();
  const TrainResult result = train_model();
  if (!nodes_.is_first()) return result.stopped_by == StoppedBy::interrupt ? kInterrupted : kDone;
  interrupt_.announce("but the training is over: finishing what follows it");
  if (result.stopped_by == StoppedBy::interrupt) return interrupted(result);
  finish_record(result, write_model());
  // After the model, which is not to be lost over it.
  if (!options_.plan_out.empty()) {
    write_checkpoint(options_.plan_out, plan_fingerprint(*request_.algorithm, workers_),
                     {.clock = result.iterations, .sections = training_.trainee->save_plans()});
  }
  print_summary(result);
  if (request_.probe != nullptr) request_.probe->finish(record_);
  if (options_.verify && !verify_run(options_.out, *engine_, session_.quiet)) return kVerifyFailed;
  return exit_code(result.stopped_by);
}

// What is wrong with the words is said before what stands in --out, which need not be looked at for it.
void TrainRun::check_options() {
  if (!options_.memory_limit.empty()) parse_bytes("--memory-limit", options_.memory_limit);  // before hours of loading
  const std::vector<std::string>& offered = request_.algorithm->info().schedules;
  const bool known = std::find(offered.begin(), offered.end(), options_.schedule) != offered.end();
  if (options_.schedule != "auto" && !known) {
    throw usage_error("--schedule: " + request_.algorithm->info().name + " offers auto, " + joined(offered, ", ") +
                      "; got " + orrery::quoted(options_.schedule) + suggestion(options_.schedule, offered));
  }
  check_groups();
  if (options_.stop.patience > 0 && options_.valid.empty() && options_.params.was_set("patience")) {
    throw usage_error("--patience needs held-out data: --valid FILE");
  }
  check_config_file();
  check_plan_words(options_, session_, files_read(), nodes_.several());
  for (const std::string& data : {request_.data, options_.valid}) {
    if (!is_in_parts(data) || request_.algorithm->reads_parts()) continue;
    throw usage_error(data + ": " + request_.algorithm->info().name +
                      " reads one file; files in parts (%r) are for lasso, logistic and softmax");
  }
  if (!options_.simulate.empty()) simulation_ = SimulationSpec::parse(options_.simulate);
  check_machine(options_);
  check_nodes();
  request_.algorithm->check(data_request());
}

void TrainRun::check_groups() const {
  const std::vector<std::string>& offered = request_.algorithm->info().schedules;
  const bool offers = std::find(offered.begin(), offered.end(), "hybrid") != offered.end();
  if (options_.groups == 1) {
    if (options_.schedule != "hybrid") return;
    throw usage_error("--schedule hybrid: say how many groups, such as --groups 2 (one group is --schedule rotation)");
  }
  if (!offers) {
    throw usage_error("--groups: nothing rotates in " + request_.algorithm->info().name +
                      "; groups are for mf and lda");
  }
  if (options_.schedule != "auto" && options_.schedule != "hybrid") {
    throw usage_error("--groups is for --schedule hybrid, got --schedule " + options_.schedule);
  }
  if (options_.consistency == Consistency::async) {
    throw usage_error(
        "--groups: groups take in what others did under a bound; expected --consistency bsp, ssp or essp");
  }
  if (options_.workers) check_even_groups(options_.groups, static_cast<WorkerId>(*options_.workers));
}

// What the words name as input, but for a plan.
std::vector<std::string> TrainRun::files_read() const {
  std::vector<std::string> files{request_.data, options_.valid, options_.init, session_.config};
  const ParamSet& params = request_.algorithm->params();
  for (const ParamInfo& info : params.describe()) {
    if (info.type == "text") files.push_back(params.get(info.name));  // words or priors
  }
  return files;
}

void TrainRun::check_config_file() const {
  if (session_.dump_config.empty()) return;
  std::vector<std::string> read = files_read();
  read.push_back(options_.plan_in);
  check_not_read("--dump-config", session_.dump_config, read);
  check_not_of_run("--dump-config", session_.dump_config, options_.init);
}

void TrainRun::check_nodes() const {
  if (!nodes_.several() && !simulation_) return;
  if (nodes_.several() && simulation_) {
    throw usage_error("--simulate runs all nodes in one process: start it without mpirun");
  }
  const std::string how =
      simulation_ ? "--simulate: " : "started as " + std::to_string(nodes_.count()) + " ranks, but ";
  if (!request_.algorithm->runs_on_several_nodes(options_.schedule)) {
    throw usage_error(how + request_.algorithm->info().name +
                      " with these options runs on one node only (on several: lasso with --scheduler dynamic and "
                      "without --cv, lda without --fit-priors, logistic, mf with --solver sgd, pagerank and softmax)");
  }
  if (options_.workers && *options_.workers < static_cast<int>(nodes_.count())) {
    throw usage_error(how + "--workers is " + std::to_string(*options_.workers) + ": every rank needs a worker");
  }
}

// Ranks of another program, or with other words, would not come to one model. What may differ is how fast they are.
void TrainRun::agree_on_command() {
  if (!nodes_.several()) return;
  Facts facts{{"program", std::string{orrery_version()} + " " + checksum_text(checksum_of_file("/proc/self/exe"))},
              {"algorithm", request_.algorithm->info().name},
              {"data", request_.data}};
  const auto add = [&](const ParamSet& params) {
    for (const std::string& name : params.names()) {
      if (name != "threads" && name != "memory-limit" && name != "topology") facts.emplace_back(name, params.get(name));
    }
  };
  add(request_.algorithm->params());
  add(options_.params);
  facts.emplace_back("resume", session_.resume ? "yes" : "no");
  facts.emplace_back("overwrite", session_.overwrite ? "yes" : "no");
  nodes_.require_same(facts);
}

DataRequest TrainRun::data_request() const {
  DataRequest data{
      .path = request_.data, .format = options_.format, .valid = {}, .init = {}, .schedule = options_.schedule};
  data.groups = static_cast<std::uint32_t>(options_.groups);
  data.memory_limit = memory_limit().first;
  data.scratch = options_.out;
  if (nodes_.several()) {
    data.nodes = Collective(nodes_.node(), nodes_.count(),
                            [this](std::vector<Bytes> to) { return nodes_.exchange(std::move(to.front())); });
  }
  if (!options_.valid.empty()) data.valid = options_.valid;
  if (!options_.init.empty()) data.init = options_.init;
  return data;
}

// Bits are promised per kernel level: a resumed run goes on at its own, and ranks take the lowest of theirs.
std::optional<SimdLevel> TrainRun::agreed_simd() {
  std::string before;
  if (directory_ && directory_->resumed()) before = directory_->resumed()->simd;
  const std::vector<std::string> resumed = nodes_.exchange(before);
  const std::vector<std::string> levels = nodes_.exchange(std::string{to_string(detect_simd())});
  if (options_.simd != "auto") return std::nullopt;
  if (!resumed.front().empty()) return resolve_simd(resumed.front());
  SimdLevel lowest = detect_simd();
  for (const std::string& level : levels) lowest = std::min(lowest, parse_simd(level).value_or(lowest));
  return lowest;
}

void TrainRun::open_engine() {
  EngineOptions engine_options = options_.engine_options();
  engine_options.before_body = [this] {
    stop_if_interrupted();
    nodes_.check();
  };
  if (const std::optional<SimdLevel> level = agreed_simd()) engine_options.simd = level;
  const Nodes::Share share = nodes_.several() ? nodes_.fair_share() : Nodes::Share{};
  if (nodes_.several() && engine_options.threads == 0) engine_options.threads = share.threads;
  engine_ = std::make_unique<Engine>(engine_options, nodes_.transport());
  if (!share.warning.empty()) engine_->warn(share.warning);
  say_warnings();
}

void TrainRun::load() {
  const auto start = std::chrono::steady_clock::now();
  begin_step("loading " + request_.data);
  request_.algorithm->load(data_request(), *engine_);
  seconds_loading_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  workers_ = options_.workers ? static_cast<WorkerId>(*options_.workers) : request_.algorithm->default_workers();
  check_even_groups(options_.groups, workers_);
  // Idle threads are worth a word only to somebody who chose one of the two numbers.
  const bool chosen = options_.params.was_set("threads") || options_.params.was_set("workers");
  if (chosen && engine_->threads() > workers_) {
    engine_->warn("more threads (" + std::to_string(engine_->threads()) + ") than workers (" +
                  std::to_string(workers_) + "): " + std::to_string(engine_->threads() - workers_) +
                  " have nothing to do");
  }
  if (workers_ < nodes_.count()) {
    throw usage_error("started as " + std::to_string(nodes_.count()) + " ranks, but this data gives " +
                      std::to_string(workers_) + " workers: every rank needs one; say how many, such as --workers " +
                      std::to_string(std::max<std::size_t>(16, 2 * nodes_.count())));
  }
  say_warnings();
}

void TrainRun::check_memory() {
  MemoryEstimate estimate = request_.algorithm->memory(workers_);
  if (simulation_) estimate.add("the other simulated nodes", simulation_->nodes - 1, estimate.total());
  if (nodes_.ranks_here() > 1) estimate.add("the other ranks of this host", nodes_.ranks_here() - 1, estimate.total());
  progress_.note("memory needed at the peak:\n" + estimate.table());
  const auto [limit, limit_name] = memory_limit();
  estimate.require_fits(limit, limit_name);
}

// In bytes, and what sets it.
std::pair<std::uint64_t, std::string> TrainRun::memory_limit() const {
  if (!options_.memory_limit.empty()) return {parse_bytes("--memory-limit", options_.memory_limit), "--memory-limit"};
  const AvailableMemory memory = available_memory();
  const bool limited = memory.limit_bytes > 0 && memory.limit_bytes < memory.physical_bytes;
  return {limited ? memory.limit_bytes : memory.physical_bytes,
          limited ? "limit of " + memory.limited_by : "memory of this machine"};
}

void TrainRun::prepare() {
  begin_step("laying out the data for " + std::to_string(workers_) + " workers");
  const auto start = std::chrono::steady_clock::now();
  if (!simulation_) {
    training_ = request_.algorithm->prepare(*engine_, workers_, options_.seed, options_.schedule);
  } else {
    simulated_ = std::make_unique<SimulatedTraining>(*simulation_, *request_.entry, *request_.algorithm, data_request(),
                                                     options_, workers_, *engine_);
    training_ = simulated_->training();
  }
  if (request_.probe != nullptr) {
    training_.trainee = &request_.probe->watch(*engine_, *request_.algorithm, training_, workers_);
  }
  seconds_loading_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::size_t nodes = simulation_ ? simulation_->nodes : nodes_.count();
  if (options_.reassign == Reassign::always && (nodes == 1 || !training_.trainee->lends())) {
    throw usage_error(
        "--reassign always: expected several nodes (mpirun or --simulate) and mf by rotation, whose units "
        "can run on others");
  }
  if (options_.consistency != Consistency::bsp && training_.schedule->blocks() > 0 &&
      training_.schedule->groups() == 1) {
    engine_->warn("--consistency " + to_string(options_.consistency) +
                  ": blocks have one owner at a time: workers may run ahead, but what rotates is never stale");
  }
  if (options_.params.was_set("seed") && !request_.algorithm->info().uses_seed) {
    engine_->warn("--seed: nothing in " + request_.algorithm->info().name + " is random, so it has no effect");
  }
  follow_plan_file(options_, plan_fingerprint(*request_.algorithm, workers_), *training_.trainee, *engine_);
  if (!training_.schedule_reason.empty()) {
    progress_.note(std::string{"schedule: "} + training_.schedule->name() + ": " + training_.schedule_reason);
  }
  say_warnings();
}

/// What the bits depend on. Held-out data count only where they decide when to stop.
Fingerprint TrainRun::fingerprint() const {
  Fingerprint all;
  all.add("algorithm", request_.algorithm->info().name);
  const ParamSet& params = request_.algorithm->params();
  for (const std::string& name : params.names()) all.add(name, params.get(name));
  const bool valid_decides = options_.stop.patience > 0 && !options_.valid.empty();
  all.add("data", checksum_text(request_.algorithm->data_summary().checksum))
      .add("valid", valid_decides ? checksum_text(checksum(read_text_file(options_.valid))) : "")
      .add("valid-every", valid_decides ? std::to_string(options_.valid_every) : "")
      .add("patience", valid_decides ? std::to_string(options_.stop.patience) : "")
      .add("init", options_.init.empty() ? "" : ModelReader(options_.init).model_checksum())
      .add("workers", std::to_string(workers_))
      .add("schedule", training_.schedule->name())
      .add("consistency", to_string(options_.consistency))
      .add("staleness", std::to_string(options_.staleness))
      .add("seed", std::to_string(options_.seed))
      .add("simulate", options_.consistency == Consistency::bsp ? "" : options_.simulate)
      .add("simd", std::string{to_string(engine_->simd())});
  if (options_.groups > 1) all.add("groups", std::to_string(options_.groups));
  return all;
}

void TrainRun::compare_with_record(const Fingerprint& mine) const {
  for (const auto& [name, text] : directory_->resumed()->more_json) {
    if (name != "fingerprint") continue;
    const Json recorded = parse_json(text);
    Fingerprint there;
    for (const auto& [key, value] : recorded.items()) there.add(key, value.get<std::string>());
    const std::string differences = mine.differences(there);
    if (differences.empty()) return;
    throw usage_error("--resume: the run in " + options_.out + " is another one: " + differences);
  }
}

void TrainRun::find_checkpoint() {
  if (options_.checkpoint_every == 0 && !session_.resume) return;
  if (nodes_.is_first()) read_checkpoint_of_first();
  if (session_.resume && nodes_.several()) spread_checkpoint();
}

// Every node starts from the state that the first one has found.
void TrainRun::spread_checkpoint() {
  Bytes mine;
  if (resume_from_) {
    put(mine, resume_from_->clock);
    for (const StateSection& section : resume_from_->sections) {
      put(mine, std::uint64_t{section.name.size()});
      put_all(mine, std::span<const char>(section.name));
      put(mine, std::uint64_t{section.bytes.size()});
      put_all(mine, std::span<const std::byte>(section.bytes));
    }
  }
  const Bytes found = std::move(nodes_.exchange(std::move(mine)).front());
  if (nodes_.is_first() || found.empty()) return;
  WireReader reader(found);
  resume_from_.emplace().clock = reader.take<Clock>();
  while (!reader.empty()) {
    StateSection& section = resume_from_->sections.emplace_back();
    section.name.resize(reader.take<std::uint64_t>());
    reader.take_all(std::span<char>(section.name));
    section.bytes.resize(reader.take<std::uint64_t>());
    reader.take_all(std::span<std::byte>(section.bytes));
  }
}

void TrainRun::read_checkpoint_of_first() {
  const Fingerprint mine = fingerprint();
  record_.more_json.emplace_back("fingerprint", to_json(mine));
  checkpoints_ = std::make_unique<CheckpointStore>(directory_->checkpoint_directory(), mine);
  if (!session_.resume) return;
  if (directory_->resumed()) compare_with_record(mine);
  begin_step("looking for a checkpoint");
  CheckpointStore::Found found = checkpoints_->newest_valid(training_.sections_on_disk);
  for (const std::string& reason : found.refused) engine_->warn("checkpoint not used: " + reason);
  resume_from_ = std::move(found.checkpoint);
  if (resume_from_) {
    progress_.note("resuming after iteration " + std::to_string(resume_from_->clock));
  } else {
    engine_->warn("--resume: no checkpoint to go on from in " + directory_->checkpoint_directory().string() +
                  "; starting anew");
  }
  say_warnings();
}

std::string TrainRun::data_json() const {
  const DataSummary summary = request_.algorithm->data_summary();
  Json data{
      {"path", absolute(request_.data)}, {"format", summary.format}, {"checksum", checksum_text(summary.checksum)}};
  for (const auto& [name, text] : summary.shape) data[name] = parse_json(text);
  if (!options_.valid.empty()) data["valid"] = absolute(options_.valid);
  return json_text(data);
}

void TrainRun::start_files() {
  gather_warnings();
  files_started_ = true;
  nodes_.set_advice(advice());
  if (!nodes_.is_first()) return;
  interrupt_.announce("finishing the iteration");
  if (directory_->holds_remains()) {
    progress_.note("replacing what a run that came to nothing (no model, no checkpoint) left in " + options_.out);
  }
  const std::size_t orphans = directory_->begin();
  if (orphans > 0) engine_->warn("removed " + std::to_string(orphans) + " half-written files of a killed run");
  say_warnings();
  if (!session_.dump_config.empty()) {
    write_result(session_.dump_config, [&](std::ostream& out) { out << request_.config; });
  }
  if (request_.probe != nullptr) request_.probe->begin();
  start_record();
}

void TrainRun::start_record() {
  record_.command = request_.command;
  record_.algorithm = request_.algorithm->info().name;
  Json parameters = parse_json(request_.algorithm->params().to_json());
  const Json common = parse_json(options_.params.to_json());
  for (const auto& [name, value] : common.items()) {
    if (name != "out") parameters[name] = value;
  }
  record_.parameters_json = json_text(parameters);
  record_.data_json = data_json();
  record_.format = request_.algorithm->data_summary().format;
  record_.topology_json = topology_record(engine_->topology());
  record_.threads = engine_->threads();
  record_.workers = workers_;
  record_.ranks = simulation_ ? simulation_->nodes : nodes_.count();
  record_.consistency = to_string(options_.consistency);
  record_.staleness = options_.staleness;
  record_.schedule = training_.schedule->name();
  record_.more_json.emplace_back("schedule_reason", json_text(Json(training_.schedule_reason)));
  record_.simd = std::string{to_string(engine_->simd())};
  record_.seed = options_.seed;
  record_.warnings = engine_->warnings();
  write_run_record(directory_->record_file(), record_);
}

// What a residual must come down to. It is judged by itself: its relative change does not get small near the solution.
// A target without a tolerance replaces the default one.
std::optional<double> TrainRun::residual_goal() const {
  const StopRules& stop = options_.stop;
  if (!stop.tolerance || (stop.target && !options_.params.was_set("tolerance"))) return stop.target;
  return std::max(stop.target.value_or(0), *stop.tolerance);
}

TrainOptions TrainRun::train_options() const {
  TrainOptions train;
  train.workers = workers_;
  train.stop = options_.stop;
  train.clocks_per_iteration = training_.clocks_per_iteration;
  train.evaluate_every = options_.valid_every;
  train.has_valid = !options_.valid.empty();
  if (!train.has_valid) train.stop.patience = 0;  // early stopping is on held-out data
  train.smaller_is_better = !train.has_valid || request_.algorithm->info().smaller_is_better;
  train.checkpoint_every = options_.checkpoint_every;
  if (request_.algorithm->info().objective_is_residual) {
    train.stop.target = residual_goal();
    train.stop.tolerance.reset();
  }
  return train;
}

TrainResult TrainRun::train_on_engine(TrainingObserver& observer) {
  const std::vector<StateSection>* start = resume_from_ ? &resume_from_->sections : nullptr;
  return train(*engine_, *training_.schedule, *training_.trainee, train_options(), observer, interrupt_.flag(), start);
}

TrainResult TrainRun::train_simulated(TrainingObserver& observer) try {
  const std::vector<StateSection>* start = resume_from_ ? &resume_from_->sections : nullptr;
  return simulated_->train(train_options(), observer, interrupt_.flag(), start);
} catch (const Error& error) {
  if (error.kind() != ErrorKind::lost) throw;
  throw Error(error.kind(), error.what() + advice());
}

TrainResult TrainRun::train_model() {
  if (!nodes_.is_first()) {
    TrainingObserver silent;
    TrainResult result = train_on_engine(silent);
    gather_warnings();
    return result;
  }
  MetricsFile metrics = resume_from_ ? MetricsFile(directory_->metrics_file(), resume_from_->clock)
                                     : MetricsFile(directory_->metrics_file());
  RunObserver observer(metrics, checkpoints_.get(), progress_, options_.stop.iterations,
                       options_.valid.empty() ? "" : request_.algorithm->info().metric, training_.items_per_iteration,
                       training_.item_name);
  TrainResult result = simulated_ ? train_simulated(observer) : train_on_engine(observer);
  gather_warnings();
  const bool residual = request_.algorithm->info().objective_is_residual;
  if (residual && result.stopped_by == StoppedBy::target && options_.stop.target != residual_goal()) {
    result.stopped_by = StoppedBy::tolerance;
  }
  if (checkpoints_) checkpoints_->wait();
  metrics.sync();
  progress_.clear();
  return result;
}

std::string TrainRun::write_model() {
  progress_.status("writing the model");
  const Algorithm& algorithm = *request_.algorithm;
  const Json metadata{{"orrery", orrery_version()},
                      {"algorithm", algorithm.info().name},
                      {"parameters", parse_json(request_.algorithm->params().to_json())}};
  ModelWriter writer(directory_->path());
  algorithm.write_model(writer, *engine_);
  std::string checksum = writer.finish(json_text(metadata));
  progress_.clear();
  return checksum;
}

std::string TrainRun::metric_name() const {
  return options_.valid.empty() ? "objective" : request_.algorithm->info().metric;
}

double TrainRun::metric_value(const Evaluation& evaluation) const {
  return evaluation.valid ? *evaluation.valid : evaluation.objective;
}

void TrainRun::finish_record(const TrainResult& result, const std::string& model_checksum) {
  if (!training_.trainee->accesses().empty()) {
    const bool writes_plan = !options_.plan_out.empty() && result.stopped_by != StoppedBy::interrupt;
    if (writes_plan && !has_accessed(*training_.trainee)) {
      engine_->warn("--plan-out: no iteration was run by this process, so the plan in " + options_.plan_out +
                    " says nothing");
    }
    const PlanScope scope{.rank = nodes_.node(), .since_iteration = resume_from_ ? resume_from_->clock : 0};
    record_.more_json.emplace_back("plan", plan_json(*training_.trainee, *engine_, result, scope, options_.plan));
  }
  RunResult& out = record_.result.emplace();
  out.iterations = result.iterations;
  out.seconds = result.seconds;
  out.seconds_loading = seconds_loading_;
  out.metric = metric_name();
  out.value = metric_value(result.final);
  out.stopped_by = std::string{to_string(result.stopped_by)};
  out.peak_rss_bytes = peak_rss_bytes();
  out.model_checksum = model_checksum;
  out.more = {{"best_iteration", result.best_iteration},
              {"objective", result.final.objective},
              {"wait_seconds", result.wait_seconds}};
  if (record_.ranks > 1) out.more.push_back({"units_lent", static_cast<double>(result.units_lent)});
  for (const auto& [name, value] : result.final.extra) out.more.push_back({name, value});
  say_warnings();
  record_.warnings = engine_->warnings();
  write_run_record(directory_->record_file(), record_);
}

// How to go on with a run that has not come to its end.
std::string TrainRun::advice() const {
  if (options_.checkpoint_every == 0) return "; checkpoints were off (--checkpoint-every), so nothing is kept";
  std::string text = "; go on with: ";
  if (nodes_.several()) text += "mpirun -n " + std::to_string(nodes_.count()) + " ";
  text += resume_command(request_.command);
  return text + (nodes_.several() ? " (any number of ranks will do)" : "");
}

int TrainRun::interrupted(const TrainResult& result) {
  finish_record(result, "");
  complain("orrery: interrupted after iteration " + std::to_string(result.iterations) + advice() + "\n");
  return kInterrupted;
}

void TrainRun::begin_step(std::string doing) {
  stop_if_interrupted();
  doing_ = std::move(doing);
  progress_.status(doing_);
}

void TrainRun::stop_if_interrupted() const {
  if (files_started_ || !interrupt_.requested()) return;
  throw Error(ErrorKind::interrupted, "interrupted while " + doing_ + "; nothing was written");
}

void TrainRun::print_summary(const TrainResult& result) const {
  if (session_.quiet) return;
  std::string text = request_.algorithm->info().name + ": " + std::to_string(result.iterations) + " iterations, " +
                     fixed_text(result.seconds, 2) + " s of training, " + fixed_text(seconds_loading_, 2) +
                     " s of loading; stopped by " + std::string{to_string(result.stopped_by)} + "\n";
  if (result.best_iteration != result.iterations) {
    text += "kept the model of iteration " + std::to_string(result.best_iteration) + ", the best on held-out data\n";
  }
  text += (options_.valid.empty() ? "" : "held-out ") + metric_name() + " " +
          fixed_text(metric_value(result.final), 5) + "\n";
  if (simulated_) {
    text += "on the simulated cluster: " + fixed_text(simulated_->time(), 3) +
            " s of virtual time, of which the busiest node computes " + fixed_text(simulated_->busiest(), 3) +
            " s and waits for the rest, " + fixed_text(static_cast<double>(simulated_->bytes_sent()) / 1e6, 3) +
            " MB sent, " + std::to_string(simulated_->reads_checked()) + " reads held against the contract\n";
  }
  print(text + "model in " + directory_->model_directory().string() + "\n");
}

int TrainRun::exit_code(StoppedBy reason) const {
  const bool goal = options_.stop.target.has_value() && options_.params.was_set("target");
  const bool rest = options_.stop.tolerance.has_value() && options_.params.was_set("tolerance");
  const bool reached = reason == StoppedBy::target || (reason == StoppedBy::tolerance && rest);
  if ((!goal && !rest) || reached) return kDone;
  progress_.note(std::string{goal ? "--target" : "--tolerance"} + " was not reached: stopped by " +
                 std::string{to_string(reason)});
  return kNotReached;
}

void TrainRun::gather_warnings() {
  if (!nodes_.several()) return;
  const std::vector<std::string> all = nodes_.exchange(json_text(Json(engine_->warnings())));
  if (!nodes_.is_first()) return;
  const std::vector<std::string> mine = engine_->warnings();
  for (NodeId rank = 1; rank < all.size(); ++rank) {
    for (const std::string& warning : parse_json(all[rank]).get<std::vector<std::string>>()) {
      if (std::find(mine.begin(), mine.end(), warning) != mine.end()) continue;
      engine_->warn("rank " + std::to_string(rank) + ": " + warning);
    }
  }
  say_warnings();
}

void TrainRun::say_warnings() {
  if (!nodes_.is_first()) return;
  const std::vector<std::string> warnings = engine_->warnings();
  for (; warnings_said_ < warnings.size(); ++warnings_said_) progress_.warn(warnings[warnings_said_]);
}

}  // namespace orrery::tools
