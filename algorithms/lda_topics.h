// Topics for people: their most probable words, and how well these go together.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/lda_likelihood.h"
#include "algorithms/lda_state.h"
#include "engine/collective.h"

namespace orrery::lda {

/// Coherence is that of this many most probable words.
inline constexpr std::size_t kCoherenceWords = 10;
inline constexpr std::int64_t kCoherenceTokens = 50;

/// The `top` most probable words of each topic, most probable first, of equal ones the one with the lower number; fewer
/// where a topic has fewer words.
std::vector<std::vector<std::uint32_t>> top_words(const FrozenTopics& model, std::size_t top);

/// Mean normalised pointwise mutual information of the pairs of each topic's top words in the training documents:
/// ln(p(a, b) / (p(a) p(b))) / −ln p(a, b), with p by documents; −1 for a pair that never meets, 1 for one that is
/// never apart (G. Bouma 2009; Röder et al., WSDM 2015). 0 for a topic of fewer than kCoherenceTokens tokens: its best
/// words are chance, and there may be a million of them. Collective; every node gives the same frozen model.
std::vector<double> coherence(LdaState& state, const FrozenTopics& model, const ParallelFor& parallel,
                              const Collective& nodes = {});

}  // namespace orrery::lda
