// Synthetic data with a known answer, one kind for each kind of input. A data set is a function of its plan (the seed
// included) alone: not of threads, and not of the machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/data/parallel_for.h"
#include "engine/data/rating_store.h"

namespace orrery {

/// Ratings: mean + user bias + item bias + p·q + noise, cut to [lowest, highest] and rounded to `decimals` digits.
/// Items are popular by Zipf's law, users active by a log-normal one. No pair occurs twice.
struct RatingsPlan {
  std::uint32_t users = 1000;
  std::uint32_t items = 500;
  std::uint64_t ratings = 50000;  ///< at most half of all pairs
  std::uint32_t rank = 10;
  double mean = 3.5;
  double user_bias = 0.3;  ///< standard deviations
  double item_bias = 0.4;
  double interaction = 0.6;  ///< of p·q
  double noise = 0.5;
  double zipf = 0.8;      ///< exponent of item popularity
  double activity = 0.8;  ///< standard deviation of the logarithm of a user's share
  double lowest = -1e9;
  double highest = 1e9;
  int decimals = 2;
  double test_fraction = 0;  ///< of the ratings, drawn at random, for a second file
  std::uint64_t seed = 1;
};

/// The model that the ratings were drawn from, and how well it predicts them: nobody can do better on new data.
struct RatingsTruth {
  std::vector<double> user_bias, item_bias;
  std::vector<double> user_factors, item_factors;  ///< by rows, `rank` wide
  double oracle_rmse = 0;                          ///< of the truth on all written ratings
  double oracle_rmse_test = 0;                     ///< on the test part
};

/// Ratings in memory, in random order; the first `training` of them are the training part. Indices from 0. Cost: about
/// 0.3 µs a rating on one thread, in parallel over users; 12 bytes a rating. Throws usage_error for an impossible plan.
struct GeneratedRatings {
  RatingStore ratings;
  std::uint64_t training = 0;
  RatingsTruth truth;
};
GeneratedRatings generate_ratings(const RatingsPlan& plan, const ParallelFor& parallel = serial_for);
/// Writes `user item rating` lines with ids from 1: the training part to `path`, the test part to `test_path` (needed
/// when the plan has one).
RatingsTruth write_ratings(const RatingsPlan& plan, const std::filesystem::path& path,
                           const std::filesystem::path& test_path = {}, const ParallelFor& parallel = serial_for);

/// Sparse rows for regression or classification: `entries_per_row` normal values at distinct random columns; labels
/// from known sparse weights.
struct SparsePlan {
  std::uint64_t rows = 1000;
  std::uint32_t columns = 1000;
  std::uint32_t entries_per_row = 20;
  std::uint32_t nonzero_weights = 50;
  std::uint32_t classes = 0;  ///< 0: regression, label x·w + noise; 2: −1/1, logistic; K ≥ 3: 1..K, softmax
  double weight_scale = 1;
  double noise = 0.1;       ///< regression: standard deviation of the noise
  std::uint32_t group = 1;  ///< so many neighbouring columns occur in the same rows; divides columns and entries
  double correlation = 0;   ///< of the values of a group, in [0, 1]
  std::uint64_t seed = 1;
};
struct SparseTruth {
  std::vector<double> weights;  ///< by classes (one for regression and two classes), `columns` wide
  double oracle_loss = 0;       ///< regression: mean squared error; else mean log-loss of the true probabilities
  double oracle_accuracy = 0;   ///< classification: of the most probable class
};
SparseTruth write_sparse(const SparsePlan& plan, const std::filesystem::path& path,
                         const ParallelFor& parallel = serial_for);

/// A corpus from the generative model of LDA: topics ~ Dirichlet(beta · words · share), where the share of the n-th
/// word is as n^−zipf; a document's mixture ~ Dirichlet(alpha), its length ~ Poisson(mean_length) + 1.
struct CorpusPlan {
  std::uint32_t documents = 1000;
  std::uint32_t words = 2000;
  std::uint32_t topics = 20;
  double mean_length = 100;
  double alpha = 0.1;
  double beta = 0.05;
  double zipf = 0;
  std::uint64_t seed = 1;
};
struct CorpusTruth {
  std::vector<double> topics;  ///< probabilities, `words` wide, by topics
  std::uint64_t tokens = 0;
  double oracle_log_likelihood = 0;  ///< of a token under its document's true mixture
};
/// UCI docword to `path`; with a vocabulary (`w1` …) when `vocabulary_path` is not empty.
CorpusTruth write_corpus(const CorpusPlan& plan, const std::filesystem::path& path,
                         const std::filesystem::path& vocabulary_path = {}, const ParallelFor& parallel = serial_for);

/// An R-MAT graph. Source: D. Chakrabarti, Y. Zhan, C. Faloutsos, "R-MAT: A Recursive Model for Graph Mining" (2004).
/// The known answer: each bit of an edge's (source, target) falls into the four quadrants with probability a, b, c, d.
/// Edges may repeat, as in the paper.
struct GraphPlan {
  std::uint32_t scale = 10;  ///< 2^scale possible nodes, at most 31
  std::uint64_t edges = 10000;
  double a = 0.57, b = 0.19, c = 0.19;  ///< d is the rest
  std::uint64_t seed = 1;
};
void write_graph(const GraphPlan& plan, const std::filesystem::path& path, const ParallelFor& parallel = serial_for);

/// A dense table for regression: standard normal columns, neighbours correlated by `correlation` (an AR(1) process
/// along the row), label = x·w + noise as the last column.
struct DensePlan {
  std::uint64_t rows = 200;
  std::uint32_t columns = 50;
  std::uint32_t nonzero_weights = 10;
  double correlation = 0;
  double noise = 0.5;
  std::uint64_t seed = 1;
};
struct DenseTruth {
  std::vector<double> weights;
  double oracle_loss = 0;  ///< mean squared error of the true weights
};
/// CSV with a header line x1,…,y; or .npy (double precision) when the name ends in .npy.
DenseTruth write_dense(const DensePlan& plan, const std::filesystem::path& path,
                       const ParallelFor& parallel = serial_for);

}  // namespace orrery
