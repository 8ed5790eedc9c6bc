#include "algorithms/lda_sampler.h"

#include <string>

namespace orrery::lda {
namespace {

// Measured (dense against sparse, tokens a second, AVX-512): equal where a document has an eighth of the topics,
// whatever the number of topics; below so few topics that a scan of all is as quick as a list.
// mh is never chosen: on 1.7 million tokens with 1,000 topics a pass of it costs more than one of either, and it needs
// more passes to the same held-out likelihood.
constexpr double kDenseShare = 8;
constexpr std::size_t kAlwaysDense = 64;

}  // namespace

const char* to_string(SamplerKind kind) {
  switch (kind) {
    case SamplerKind::dense:
      return "dense";
    case SamplerKind::sparse:
      return "sparse";
    case SamplerKind::mh:
      break;
  }
  return "mh";
}

std::unique_ptr<Sampler> make_sampler(SamplerKind kind, const SamplerOptions& options) {
  switch (kind) {
    case SamplerKind::dense:
      return make_dense_sampler(options);
    case SamplerKind::sparse:
      return make_sparse_sampler(options);
    case SamplerKind::mh:
      break;
  }
  return make_mh_sampler(options);
}

SamplerKind choose_sampler(std::size_t topics, double topics_per_token) {
  if (topics <= kAlwaysDense) return SamplerKind::dense;
  return static_cast<double>(topics) <= kDenseShare * topics_per_token ? SamplerKind::dense : SamplerKind::sparse;
}

std::string sampler_reason(std::size_t topics) {
  if (topics <= kAlwaysDense)
    return "sampler dense: " + std::to_string(topics) + " topics are quicker scanned than listed";
  return "sampler dense while documents have more than an eighth of the " + std::to_string(topics) +
         " topics, then sparse; each worker decides by its own documents at the beginning of an iteration";
}

void fill_uniforms(RandomStream& draws, std::span<float> out) {
  for (float& u : out) u = draws.uniform_float();
}

}  // namespace orrery::lda
