// `orrery data generate KIND`: synthetic data with a known answer, printed so that a model can be held against it.
#include <filesystem>
#include <string>
#include <vector>

#include "engine/data/generate.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/metrics.h"
#include "engine/params.h"
#include "tools/commands.h"
#include "tools/output.h"

namespace orrery::tools {

namespace {

/// What every kind takes beside its plan.
struct Common {
  std::string out;
  std::string second;  ///< --test-out or --vocab-out, where there is one
  std::optional<int> threads;
  bool json = false;
};

/// Parses the words of one kind and lets `make` write the data and say the known answer.
template <class Make>
int generate(const char* kind, const char* summary, ParamSet& plan, Common& common, Words words, Make make) {
  plan.add("out", common.out, "file to write")
      .add("threads", common.threads, "at most so many threads run; auto: the cores this process may use",
           between(1, 4096))
      .add("json", common.json, "the known answer as JSON");
  Arguments arguments(std::string{"data generate "} + kind, summary);
  if (!arguments.options(plan).require("out").parse(words)) return kDone;
  if (!common.second.empty() &&
      std::filesystem::weakly_canonical(common.second) == std::filesystem::weakly_canonical(common.out)) {
    throw usage_error("--out and the second file are both " + orrery::quoted(common.out));
  }
  EngineOptions options;
  options.threads = common.threads ? static_cast<unsigned>(*common.threads) : 0;
  Engine engine(options);
  print_values(make(engine.parallel_for_function()), common.json);
  return kDone;
}

int generate_ratings_file(Words words) {
  RatingsPlan plan;
  Common common;
  ParamSet params;
  params.add("users", plan.users, "users", at_least(1))
      .add("items", plan.items, "items", at_least(1))
      .add("ratings", plan.ratings, "ratings, at most half of all pairs", at_least(1))
      .add("rank", plan.rank, "factors of the true model", at_least(1))
      .add("mean", plan.mean, "mean rating")
      .add("user-bias", plan.user_bias, "standard deviation of user biases", at_least(0))
      .add("item-bias", plan.item_bias, "standard deviation of item biases", at_least(0))
      .add("interaction", plan.interaction, "standard deviation of the products of factors", at_least(0))
      .add("noise", plan.noise, "standard deviation of the noise", at_least(0))
      .add("zipf", plan.zipf, "exponent of item popularity", at_least(0))
      .add("activity", plan.activity, "standard deviation of the logarithm of a user's share", at_least(0))
      .add("lowest", plan.lowest, "ratings are cut below")
      .add("highest", plan.highest, "ratings are cut above")
      .add("decimals", plan.decimals, "digits after the point", between(0, 9))
      .add("test-share", plan.test_fraction, "share of the ratings that goes to --test-out", from_to_below(0, 1))
      .add("test-out", common.second, "file for the test part")
      .add("seed", plan.seed, "of all random numbers");
  return generate("ratings", "Writes ratings of a low-rank model with biases and noise.", params, common, words,
                  [&](const ParallelFor& parallel) {
                    if ((plan.test_fraction > 0) == common.second.empty()) {
                      throw usage_error("--test-share and --test-out belong together");
                    }
                    const RatingsTruth truth = write_ratings(plan, common.out, common.second, parallel);
                    ValueList answer{{"oracle_rmse", truth.oracle_rmse}};
                    if (plan.test_fraction > 0) answer.push_back({"oracle_rmse_test", truth.oracle_rmse_test});
                    return answer;
                  });
}

int generate_sparse_file(Words words) {
  SparsePlan plan;
  Common common;
  ParamSet params;
  params.add("rows", plan.rows, "rows", at_least(1))
      .add("columns", plan.columns, "columns", at_least(1))
      .add("entries-per-row", plan.entries_per_row, "entries of a row", at_least(1))
      .add("group", plan.group, "neighbouring columns that occur in the same rows", at_least(1))
      .add("correlation", plan.correlation, "of the values in a group", between(0, 1))
      .add("nonzero-weights", plan.nonzero_weights, "true weights that are not 0", at_least(0))
      .add("classes", plan.classes, "0: regression; 2: -1 and 1; K: 1 to K", at_least(0))
      .add("weight-scale", plan.weight_scale, "standard deviation of the true weights", at_least(0))
      .add("noise", plan.noise, "regression: standard deviation of the noise", at_least(0))
      .add("seed", plan.seed, "of all random numbers");
  return generate("sparse", "Writes svmlight rows with labels from known sparse weights.", params, common, words,
                  [&](const ParallelFor& parallel) {
                    const SparseTruth truth = write_sparse(plan, common.out, parallel);
                    ValueList answer{{"oracle_loss", truth.oracle_loss}};
                    if (plan.classes > 0) answer.push_back({"oracle_accuracy", truth.oracle_accuracy});
                    return answer;
                  });
}

int generate_corpus_file(Words words) {
  CorpusPlan plan;
  Common common;
  ParamSet params;
  params.add("documents", plan.documents, "documents", at_least(1))
      .add("words", plan.words, "size of the vocabulary", at_least(1))
      .add("topics", plan.topics, "true topics", at_least(1))
      .add("mean-length", plan.mean_length, "mean number of words of a document", at_least(0))
      .add("alpha", plan.alpha, "concentration of a document's topics", above(0))
      .add("beta", plan.beta, "concentration of a topic's words", above(0))
      .add("zipf", plan.zipf, "how much more frequent low words are: the n-th as n to the power of minus this",
           at_least(0))
      .add("vocab-out", common.second, "file for the vocabulary; empty: none")
      .add("seed", plan.seed, "of all random numbers");
  return generate("corpus", "Writes a docword corpus from known topics.", params, common, words,
                  [&](const ParallelFor& parallel) {
                    const CorpusTruth truth = write_corpus(plan, common.out, common.second, parallel);
                    return ValueList{{"tokens", static_cast<std::int64_t>(truth.tokens)},
                                     {"oracle_log_likelihood", truth.oracle_log_likelihood}};
                  });
}

int generate_graph_file(Words words) {
  GraphPlan plan;
  Common common;
  ParamSet params;
  params.add("scale", plan.scale, "2^scale possible nodes", between(1, 31))
      .add("edges", plan.edges, "edges", at_least(1))
      .add("a", plan.a, "probability of the first quadrant", between(0, 1))
      .add("b", plan.b, "probability of the second quadrant", between(0, 1))
      .add("c", plan.c, "probability of the third quadrant", between(0, 1))
      .add("seed", plan.seed, "of all random numbers");
  return generate("graph", "Writes an R-MAT graph as an edge list.", params, common, words,
                  [&](const ParallelFor& parallel) {
                    write_graph(plan, common.out, parallel);
                    return ValueList{{"edges", static_cast<std::int64_t>(plan.edges)}};
                  });
}

int generate_dense_file(Words words) {
  DensePlan plan;
  Common common;
  ParamSet params;
  params.add("rows", plan.rows, "rows", at_least(1))
      .add("columns", plan.columns, "columns", at_least(1))
      .add("nonzero-weights", plan.nonzero_weights, "true weights that are not 0", at_least(0))
      .add("correlation", plan.correlation, "of neighbouring columns", between(-1, 1))
      .add("noise", plan.noise, "standard deviation of the noise", at_least(0))
      .add("seed", plan.seed, "of all random numbers");
  return generate("dense", "Writes a table for regression, label last: CSV, or .npy by the name of --out.", params,
                  common, words, [&](const ParallelFor& parallel) {
                    return ValueList{{"oracle_loss", write_dense(plan, common.out, parallel).oracle_loss}};
                  });
}

}  // namespace

int generate_command(Words words) {
  struct Kind {
    const char* name;
    int (*run)(Words);
  };
  constexpr Kind kKinds[] = {{"ratings", generate_ratings_file},
                             {"sparse", generate_sparse_file},
                             {"corpus", generate_corpus_file},
                             {"graph", generate_graph_file},
                             {"dense", generate_dense_file}};
  std::vector<std::string> names;
  std::string listed;
  for (const Kind& kind : kKinds) {
    names.emplace_back(kind.name);
    listed += (listed.empty() ? "" : ", ") + names.back();
  }
  const std::string usage = "orrery data generate KIND --out FILE [options]; KIND is one of " + listed;
  if (words.empty()) throw usage_error("KIND is missing; usage: " + usage);
  for (const Kind& kind : kKinds) {
    if (words.front() == kind.name) return kind.run(words.subspan(1));
  }
  if (words.front() == "--help" || words.front() == "-h") {
    print("Usage: " + usage + "\norrery data generate KIND --help lists the options of a kind.\n");
    return kDone;
  }
  throw usage_error("unknown kind " + orrery::quoted(words.front()) + suggestion(words.front(), names) +
                    "; usage: " + usage);
}

}  // namespace orrery::tools
