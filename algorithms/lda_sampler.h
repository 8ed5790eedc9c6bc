// The seam of samplers: how the tokens of one word in one worker's documents get their topics. Another sampler is one
// file with a class like these and a line in make_sampler().
#pragma once

#include <memory>
#include <vector>

#include "algorithms/lda_counts.h"
#include "algorithms/lda_kernels.h"
#include "engine/random.h"

namespace orrery::lda {

enum class SamplerKind { dense, sparse, mh };
const char* to_string(SamplerKind kind);

/// Each worker has its own, so it may keep scratch. It must move a token in all counts at once: of the visit, of the
/// document and in view.totals and view.inverse; so counts are conserved whatever it draws.
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual SamplerKind kind() const = 0;
  /// The form of document rows that it works on.
  virtual DocumentForm form() const = 0;
  /// Whether it draws tokens of a document: then documents know theirs (DocumentTopics::tokens_of).
  virtual bool draws_tokens() const { return false; }
  /// Totals and their reciprocals are those of a new clock.
  virtual void begin_clock(TopicView& view) = 0;
  /// Gives every token of the visit a topic.
  virtual void sample(Visit& visit, TopicView& view, DocumentTopics& documents, RandomStream& draws) = 0;
  /// The share of the topics proposed by words that was accepted so far: 1 where topics are drawn and not proposed, or
  /// where what is proposed is what is wanted.
  virtual double word_acceptance() const { return 1; }
};

/// What the exact kernels keep beside TopicView::inverse: 8 bytes a topic.
class Reciprocals {
 public:
  explicit Reciprocals(std::size_t padded) : less_(padded, 0.0F), more_(padded, 0.0F) {}
  /// Of the totals of a new clock, into the view: 1 / (n_k ∓ step + β̄). Two divisions a topic.
  void begin_clock(TopicView& view);

 private:
  std::vector<float> less_, more_;
};

struct SamplerOptions {
  std::size_t topics = 0;
  std::size_t longest_run = 0;
  const Kernels* kernels = nullptr;
  int mh_steps = 2;
};
std::unique_ptr<Sampler> make_sampler(SamplerKind kind, const SamplerOptions& options);
/// Used by make_sampler() only; each lives in lda_NAME.cpp, with what it does and why it is right.
std::unique_ptr<Sampler> make_dense_sampler(const SamplerOptions& options);
std::unique_ptr<Sampler> make_sparse_sampler(const SamplerOptions& options);
std::unique_ptr<Sampler> make_mh_sampler(const SamplerOptions& options);

/// The sampler for a worker whose tokens' documents have so many topics on average, of `topics`; a function of counts
/// alone, so that it does not depend on the machine.
SamplerKind choose_sampler(std::size_t topics, double topics_per_token);
/// Whether mh is chosen for so many topics where a document has up to so many of them.
bool may_choose_mh(std::size_t topics, double most_of_document);
/// Why, for people; no document has more topics than `most_of_document`.
std::string sampler_reason(std::size_t topics, double most_of_document);

/// Numbers in [0, 1), multiples of 2^-24.
void fill_uniforms(RandomStream& draws, std::span<float> out);

}  // namespace orrery::lda
