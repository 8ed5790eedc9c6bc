#include "algorithms/lda_likelihood.h"

#include <algorithm>
#include <numeric>

#include "engine/data/portable_math.h"
#include "engine/reduce.h"

namespace orrery::lda {
namespace {

double word_part(const LdaState& state, BlockId block, const RisingLogs& symmetric) {
  const Priors& priors = state.priors;
  const std::uint32_t first = state.grid.words().begin[block];
  double sum = 0;
  for (std::uint32_t word = 0; word < state.grid.words().part_size(block); ++word) {
    state.words.for_each_topic(block, word, [&](Topic, std::int32_t count) {
      sum += priors.word_beta.empty() ? symmetric(count) : log_rising(priors.beta_of(first + word), count);
    });
  }
  return sum;
}

}  // namespace

DocumentLogs::DocumentLogs(const Priors& priors)
    : priors_(priors), all_alpha_(priors.alpha_sum()), alpha_(priors.alpha[0]), symmetric_(priors.symmetric_alpha()) {}

double DocumentLogs::operator()(const DocumentTopics& documents) const {
  double sum = 0;
  for (std::size_t d = 0; d < documents.documents(); ++d) {
    sum -= all_alpha_(documents.length(d));
    documents.for_each_topic(d, [&](Topic topic, std::int32_t count) {
      sum += symmetric_ ? alpha_(count) : log_rising(priors_.alpha[topic], count);
    });
  }
  return sum;
}

std::vector<double> word_parts(const LdaState& state, std::span<const BlockId> blocks, const ParallelFor& parallel) {
  const RisingLogs beta(state.priors.beta);
  std::vector<double> parts(blocks.size());
  parallel(blocks.size(), [&](std::size_t b) { parts[b] = word_part(state, blocks[b], beta); });
  return parts;
}

double joint_log_likelihood(const LdaState& state, std::span<const double> word_parts,
                            std::span<const double> document_parts) {
  std::vector<double> parts(word_parts.begin(), word_parts.end());
  parts.insert(parts.end(), document_parts.begin(), document_parts.end());
  double topics = 0;
  const double beta_sum = state.beta_sum();
  for (const std::int64_t total : state.totals.committed()) topics -= log_rising(beta_sum, total);
  return tree_sum(std::span<double>{parts}) + topics;
}

double joint_log_likelihood(LdaState& state, const ParallelFor& parallel) {
  const DocumentLogs logs(state.priors);
  std::vector<double> parts(state.grid.stripes());
  state.for_each_document_block(parallel, [&](std::size_t document_block) {
    parallel(state.grid.workers(), [&](std::size_t w) {
      const std::size_t s = state.grid.stripe_of(document_block, w);
      parts[s] = logs(*state.documents[s]);
    });
  });
  std::vector<BlockId> blocks(state.grid.blocks());
  std::iota(blocks.begin(), blocks.end(), BlockId{0});
  return joint_log_likelihood(state, word_parts(state, blocks, parallel), parts);
}

FrozenTopics freeze(const LdaState& state) {
  const Axis& words = state.grid.words();
  FrozenTopics out;
  out.alpha = state.priors.alpha;
  out.beta = state.priors.beta;
  const double beta_sum = state.beta_sum();
  for (const std::int64_t total : state.totals.committed()) {
    out.rates.push_back(1 / (static_cast<double>(total) + beta_sum));
  }
  out.begin.push_back(0);
  for (std::uint32_t id = 0; id < words.size(); ++id) {
    const auto block = static_cast<BlockId>(words.part[id]);
    state.words.for_each_topic(block, words.internal[id] - words.begin[block], [&](Topic topic, std::int32_t count) {
      out.topics.push_back(topic);
      out.shares.push_back(static_cast<float>(count * out.rates[topic]));
    });
    out.begin.push_back(out.topics.size());
    if (!state.priors.word_beta.empty()) out.word_beta.push_back(state.priors.beta_of(words.internal[id]));
  }
  return out;
}

Inference::Inference(const FrozenTopics& model) : model_(model), theta_(model.alpha), next_(model.alpha.size()) {}

// Σ_k θ_k rate_k: the smoothing part of every word's probability, but for β_w.
double Inference::background() const {
  double sum = 0;
  for (std::size_t k = 0; k < theta_.size(); ++k) sum += theta_[k] * model_.rates[k];
  return sum;
}

std::span<const double> Inference::infer(std::span<const WordCount> document) {
  constexpr int kSteps = 40;
  const auto normalise = [this] {
    double sum = 0;
    for (const double x : theta_) sum += x;
    for (double& x : theta_) x /= sum;
  };
  theta_ = model_.alpha;
  normalise();
  for (int step = 0; step < kSteps && !document.empty(); ++step) {
    std::fill(next_.begin(), next_.end(), 0.0);
    const double smoothing = background();
    double to_smoothing = 0;
    for (const WordCount& cell : document) {
      const std::uint64_t begin = model_.begin[cell.word], end = model_.begin[cell.word + 1];
      const double beta = model_.beta_of(cell.word);
      double mass = beta * smoothing;
      for (std::uint64_t j = begin; j < end; ++j) mass += theta_[model_.topics[j]] * double{model_.shares[j]};
      const double weight = cell.count / mass;
      for (std::uint64_t j = begin; j < end; ++j) next_[model_.topics[j]] += weight * double{model_.shares[j]};
      to_smoothing += weight * beta;
    }
    for (std::size_t k = 0; k < theta_.size(); ++k) {
      theta_[k] = model_.alpha[k] + theta_[k] * (next_[k] + to_smoothing * model_.rates[k]);
    }
    normalise();
  }
  return theta_;
}

double Inference::log_likelihood(std::span<const WordCount> document) const {
  const double smoothing = background();
  double sum = 0;
  for (const WordCount& cell : document) {
    double mass = model_.beta_of(cell.word) * smoothing;
    for (std::uint64_t j = model_.begin[cell.word]; j < model_.begin[cell.word + 1]; ++j) {
      mass += theta_[model_.topics[j]] * double{model_.shares[j]};
    }
    sum += cell.count * portable_log(mass);
  }
  return sum;
}

Completion::Completion(const Corpus& corpus) {
  for (std::size_t d = 0; d < corpus.documents(); ++d) {
    std::uint64_t seen = 0;
    for (std::uint64_t c = corpus.starts[d]; c < corpus.starts[d + 1]; ++c) {
      const std::uint32_t count = corpus.counts[c];
      const auto odd = static_cast<std::uint32_t>((seen + count) / 2 - seen / 2);
      if (count > odd) observed_.cells.push_back({corpus.words[c], count - odd});
      if (odd > 0) scored_.cells.push_back({corpus.words[c], odd});
      tokens_ += odd;
      seen += count;
    }
    observed_.begin.push_back(observed_.cells.size());
    scored_.begin.push_back(scored_.cells.size());
  }
}

double Completion::log_likelihood(const FrozenTopics& model, const ParallelFor& parallel,
                                  const Collective& nodes) const {
  constexpr std::size_t kChunk = 64;  // documents; fixed, for it is the shape of the sum
  const std::size_t documents = observed_.begin.size() - 1;
  const std::size_t chunks = (documents + kChunk - 1) / kChunk;
  const std::size_t first = chunks * nodes.node() / nodes.nodes();
  std::vector<double> here(chunks * (nodes.node() + 1) / nodes.nodes() - first);
  parallel(here.size(), [&](std::size_t i) {
    Inference inference(model);
    const std::size_t p = first + i;
    for (std::size_t d = p * kChunk; d < std::min(documents, (p + 1) * kChunk); ++d) {
      if (scored_.document(d).empty()) continue;
      inference.infer(observed_.document(d));
      here[i] += inference.log_likelihood(scored_.document(d));
    }
  });
  std::vector<double> parts = nodes.joined(std::move(here));
  return tree_sum(std::span<double>{parts});
}

}  // namespace orrery::lda
