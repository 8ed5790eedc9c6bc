// Topic models (latent Dirichlet allocation): documents in, topics out. This file says what can be set; training is in
// lda_trainee.h and the files of its schedules, the samplers behind lda_sampler.h, what comes back from the files in
// lda_model.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "algorithms/algorithm.h"

namespace orrery {

namespace lda {

enum class SamplerChoice { by_counts, dense, sparse, mh };
enum class Start { by_topics, random, sequential };

struct LdaParams {
  std::uint32_t topics = 100;
  std::string alpha = "0.1";  ///< a number, or a file with one for each topic
  std::string beta = "0.01";  ///< a number, or a file with one for each word
  SamplerChoice sampler = SamplerChoice::by_counts;
  int mh_steps = 2;
  Start start = Start::by_topics;
  bool fit_priors = false;
  std::string vocabulary;
  std::string stop_words;
  std::uint64_t least_documents = 1;
  double largest_share = 1;
  bool keep_case = false;
  bool keep_documents = true;
  std::optional<int> document_blocks;
};

}  // namespace lda

/// The algorithm `lda` of the registry.
std::unique_ptr<Algorithm> make_lda();
/// A model that `lda` wrote. @throws Error (data) when files are missing or do not fit together.
std::unique_ptr<Model> open_lda(const ModelReader& reader);

}  // namespace orrery
