// Exact collapsed Gibbs sampling by looking at the topics of the document: with φ of the word at hand,
//
//   Σ_k (n_dk + α_k) φ_k = Σ_(k in d) n_dk φ_k  +  Σ_(k in w) α_k n_kw / (n_k + β̄)  +  β_w Σ_k α_k / (n_k + β̄)
//
// and only the first sum is computed for a token: the second changes by two terms when a token moves, the third is kept
// for a whole clock (the split of SparseLDA, Yao et al., KDD 2009, with the document's part taken together by gathers).
// φ differs from β_w / (n_k + β̄) in the word's own topics only, so a visit costs those, not K. The loop is
// sample_sparse() in lda_kernels.inc.
#include <algorithm>
#include <vector>

#include "algorithms/lda_sampler.h"

namespace orrery::lda {
namespace {

class SparseSampler final : public Sampler {
 public:
  explicit SparseSampler(const SamplerOptions& options)
      : kernels_(*options.kernels), reciprocals_(padded_topics(options.topics)), uniforms_(options.longest_run) {}

  SamplerKind kind() const override { return SamplerKind::sparse; }
  DocumentForm form() const override { return DocumentForm::listed; }

  void begin_clock(TopicView& view) override {
    reciprocals_.begin_clock(view);
    view.baseline_beta = -1;
    view.smoothing = 0;
    for (std::size_t first = 0; first < view.padded; first += kTopicChunk) {
      double sum = 0;
      for (std::size_t k = first; k < std::min(first + kTopicChunk, view.padded); ++k) {
        sum += double{view.alpha[k]} * double{view.inverse[k]};
      }
      view.chunks[first / kTopicChunk] = sum;
      view.smoothing += sum;
    }
  }

  void sample(Visit& visit, TopicView& view, DocumentTopics& documents, RandomStream& draws) override {
    fill_uniforms(draws, std::span(uniforms_).first(visit.tokens));
    visit.uniforms = uniforms_.data();
    kernels_.sample_sparse(visit, view, documents.listed());
  }

 private:
  const Kernels& kernels_;
  Reciprocals reciprocals_;
  std::vector<float> uniforms_;
};

}  // namespace

std::unique_ptr<Sampler> make_sparse_sampler(const SamplerOptions& options) {
  return std::make_unique<SparseSampler>(options);
}

}  // namespace orrery::lda
