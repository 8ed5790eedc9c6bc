// A topic model in training: every token's topic, and the counts that follow from them. Keeps the promise that counts
// are those of the assignments, always: Σ_k n_kw is the frequency of the word, Σ_k n_dk the length of the document.
#pragma once

#include <memory>
#include <vector>

#include "algorithms/lda_counts.h"
#include "algorithms/lda_layout.h"
#include "algorithms/lda_priors.h"
#include "engine/clock.h"
#include "engine/training.h"

namespace orrery::lda {

struct LdaState {
  /// All tokens without a topic, all counts 0.
  LdaState(TokenGrid&& laid_out, const Topology& topology, const WorkerMap& map, std::size_t topics, Priors&& start);

  std::size_t topics() const noexcept { return words.topics(); }
  double beta_sum() const { return priors.beta_sum(grid.words().size()); }

  /// Counts from the assignments, as if there had been none. Tokens without a topic count nowhere. Cost: a pass.
  void count(const ParallelFor& parallel);
  /// What is wrong with the counts, or nothing: rows and totals against the assignments. Between clocks.
  std::string contradiction(const ParallelFor& parallel) const;

  /// Assignments (and priors, which may have been fitted) as bytes, and back; then counted.
  std::vector<StateSection> save() const;
  void load(const std::vector<StateSection>& sections, const ParallelFor& parallel);

  TokenGrid grid;
  WordTopics words;
  std::vector<std::unique_ptr<DocumentTopics>> documents;  ///< by worker
  TopicTotals totals;
  Priors priors;  ///< word_beta by internal word

 private:
  void count_block(BlockId block);
};

/// Draws a topic for every token, all equally likely.
void assign_at_random(LdaState& state, std::uint64_t seed, const ParallelFor& parallel);

}  // namespace orrery::lda
