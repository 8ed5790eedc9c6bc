// The inner loops of collapsed Gibbs sampling, at three instruction levels behind one table of function pointers. Keeps
// the promise "bits per level" (design, section 5): what a kernel writes depends on its arguments and its level alone.
//
// A visit is the tokens of one word in one worker's documents. For a token of document d with its own count taken out,
//
//   p(z = k) ∝ (n_dk + α_k) φ_k    with    φ_k = (n_kw + β_w) / (n_k + β̄),    β̄ = Σ_w β_w    (Griffiths, Steyvers 2004)
//
// so what a word needs is the vector φ, which changes in two entries when a token moves.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/simd.h"

namespace orrery::lda {

/// A topic's number, below K.
using Topic = std::uint32_t;
/// A token that has no topic yet: it is given one without taking one out.
inline constexpr Topic kNoTopic = ~Topic{0};

/// Arrays over topics are padded with zeros to a multiple of this many entries and aligned to 64 bytes.
inline constexpr std::size_t kTopicAlignment = 16;
constexpr std::size_t padded_topics(std::size_t topics) {
  return (topics + kTopicAlignment - 1) / kTopicAlignment * kTopicAlignment;
}
/// The smoothing mass Σ α_k β / (n_k + β̄) is kept as a sum for each chunk of so many topics: a draw from it looks at
/// the sums, then into one chunk.
inline constexpr std::size_t kTopicChunk = 256;

/// A worker's own view of all topics. Padded entries of alpha and inverse are 0, so that padded topics have no mass.
struct TopicView {
  std::size_t topics = 0, padded = 0;
  std::int64_t* totals = nullptr;  ///< n_k: those of the last synchronisation and the worker's own moves since
  std::int64_t step = 1;           ///< what one token of its own counts for in totals
  double beta_sum = 0;             ///< β̄
  const float* alpha = nullptr;
  float* inverse = nullptr;  ///< 1 / (n_k + β̄)
  /// 1 / (n_k - step + β̄) and 1 / (n_k + step + β̄), for the kernels: a draw waits for no division, as what a move makes
  /// of φ is known before. Kept by them with totals and inverse, from those of Reciprocals::begin_clock().
  float* less = nullptr;
  float* more = nullptr;
  float* phi = nullptr;      ///< scratch of the visits; sample_sparse keeps β / (n_k + β̄) in it between them
  float* running = nullptr;  ///< scratch: running sums of a draw
  double* chunks = nullptr;  ///< Σ α_k / (n_k + β̄) by chunk of kTopicChunk topics
  double smoothing = 0;      ///< their sum
  float baseline_beta = -1;  ///< the β that phi was last filled with by sample_sparse; negative: none
};

/// The tokens of one word in the documents of one worker.
struct Visit {
  const std::uint32_t* documents = nullptr;  ///< by token: number within the worker
  Topic* topics = nullptr;                   ///< by token: read and written
  const Topic* all_topics = nullptr;         ///< by token of the worker's, of which `topics` is a part
  std::size_t first = 0;                     ///< where: topics == all_topics + first
  std::size_t tokens = 0;
  std::size_t known = 0;            ///< tokens from its first one on whose documents may be fetched ahead; >= tokens
  const float* uniforms = nullptr;  ///< by token, in [0, 1)
  float beta = 0;                   ///< β_w
  std::int32_t* counts = nullptr;   ///< n_kw by topic, padded
  const Topic* row = nullptr;       ///< the topics that had a count when the visit began, if `listed`
  std::size_t row_size = 0;
  bool listed = false;
  std::uint8_t* present = nullptr;  ///< if `listed`, by topic: 1 for those in `row` and in `added`
  Topic* added = nullptr;           ///< if `listed`: topics that were not in `row`; room for `tokens`
  std::size_t added_size = 0;
};

/// Documents with a count for every topic: rows of padded_topics(K) counts.
struct DenseRows {
  std::int32_t* counts = nullptr;
  std::size_t stride = 0;
};

/// Documents with a list of the topics they have. Document d has room for capacity = (begin[d + 1] - begin[d]) / 2
/// topics, a multiple of kTopicAlignment: `capacity` topics, ascending, then as many counts. Entries beyond size[d] are
/// 0.
struct ListedRows {
  std::uint32_t* slots = nullptr;
  const std::uint64_t* begin = nullptr;
  std::uint32_t* size = nullptr;
};

/// first, first + step, … below count: numbers of vectors.
struct Steps {
  std::size_t first = 0, count = 0, step = 1;
};

/// One level's kernels. All are re-entrant but for the scratch in TopicView; none allocates or throws.
struct Kernels {
  /// Draws every token of the visit from its exact conditional over all topics, one after the other, and moves the
  /// counts. About 30 ns and 0.05 ns a topic for each token; with AVX-512 and up to 128 topics 20 ns,
  /// and 35 where tokens move.
  void (*sample_dense)(Visit& visit, TopicView& view, const DenseRows& documents);
  /// The same distribution, split into Σ_k n_dk φ_k over the topics of the document and Σ_k α_k φ_k, which is kept as
  /// one number. Cost: the topics of the document; once a visit those of the word.
  void (*sample_sparse)(Visit& visit, TopicView& view, const ListedRows& documents);
};

/// The table of a level. Requires that this processor has the level (engine/simd.h).
const Kernels& kernels(SimdLevel level);

/// Used by kernels() only: each lives in a source file compiled for its level.
const Kernels& portable_kernels();
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();

}  // namespace orrery::lda
