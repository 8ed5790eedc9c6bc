#include "algorithms/lda_sampler.h"

#include <algorithm>
#include <string>

namespace orrery::lda {
namespace {

// Measured (dense against sparse, tokens a second, AVX-512): equal where a document has an eighth of the topics,
// whatever the number of topics; below so few topics that a scan of all is quicker than a list even where documents
// have six of them (glosses of a dictionary, 100 topics: 1.5 times with the registers of AVX-512, as quick without).
constexpr double kDenseShare = 8;
constexpr std::size_t kAlwaysDense = 128;
// A pass of mh costs the same for any number of topics but moves less than an exact one, so it has to be several times
// quicker. Measured (a million tokens in documents of 25,000 and 100,000, 100,000 topics, gain in likelihood a second):
// twice that of sparse where documents have 9,000 topics, the same where they have 5,000, half of it at 2,000.
constexpr double kMostListed = 5000;

}  // namespace

bool may_choose_mh(std::size_t topics, double most_of_document) {
  return std::min(most_of_document, static_cast<double>(topics) / kDenseShare) > kMostListed;
}

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
  if (may_choose_mh(topics, topics_per_token)) return SamplerKind::mh;
  return static_cast<double>(topics) <= kDenseShare * topics_per_token ? SamplerKind::dense : SamplerKind::sparse;
}

std::string sampler_reason(std::size_t topics, double most_of_document) {
  if (topics <= kAlwaysDense)
    return "sampler dense: " + std::to_string(topics) + " topics are quicker scanned than listed";
  const std::string exact = "sampler dense while documents have more than an eighth of the " + std::to_string(topics) +
                            " topics, then sparse";
  const std::string who = "; each worker decides by its own documents at the beginning of an iteration";
  if (!may_choose_mh(topics, most_of_document)) return exact + who;
  return "sampler mh while documents have more than " + std::to_string(static_cast<int>(kMostListed)) + " of the " +
         std::to_string(topics) + " topics, which exact sampling would look at for every token, then sparse" + who;
}

void Reciprocals::begin_clock(TopicView& view) {
  view.less = less_.data();
  view.more = more_.data();
  for (std::size_t k = 0; k < view.topics; ++k) {
    const auto inverse_of = [&](std::int64_t total) {
      return static_cast<float>(1.0 / (static_cast<double>(total) + view.beta_sum));
    };
    view.less[k] = inverse_of(view.totals[k] - view.step);
    view.more[k] = inverse_of(view.totals[k] + view.step);
  }
}

void fill_uniforms(RandomStream& draws, std::span<float> out) {
  for (float& u : out) u = draws.uniform_float();
}

}  // namespace orrery::lda
