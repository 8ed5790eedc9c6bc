#include "algorithms/lda_fit_priors.h"

#include <algorithm>
#include <map>
#include <vector>

namespace orrery::lda {
namespace {

constexpr int kSteps = 5;
constexpr double kLeast = 1e-6;  // a topic that no document has must still be able to come back

/// How often each count occurs.
using Histogram = std::map<std::int64_t, std::uint64_t>;

// Σ over a histogram of ψ(n + x) − ψ(x).
double digamma_sum(const Histogram& histogram, double x) {
  double sum = 0;
  for (const auto& [count, times] : histogram) sum += static_cast<double>(times) * reciprocal_sum(x, count);
  return sum;
}

void fit_alpha(LdaState& state) {
  std::vector<Histogram> by_topic(state.topics());
  Histogram lengths;
  state.for_each_document_block(serial_for, [&](std::size_t document_block) {
    for (std::size_t w = 0; w < state.grid.workers(); ++w) {
      const DocumentTopics& documents = *state.documents[state.grid.stripe_of(document_block, w)];
      for (std::size_t d = 0; d < documents.documents(); ++d) {
        ++lengths[documents.length(d)];
        documents.for_each_topic(d, [&](Topic topic, std::int32_t count) { ++by_topic[topic][count]; });
      }
    }
  });
  for (int step = 0; step < kSteps; ++step) {
    const double all = digamma_sum(lengths, state.priors.alpha_sum());
    for (std::size_t k = 0; k < by_topic.size(); ++k) {
      double& alpha = state.priors.alpha[k];
      alpha = std::max(alpha * digamma_sum(by_topic[k], alpha) / all, kLeast);
    }
  }
}

void fit_beta(LdaState& state) {
  Histogram counts, totals;
  for (std::size_t b = 0; b < state.grid.blocks(); ++b) {
    for (std::uint32_t word = 0; word < state.grid.words().part_size(b); ++word) {
      state.words.for_each_topic(static_cast<BlockId>(b), word, [&](Topic, std::int32_t count) { ++counts[count]; });
    }
  }
  for (const std::int64_t total : state.totals.committed()) ++totals[total];
  const auto words = static_cast<double>(state.grid.words().size());
  for (int step = 0; step < kSteps; ++step) {
    double& beta = state.priors.beta;
    beta = std::max(beta * digamma_sum(counts, beta) / (words * digamma_sum(totals, words * beta)), kLeast);
  }
}

}  // namespace

bool priors_are_due(Clock iteration) {
  constexpr Clock kFirst = 20, kEvery = 5;
  return iteration >= kFirst && iteration % kEvery == 0;
}

void fit_priors(LdaState& state) {
  fit_alpha(state);
  if (state.priors.word_beta.empty()) fit_beta(state);
}

}  // namespace orrery::lda
