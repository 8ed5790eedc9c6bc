#include "tools/run_options.h"

#include "engine/error.h"
#include "engine/simd.h"

namespace orrery::tools {

namespace {

constexpr int kMostThreads = 4096;

void add_simd(ParamSet& params, std::string& field) {
  params.add("simd", field, "kernels: auto, portable, avx2 or avx512; bits are the same for the same level");
}

}  // namespace

RunOptions::RunOptions(const StopRules& defaults) : stop(defaults) {
  params.add("out", out, "directory of the run")
      .add("threads", threads, "at most so many threads run; auto: the cores this process may use",
           between(1, kMostThreads))
      .add("workers", workers, "logical workers; the result depends on them, not on threads; auto: from the data",
           at_least(1))
      .add_choice("consistency", consistency, "how stale a read may be",
                  {{"bsp", Consistency::bsp},
                   {"ssp", Consistency::ssp},
                   {"essp", Consistency::essp},
                   {"async", Consistency::async}})
      .add("staleness", staleness, "most clocks between two workers; alone it means ssp", at_least(0))
      .add("schedule", schedule, "a schedule that the algorithm offers; auto takes its first")
      .add("groups", groups,
           "above 1: so many groups of workers, each with a replica of what rotates (schedule hybrid of mf and lda); "
           "the "
           "result depends on it",
           at_least(1))
      .add("seed", seed, "of all random numbers")
      .add("iterations", stop.iterations, "stop after so many", at_least(0))
      .add("max-seconds", stop.max_seconds, "stop after so much training time; auto: no limit", above(0))
      .add("target", stop.target, "stop once the primary metric is this good; auto: no target")
      .add("tolerance", stop.tolerance,
           "stop once the objective changes by less, relatively, or is below if it is a residual; auto: no such rule",
           above(0))
      .add("patience", stop.patience, "stop after so many evaluations without a better held-out metric; 0: never",
           at_least(0))
      .add("valid", valid, "held-out data, evaluated during the run")
      .add("valid-every", valid_every, "iterations between two evaluations", at_least(1))
      .add("checkpoint-every", checkpoint_every, "iterations between two checkpoints; 0: none", at_least(0))
      .add("init", init, "run or model directory to start from")
      .add("memory-limit", memory_limit,
           "refuse a run that needs more (512M, 24G), or stream its data from disk where the algorithm can (lda); "
           "empty: physical memory")
      .add_choice(
          "reassign", reassign,
          "on several nodes, units of a node that falls behind run on others (mf by rotation), never with other "
          "bits; auto: when it pays",
          {{"auto", Reassign::when_it_pays}, {"off", Reassign::off}, {"always", Reassign::always}})
      .add_choice("plan", plan, "learn what a program on tables accesses, and serve it by slot",
                  {{"on", true}, {"off", false}})
      .add("plan-out", plan_out, "file for the learned plan; empty: none")
      .add("plan-in", plan_in, "plan of an earlier run on the same data with as many workers; empty: learn")
      .add("topology", topology, "synthetic topology such as \"numa:2 core:4 pu:1\"; empty: the machine")
      .add("simulate", simulate,
           "run on a cluster in virtual time, such as \"nodes:8 delay:1ms rate:1Gb straggler:slow:2x\"; "
           "compute:measured lets a unit cost what it takes here; empty: do not")
      .add("format", format, "format of the data; empty: recognised from the content")
      .add("verify", verify, "check the defining property at the end");
  add_simd(params, simd);
}

void RunOptions::settle_consistency() {
  const bool chosen = params.was_set("consistency");
  if (!chosen && staleness > 0) consistency = Consistency::ssp;
  if (staleness > 0 && consistency == Consistency::bsp) {
    throw usage_error("--consistency bsp means --staleness 0, got --staleness " + std::to_string(staleness) +
                      "; leave --consistency out, or say ssp");
  }
  if (staleness > 0 && consistency == Consistency::async) {
    throw usage_error("--consistency async has no bound, got --staleness " + std::to_string(staleness));
  }
}

namespace {

EngineOptions common_options(const std::optional<int>& threads, const std::string& simd) {
  EngineOptions options;
  options.threads = threads ? static_cast<unsigned>(*threads) : 0;
  if (simd != "auto") options.simd = resolve_simd(simd);
  return options;
}

}  // namespace

EngineOptions RunOptions::engine_options() const {
  EngineOptions options = common_options(threads, simd);
  options.consistency = consistency;
  options.staleness = staleness;
  options.seed = seed;
  options.reassign = reassign;
  options.plan = plan;
  options.topology = topology;
  return options;
}

void take_choices(const ParamSet& from, ParamSet& to) {
  for (const std::string& name : from.names()) {
    if (from.was_set(name)) to.set(name, from.get(name));
  }
}

SessionOptions::SessionOptions() {
  params.add("resume", resume, "go on with the unfinished run in --out")
      .add("overwrite", overwrite, "replace the run in --out")
      .add("config", config, "take everything not said here from this file")
      .add("dump-config", dump_config, "write the whole run as a config file, then train")
      .add_choice("progress", progress, "status line on stderr; auto: when it is a terminal",
                  {{"auto", ProgressMode::automatic}, {"on", ProgressMode::on}, {"off", ProgressMode::off}})
      .add("quiet", quiet, "no progress, no summary; errors and warnings only");
}

ModelOptions::ModelOptions() {
  params.add("model", model, "directory of a run or of a model")
      .add("format", format, "format of the data; empty: recognised from the content")
      .add("threads", threads, "at most so many threads run; auto: the cores this process may use",
           between(1, kMostThreads));
  add_simd(params, simd);
}

EngineOptions ModelOptions::engine_options() const { return common_options(threads, simd); }

}  // namespace orrery::tools
