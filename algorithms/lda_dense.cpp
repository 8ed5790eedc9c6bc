// Exact collapsed Gibbs sampling by looking at every topic: p(z = k) ∝ (n_dk + α_k) φ_k (Griffiths, Steyvers, PNAS
// 2004), sixteen topics at a time. For K up to some hundreds, where a vectorised scan costs no more than the
// bookkeeping of a sparse one. The loop is sample_dense() in lda_kernels.inc.
#include <vector>

#include "algorithms/lda_sampler.h"

namespace orrery::lda {
namespace {

class DenseSampler final : public Sampler {
 public:
  explicit DenseSampler(const SamplerOptions& options)
      : kernels_(*options.kernels), reciprocals_(padded_topics(options.topics)), uniforms_(options.longest_run) {}

  SamplerKind kind() const override { return SamplerKind::dense; }
  DocumentForm form() const override { return DocumentForm::dense; }
  void begin_clock(TopicView& view) override { reciprocals_.begin_clock(view); }
  void sample(Visit& visit, TopicView& view, DocumentTopics& documents, RandomStream& draws) override {
    fill_uniforms(draws, std::span(uniforms_).first(visit.tokens));
    visit.uniforms = uniforms_.data();
    kernels_.sample_dense(visit, view, documents.dense());
  }

 private:
  const Kernels& kernels_;
  Reciprocals reciprocals_;
  std::vector<float> uniforms_;
};

}  // namespace

std::unique_ptr<Sampler> make_dense_sampler(const SamplerOptions& options) {
  return std::make_unique<DenseSampler>(options);
}

}  // namespace orrery::lda
