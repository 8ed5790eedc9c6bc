// One run of `orrery train`, from the directory to the exit code. Keeps the promises of design sections 10 and 11 on
// the side of files: nothing is written before the input has been read, everything appears whole or not at all, and a
// run that was killed or interrupted goes on to the same bits.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "engine/checkpoint_store.h"
#include "engine/engine.h"
#include "engine/interrupt.h"
#include "engine/progress.h"
#include "engine/run_directory.h"
#include "engine/run_record.h"
#include "engine/training.h"
#include "tools/nodes.h"
#include "tools/run_options.h"
#include "tools/run_probe.h"
#include "tools/simulated_training.h"

namespace orrery::tools {

/// Everything that has been said about a run before it starts.
struct TrainRequest {
  const AlgorithmEntry* entry = nullptr;
  std::unique_ptr<Algorithm> algorithm;  ///< its params() are set
  std::string data;
  std::string config;                ///< the whole run as a config file, for --dump-config
  std::vector<std::string> command;  ///< as typed, for run.json and for the words on how to resume
  RunProbe* probe = nullptr;         ///< watches a run on one node; null: nobody does
};

/// One use: construct, run(). The calls of run() are its steps, in order.
class TrainRun {
 public:
  /// Everything must outlive it. On several nodes each of them makes one, and the first does the files.
  TrainRun(TrainRequest& request, RunOptions& options, const SessionOptions& session, Progress& progress, Nodes& nodes,
           InterruptGuard& interrupt);
  ~TrainRun();

  /// Returns the exit code of a run that did not throw: 0, 1 (a goal was not reached), 4 (--verify), 130.
  int run();

 private:
  void check_options();
  std::vector<std::string> files_read() const;
  void check_groups() const;
  void check_config_file() const;
  void check_nodes() const;
  void agree_on_command();
  DataRequest data_request() const;
  std::pair<std::uint64_t, std::string> memory_limit() const;
  std::optional<SimdLevel> agreed_simd();
  void open_engine();
  void load();
  void check_memory();
  void prepare();
  void find_checkpoint();
  void read_checkpoint_of_first();
  void spread_checkpoint();
  void compare_with_record(const Fingerprint& mine) const;
  void start_files();
  void start_record();
  TrainResult train_model();
  std::string write_model();
  void finish_record(const TrainResult& result, const std::string& model_checksum);
  int interrupted(const TrainResult& result);
  void print_summary(const TrainResult& result) const;
  bool verified();
  int exit_code(StoppedBy reason) const;

  Fingerprint fingerprint() const;
  TrainOptions train_options() const;
  TrainResult train_simulated(TrainingObserver& observer);
  TrainResult train_on_engine(TrainingObserver& observer);
  std::string advice() const;
  std::optional<double> residual_goal() const;
  std::string data_json() const;
  std::string metric_name() const;
  double metric_value(const Evaluation& evaluation) const;
  void say_warnings();
  /// Those that other nodes have and the first has not.
  void gather_warnings();
  /// Names what is done next, for the status line and for stop_if_interrupted().
  void begin_step(std::string doing);
  /// @throws Error (interrupted) as long as nothing has been written that a stop would leave half done.
  void stop_if_interrupted() const;

  TrainRequest& request_;
  RunOptions& options_;
  const SessionOptions& session_;
  Progress& progress_;
  Nodes& nodes_;
  InterruptGuard& interrupt_;
  std::string doing_ = "starting threads";
  bool files_started_ = false;

  std::unique_ptr<RunDirectory> directory_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<CheckpointStore> checkpoints_;
  std::optional<Checkpoint> resume_from_;
  WorkerId workers_ = 0;
  Training training_;
  std::optional<SimulationSpec> simulation_;
  std::unique_ptr<SimulatedTraining> simulated_;  ///< with --simulate
  RunRecord record_;
  double seconds_loading_ = 0;
  std::size_t warnings_said_ = 0;
};

}  // namespace orrery::tools
