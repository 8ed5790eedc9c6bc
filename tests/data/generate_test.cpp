// Generators: a plan makes the same data every time and on any threads, the data has the statistics that the plan says,
// and the known answer is the answer.
#include "engine/data/generate.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "engine/data/corpus.h"
#include "engine/data/dense.h"
#include "engine/data/draws.h"
#include "engine/data/edges.h"
#include "engine/data/portable_math.h"
#include "engine/data/ratings.h"
#include "engine/data/sparse_rows.h"
#include "tests/data/data_test_support.h"

namespace orrery::testing {
namespace {

class Generators : public DataTest {};

RatingsPlan small_ratings() {
  RatingsPlan plan;
  plan.users = 400;
  plan.items = 300;
  plan.ratings = 30000;
  plan.rank = 4;
  plan.decimals = 4;
  plan.test_fraction = 0.2;
  plan.seed = 7;
  return plan;
}

TEST_F(Generators, are_functions_of_the_plan_alone) {
  const auto same = [&](const std::string& name, const auto& write) {
    write(path(name + "1"), ParallelFor(serial_for));
    write(path(name + "2"), ParallelFor(threaded_for));
    write(path(name + "3"), ParallelFor(shuffled_for));
    EXPECT_EQ(read(path(name + "1")), read(path(name + "2"))) << name;
    EXPECT_EQ(read(path(name + "1")), read(path(name + "3"))) << name;
    EXPECT_GT(read(path(name + "1")).size(), 1000U);
  };
  same("ratings",
       [&](const std::string& to, const ParallelFor& loop) { write_ratings(small_ratings(), to, to + "t", loop); });
  same("sparse", [](const std::string& to, const ParallelFor& loop) { write_sparse({.rows = 1500}, to, loop); });
  same("corpus",
       [](const std::string& to, const ParallelFor& loop) { write_corpus({.documents = 200}, to, {}, loop); });
  same("graph", [](const std::string& to, const ParallelFor& loop) { write_graph({}, to, loop); });
  same("dense", [](const std::string& to, const ParallelFor& loop) { write_dense({.rows = 700}, to, loop); });
  write_graph({.seed = 1}, path("a"));
  write_graph({.seed = 2}, path("b"));
  EXPECT_NE(read(path("a")), read(path("b")));
}

TEST_F(Generators, of_ratings_make_distinct_pairs_of_the_shape_asked_for) {
  const RatingsPlan plan = small_ratings();
  write_ratings(plan, path("train"), path("test"));
  const RatingsData train = read_ratings(path("train")), test = read_ratings(path("test"));
  EXPECT_EQ(train.ratings.size(), 24000U);
  EXPECT_EQ(test.ratings.size(), 6000U);
  const GeneratedRatings made = generate_ratings(plan);
  EXPECT_EQ(count_duplicates(made.ratings), 0U);
  EXPECT_EQ(made.training, 24000U);
  EXPECT_NEAR(train.mean, plan.mean, 0.15);
}

TEST_F(Generators, of_ratings_know_the_error_that_nobody_beats) {
  const RatingsPlan plan = small_ratings();
  const GeneratedRatings made = generate_ratings(plan);
  EXPECT_NEAR(made.truth.oracle_rmse, plan.noise, 0.01);
  EXPECT_NEAR(made.truth.oracle_rmse_test, plan.noise, 0.02);
  double squares = 0, interaction = 0;
  for (std::uint64_t i = 0; i < made.ratings.size(); ++i) {
    const Rating& r = made.ratings[i];
    double product = 0;
    for (std::uint32_t k = 0; k < plan.rank; ++k) {
      product += made.truth.user_factors[r.user * plan.rank + k] * made.truth.item_factors[r.item * plan.rank + k];
    }
    const double error = static_cast<double>(r.value) -
                         (plan.mean + made.truth.user_bias[r.user] + made.truth.item_bias[r.item] + product);
    squares += error * error;
    interaction += product * product;
  }
  const auto n = static_cast<double>(made.ratings.size());
  EXPECT_NEAR(std::sqrt(squares / n), made.truth.oracle_rmse, 1e-4);
  EXPECT_NEAR(std::sqrt(interaction / n), plan.interaction, 0.15);
}

TEST_F(Generators, of_ratings_keep_to_the_scale_and_its_steps) {
  RatingsPlan plan = small_ratings();
  plan.lowest = 1;
  plan.highest = 5;
  plan.decimals = 0;
  const GeneratedRatings made = generate_ratings(plan);
  for (std::uint64_t i = 0; i < made.ratings.size(); ++i) {
    const float value = made.ratings[i].value;
    ASSERT_TRUE(value >= 1 && value <= 5 && value == std::floor(value)) << value;
  }
}

TEST_F(Generators, of_ratings_make_some_items_popular) {
  RatingsPlan plan = small_ratings();
  plan.items = 3000;
  plan.zipf = 1;
  const GeneratedRatings made = generate_ratings(plan);
  std::vector<std::uint64_t> counts(plan.items, 0);
  for (std::uint64_t i = 0; i < made.ratings.size(); ++i) ++counts[made.ratings[i].item];
  std::sort(counts.rbegin(), counts.rend());
  const auto top = std::accumulate(counts.begin(), counts.begin() + 300, std::uint64_t{0});
  EXPECT_GT(static_cast<double>(top), 0.45 * static_cast<double>(made.ratings.size()));
}

TEST_F(Generators, refuse_impossible_plans) {
  RatingsPlan plan;
  plan.users = 3;
  plan.items = 10;
  plan.ratings = 16;
  EXPECT_THAT(error_of([&] { generate_ratings(plan); }, ErrorKind::usage),
              ::testing::HasSubstr("at most half of all pairs"));
  plan.ratings = 15;
  EXPECT_EQ(generate_ratings(plan).ratings.size(), 15U);
  EXPECT_THAT(error_of([&] { write_graph({.a = 0.9, .b = 0.9}, path("g")); }, ErrorKind::usage),
              ::testing::HasSubstr("probabilities"));
  EXPECT_THAT(error_of([&] { write_sparse({.entries_per_row = 3, .group = 3}, path("s")); }, ErrorKind::usage),
              ::testing::HasSubstr("divide"));
  EXPECT_THAT(error_of([&] { write_sparse({.columns = 4, .entries_per_row = 4}, path("s")); }, ErrorKind::usage),
              ::testing::HasSubstr("half"));
  EXPECT_EQ(files_here(), 0U);
}

TEST_F(Generators, of_sparse_rows_label_by_the_known_weights) {
  const SparsePlan plan{.rows = 3000, .columns = 500, .entries_per_row = 15, .nonzero_weights = 40, .noise = 0.2};
  const SparseTruth truth = write_sparse(plan, path("s"));
  const SparseData data = read_svmlight(path("s"));
  ASSERT_EQ(data.rows.rows(), plan.rows);
  double squares = 0;
  for (std::uint64_t r = 0; r < plan.rows; ++r) {
    ASSERT_EQ(data.rows.starts[r + 1] - data.rows.starts[r], plan.entries_per_row);
    double score = 0;
    for (std::uint64_t e = data.rows.starts[r]; e < data.rows.starts[r + 1]; ++e) {
      score += truth.weights[data.rows.columns[e]] * static_cast<double>(data.rows.values[e]);
    }
    squares += (data.rows.labels[r] - score) * (data.rows.labels[r] - score);
  }
  EXPECT_NEAR(squares / static_cast<double>(plan.rows), truth.oracle_loss, 1e-4);
  EXPECT_NEAR(truth.oracle_loss, 0.04, 0.004);
  EXPECT_EQ(std::count_if(truth.weights.begin(), truth.weights.end(), [](double w) { return w != 0; }), 40);
}

TEST_F(Generators, of_sparse_rows_let_columns_of_a_group_occur_together_and_correlate) {
  const SparsePlan plan{.rows = 2000, .columns = 60, .entries_per_row = 12, .group = 4, .correlation = 0.7};
  write_sparse(plan, path("s"));
  const SparseRows rows = read_svmlight(path("s")).rows;
  double product = 0, square = 0;
  for (std::uint64_t e = 0; e < rows.entries(); e += 4) {
    ASSERT_EQ(rows.columns[e] % 4, 0U);
    for (std::uint64_t k = 1; k < 4; ++k) {
      ASSERT_EQ(rows.columns[e + k], rows.columns[e] + k);
      product += double{rows.values[e]} * double{rows.values[e + k]};
      square += double{rows.values[e + k]} * double{rows.values[e + k]};
    }
  }
  EXPECT_NEAR(square / (2000 * 9), 1, 0.05);
  EXPECT_NEAR(product / square, 0.7, 0.05);
}

TEST_F(Generators, of_classes_draw_labels_with_the_true_probabilities) {
  SparsePlan plan{.rows = 4000, .columns = 60, .entries_per_row = 20, .nonzero_weights = 60, .classes = 2};
  const SparseTruth two = write_sparse(plan, path("two"));
  EXPECT_EQ(read_svmlight(path("two")).labels.describe(), "-1/1");
  EXPECT_GT(two.oracle_accuracy, 0.7);
  EXPECT_LT(two.oracle_loss, std::log(2.0));
  plan.classes = 4;
  const SparseTruth four = write_sparse(plan, path("four"));
  EXPECT_EQ(read_svmlight(path("four")).labels.describe(), "1..4");
  EXPECT_GT(four.oracle_accuracy, 0.5);
  EXPECT_LT(four.oracle_loss, std::log(4.0));
  EXPECT_EQ(four.weights.size(), 240U);
}

TEST_F(Generators, of_corpora_draw_words_from_the_known_topics) {
  const CorpusPlan plan{.documents = 2000, .words = 50, .topics = 3, .mean_length = 40, .alpha = 0.5, .beta = 0.5};
  const CorpusTruth truth = write_corpus(plan, path("c"), path("v"));
  CorpusOptions options;
  options.vocabulary_path = path("v");
  const CorpusData data = read_corpus(path("c"), options);
  EXPECT_EQ(data.corpus.documents(), plan.documents);
  EXPECT_EQ(data.corpus.tokens, truth.tokens);
  EXPECT_NEAR(static_cast<double>(truth.tokens) / plan.documents, plan.mean_length + 1, 1);
  // Mixtures are symmetric, so over all documents a word is as frequent as it is in the mean topic.
  std::vector<double> counts(plan.words, 0), expected(plan.words, 0);
  for (std::uint64_t c = 0; c < data.corpus.cells(); ++c) counts[data.corpus.words[c]] += data.corpus.counts[c];
  for (std::size_t i = 0; i < truth.topics.size(); ++i) expected[i % plan.words] += truth.topics[i] / plan.topics;
  for (std::uint32_t w = 0; w < plan.words; ++w) {
    EXPECT_NEAR(counts[w] / static_cast<double>(truth.tokens), expected[w], 0.006);
  }
  EXPECT_LT(truth.oracle_log_likelihood, 0);
  EXPECT_GT(truth.oracle_log_likelihood, -std::log(50.0)) << "better than knowing nothing";
}

TEST_F(Generators, of_corpora_follow_the_law_of_zipf_when_told) {
  const CorpusPlan plan{.documents = 3000, .words = 60, .topics = 40, .alpha = 1, .beta = 1, .zipf = 1};
  write_corpus(plan, path("c"));
  const CorpusData data = read_corpus(path("c"), {});
  std::vector<double> counts(plan.words, 0), expected(plan.words);
  for (std::uint64_t c = 0; c < data.corpus.cells(); ++c) counts[data.corpus.words[c]] += data.corpus.counts[c];
  double sum = 0;
  for (std::uint32_t w = 0; w < plan.words; ++w) sum += expected[w] = 1.0 / (w + 1);
  // The mean of 40 topics, each a draw: word w is of variance share (1 - share) / 61 in one.
  for (std::uint32_t w = 0; w < plan.words; ++w) {
    const double share = expected[w] / sum;
    EXPECT_NEAR(counts[w] / static_cast<double>(data.corpus.tokens), share, 5 * std::sqrt(share / 61 / 40)) << w;
  }
}

TEST_F(Generators, of_graphs_put_edges_into_the_quadrants_as_told) {
  const GraphPlan plan{.scale = 8, .edges = 40000, .a = 0.5, .b = 0.2, .c = 0.2};
  write_graph(plan, path("g"));
  const EdgeData data = read_edges(path("g"));
  ASSERT_EQ(data.edges.size(), plan.edges);
  double quadrants[4] = {};
  for (const Edge& edge : data.edges) {
    const bool down = std::stoul(data.nodes.text(edge.source)) >= 128,
               right = std::stoul(data.nodes.text(edge.target)) >= 128;
    quadrants[(down ? 2 : 0) + (right ? 1 : 0)] += 1.0 / 40000;
  }
  const double expected[4] = {0.5, 0.2, 0.2, 0.1};
  for (int q = 0; q < 4; ++q) EXPECT_NEAR(quadrants[q], expected[q], 0.015);
}

TEST_F(Generators, of_tables_correlate_neighbours_and_write_either_format) {
  const DensePlan plan{.rows = 3000, .columns = 6, .nonzero_weights = 3, .correlation = 0.8, .noise = 0.1};
  const DenseTruth truth = write_dense(plan, path("d.csv"));
  write_dense(plan, path("d.npy"));
  DenseOptions options;
  options.label = "y";
  const DenseData data = read_dense(path("d.csv"), options);
  EXPECT_EQ(read_dense(path("d.npy")).matrix.values, read_dense(path("d.csv")).matrix.values) << "the same bits";
  double product = 0, squares = 0;
  for (std::uint64_t r = 0; r < plan.rows; ++r) {
    const auto row = data.matrix.row(r);
    product += row[2] * row[3];
    double score = 0;
    for (std::uint32_t c = 0; c < plan.columns; ++c) score += truth.weights[c] * row[c];
    squares += (data.label_values[r] - score) * (data.label_values[r] - score);
  }
  EXPECT_NEAR(product / 3000, 0.8, 0.08);
  EXPECT_NEAR(squares / 3000, truth.oracle_loss, 1e-9);
}

TEST(Draws, follow_their_distributions) {
  RandomStream random = Random(3, Purpose::test).stream(0, 0);
  const std::vector<double> weights = {1, 0, 3, 6};
  const AliasTable table(weights);
  std::vector<double> seen(4, 0);
  for (int i = 0; i < 40000; ++i) seen[table.draw(random)] += 1.0 / 40000;
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(seen[i], weights[i] / 10, 0.01);
  for (const double shape : {0.3, 1.0, 4.0}) {
    double sum = 0, squares = 0;
    for (int i = 0; i < 20000; ++i) {
      const double x = draw_gamma(shape, random);
      sum += x / 20000;
      squares += x * x / 20000;
    }
    EXPECT_NEAR(sum, shape, 0.05 * std::sqrt(shape));
    EXPECT_NEAR(squares - sum * sum, shape, 0.12 * shape);
  }
  double mean = 0;
  for (int i = 0; i < 2000; ++i) mean += static_cast<double>(draw_poisson(700, random)) / 2000;
  EXPECT_NEAR(mean, 700, 3);
}

TEST(Draws, own_exp_and_log_are_those_of_the_library_to_a_few_ulp) {
  for (double x = -700; x < 700; x += 0.7313) EXPECT_NEAR(portable_exp(x) / std::exp(x), 1, 1e-14) << x;
  for (double x = 1e-300; x < 1e300; x *= 3.7)
    EXPECT_NEAR(portable_log(x), std::log(x), 1e-15 * std::max(1.0, std::fabs(std::log(x)))) << x;
  EXPECT_EQ(portable_exp(0), 1);
  EXPECT_EQ(portable_log(1), 0);
  EXPECT_EQ(portable_exp(-1e9), 0);
}

}  // namespace
}  // namespace orrery::testing
