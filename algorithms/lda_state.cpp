#include "algorithms/lda_state.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "engine/error.h"
#include "engine/random.h"

namespace orrery::lda {
namespace {

constexpr const char* kPriors = "priors";

/// Walks through the runs of the stripes of a document block in one block of words, word by word: take(token topics)
/// for each run of `word`.
class RunsByWord {
 public:
  RunsByWord(const TokenGrid& grid, std::size_t document_block, BlockId block)
      : grid_(grid), document_block_(document_block), block_(block), places_(grid.end_here()) {
    for (std::size_t w = grid.first_here(); w < places_.size(); ++w) places_[w] = {0, stripe(w).token_begin[block]};
  }
  template <class Take>
  void take(std::uint32_t word, Take&& take) {
    for (std::size_t w = grid_.first_here(); w < places_.size(); ++w) {
      const auto runs = stripe(w).runs_of(block_);
      Place& at = places_[w];
      if (at.run == runs.size() || runs[at.run].word != word) continue;
      take(std::span(stripe(w).topics).subspan(at.token, runs[at.run].tokens));
      at.token += runs[at.run++].tokens;
    }
  }

 private:
  struct Place {
    std::size_t run, token;
  };
  const Stripe& stripe(std::size_t worker) const { return grid_.stripe(grid_.stripe_of(document_block_, worker)); }
  const TokenGrid& grid_;
  std::size_t document_block_, block_;
  std::vector<Place> places_;
};

}  // namespace

LdaState::LdaState(TokenGrid&& laid_out, const Topology& machine, const WorkerMap& map, std::size_t topics,
                   Priors&& start, const Streaming* streaming)
    : grid(std::move(laid_out)),
      words(machine, grid.words(), topics),
      documents(grid.stripes()),
      totals(topics, map.first_worker(map.this_node()), map.first_worker(map.this_node() + 1)),
      priors(std::move(start)),
      resident_stripes(grid.stripes()),
      topology_(machine),
      spare_(grid.workers()) {
  domains_.resize(map.workers(), 0);
  for (std::size_t w = grid.first_here(); w < grid.end_here(); ++w) {
    domains_[w] = map.domain_of(static_cast<WorkerId>(w));
  }
  if (streaming != nullptr) {
    stream = std::make_unique<DocumentStream>(streaming->directory, grid);
    resident_stripes = streaming->resident_blocks * grid.workers();
  }
}

std::span<const std::uint32_t> LdaState::lengths_of(std::size_t stripe) const {
  const Axis& axis = grid.documents();
  return std::span(axis.counts).subspan(axis.begin[stripe], axis.part_size(stripe));
}

void LdaState::make_documents(std::size_t stripe) {
  documents[stripe] = std::make_unique<DocumentTopics>(topology_, domains_[stripe % grid.workers()], lengths_of(stripe),
                                                       topics(), DocumentForm::listed);
}

void LdaState::count_stripe(std::size_t stripe) {
  documents[stripe]->count(grid.stripe(stripe).documents, grid.stripe(stripe).topics);
}

void LdaState::admit(std::size_t document_block) {
  for (std::size_t w = grid.first_here(); w < grid.end_here(); ++w) make_documents(grid.stripe_of(document_block, w));
}

void LdaState::store(std::size_t document_block) {
  for (std::size_t w = 0; w < grid.workers(); ++w) {
    const std::size_t s = grid.stripe_of(document_block, w);
    if (!is_streamed(s)) continue;
    stream->put(s, grid.stripe(s));
    documents[s].reset();
  }
}

// Counts are made in the form of those that the worker had before: most likely its sampler wants that again.
void LdaState::bring(std::size_t stripe) {
  if (!is_streamed(stripe)) return;
  stream->bring(stripe, grid.stripe(stripe));
  documents[stripe] = std::move(spare_[stripe % grid.workers()]);
  if (documents[stripe] == nullptr) {
    make_documents(stripe);
  } else {
    documents[stripe]->reuse(lengths_of(stripe));
  }
  count_stripe(stripe);
}

void LdaState::release(std::size_t stripe, bool changed) {
  if (!is_streamed(stripe)) return;
  spare_[stripe % grid.workers()] = std::move(documents[stripe]);
  stream->release(stripe, grid.stripe(stripe), changed);
}

void LdaState::expect(std::size_t stripe) {
  if (is_streamed(stripe)) stream->expect(stripe);
}

void LdaState::for_each_document_block(const ParallelFor& parallel, const std::function<void(std::size_t)>& visit) {
  const auto for_stripes = [&](std::size_t block, const auto& call) {
    for (std::size_t w = grid.first_here(); w < grid.end_here(); ++w) call(grid.stripe_of(block, w));
  };
  for (std::size_t block = 0; block < grid.document_blocks(); ++block) {
    parallel(grid.end_here() - grid.first_here(),
             [&](std::size_t i) { bring(grid.stripe_of(block, grid.first_here() + i)); });
    if (block + 1 < grid.document_blocks()) for_stripes(block + 1, [&](std::size_t s) { expect(s); });
    visit(block);
    for_stripes(block, [&](std::size_t s) { release(s, false); });
  }
}

// Adds a document block's tokens to the rows of a block of words. A row is a function of its counts alone.
void LdaState::count_words(BlockId block, std::size_t document_block) {
  RunsByWord runs(grid, document_block, block);
  std::vector<std::int32_t> counts(topics(), 0);
  std::vector<Topic> present;
  for (std::uint32_t word = 0; word < grid.words().part_size(block); ++word) {
    runs.take(word, [&](std::span<const Topic> tokens) {
      for (const Topic topic : tokens) {
        if (topic != kNoTopic && counts[topic]++ == 0) present.push_back(topic);
      }
    });
    if (present.empty()) continue;
    words.for_each_topic(block, word, [&](Topic topic, std::int32_t count) {
      if (counts[topic] == 0) present.push_back(topic);
      counts[topic] += count;
    });
    const WordTopics::Row row = words.row(words.view(block), block, word);
    if (row.dense) {
      for (const Topic topic : present) row.counts[topic] = counts[topic];
    } else {
      std::sort(present.begin(), present.end());
      *row.size = static_cast<std::uint32_t>(present.size());
      for (std::size_t j = 0; j < present.size(); ++j) {
        row.topics[j] = present[j];
        row.counts[j] = counts[present[j]];
      }
    }
    for (const Topic topic : present) counts[topic] = 0;
    present.clear();
  }
}

namespace {

void add_topics(std::span<const Topic> topics, std::vector<std::int64_t>& totals) {
  for (const Topic topic : topics) {
    if (topic != kNoTopic) ++totals[topic];
  }
}

}  // namespace

void LdaState::count(const ParallelFor& parallel) {
  std::vector<std::int64_t> sums(topics(), 0);
  words.clear();
  for_each_document_block(parallel, [&](std::size_t document_block) {
    parallel(grid.end_here() - grid.first_here(), [&](std::size_t i) {
      const std::size_t s = grid.stripe_of(document_block, grid.first_here() + i);
      if (!is_streamed(s)) count_stripe(s);  // others were counted as they came
    });
    parallel(grid.blocks(), [&](std::size_t b) { count_words(static_cast<BlockId>(b), document_block); });
    for (std::size_t w = grid.first_here(); w < grid.end_here(); ++w) {
      add_topics(grid.stripe(grid.stripe_of(document_block, w)).topics, sums);
    }
  });
  totals.reset(std::move(sums));
}

namespace {

/// Do the counts of a stripe's documents differ from its assignments?
bool differs(const Stripe& stripe, const DocumentTopics& documents) {
  std::vector<std::pair<std::uint32_t, Topic>> assigned, counted;
  for (std::size_t i = 0; i < stripe.topics.size(); ++i) assigned.emplace_back(stripe.documents[i], stripe.topics[i]);
  for (std::uint32_t d = 0; d < documents.documents(); ++d) {
    documents.for_each_topic(d, [&](Topic topic, std::int32_t count) {
      counted.insert(counted.end(), static_cast<std::size_t>(std::max(count, 0)), {d, topic});
    });
  }
  std::sort(assigned.begin(), assigned.end());
  return assigned != counted;
}

using WordTopicCounts = std::map<std::pair<std::uint32_t, Topic>, std::int64_t>;

void add_runs(const Stripe& stripe, const Axis& words, WordTopicCounts& counts) {
  for_each_run(stripe, [&](std::size_t block, const Run& run, std::size_t token) {
    for (std::size_t i = token; i < token + run.tokens; ++i)
      ++counts[{words.begin[block] + run.word, stripe.topics[i]}];
  });
}

}  // namespace

std::string LdaState::contradiction(const ParallelFor& parallel) {
  std::string found;
  std::vector<std::int64_t> sums(topics(), 0);
  WordTopicCounts left;
  for_each_document_block(parallel, [&](std::size_t document_block) {
    for (std::size_t w = 0; w < grid.workers(); ++w) {
      const std::size_t s = grid.stripe_of(document_block, w);
      if (differs(grid.stripe(s), *documents[s])) {
        found = "topics of the documents of worker " + std::to_string(w) + " differ from the assignments";
      }
      add_topics(grid.stripe(s).topics, sums);
      add_runs(grid.stripe(s), grid.words(), left);
    }
  });
  for (BlockId block = 0; block < grid.blocks(); ++block) {
    for (std::uint32_t word = 0; word < grid.words().part_size(block); ++word) {
      words.for_each_topic(block, word, [&](Topic topic, std::int32_t count) {
        left[{grid.words().begin[block] + word, topic}] -= count;
      });
    }
  }
  for (const auto& [at, count] : left) {
    if (count != 0) found = "topics of word " + std::to_string(at.first) + " differ from the assignments";
  }
  if (!found.empty()) return found;
  return sums == totals.committed() ? "" : "totals of topics differ from the assignments";
}

namespace {

template <class T>
void append(Bytes& out, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

Error of_another_model(const char* section) {
  return Error(ErrorKind::data, std::string("the checkpoint's section '") + section + "' is of another model");
}

template <class T>
void take(std::span<const std::byte>& in, std::span<T> values, const char* section) {
  if (in.size() < values.size_bytes()) throw of_another_model(section);
  if (!values.empty()) std::memcpy(values.data(), in.data(), values.size_bytes());
  in = in.subspan(values.size_bytes());
}

const StateSection& find_section(const std::vector<StateSection>& sections, const char* name) {
  for (const StateSection& section : sections) {
    if (section.name == name) return section;
  }
  throw Error(ErrorKind::data, std::string("the checkpoint has no section '") + name + "'");
}

/// Takes the topics of all tokens, in pieces of any size, to where their stripes are.
class AssignmentTaker {
 public:
  explicit AssignmentTaker(LdaState& state) : state_(state) {}

  void take(std::span<const std::byte> bytes) {
    if (bytes.size() % sizeof(Topic) != 0) throw of_another_model(LdaState::kAssignments);
    piece_.resize(bytes.size() / sizeof(Topic));
    std::memcpy(piece_.data(), bytes.data(), bytes.size());
    for (const Topic topic : piece_) {
      if (topic >= state_.topics())
        throw Error(ErrorKind::data, "the checkpoint assigns a topic that the model does not have");
    }
    for (std::span<const Topic> rest = piece_; !rest.empty();) rest = rest.subspan(put(rest));
  }

 private:
  /// As many as belong to the stripe at hand; returns how many.
  std::size_t put(std::span<const Topic> topics) {
    while (!state_.grid.is_here(stripe_) || token_ == state_.grid.stripe(stripe_).tokens()) {
      ++stripe_;
      token_ = 0;
    }
    Stripe& stripe = state_.grid.stripe(stripe_);
    topics = topics.first(std::min(topics.size(), stripe.tokens() - token_));
    if (state_.is_streamed(stripe_)) {
      state_.stream->write_topics(stripe_, token_, topics);
    } else {
      std::copy(topics.begin(), topics.end(), stripe.topics.begin() + static_cast<std::ptrdiff_t>(token_));
    }
    token_ += topics.size();
    return topics.size();
  }

  LdaState& state_;
  std::size_t stripe_ = 0, token_ = 0;
  std::vector<Topic> piece_;
};

}  // namespace

void LdaState::give_assignments(const ByteSink& sink) const {
  for (std::size_t s = 0; s < grid.stripes(); ++s) {
    if (!grid.is_here(s)) continue;
    if (is_streamed(s)) {
      stream->read_topics(s, sink);
    } else {
      sink(std::as_bytes(std::span(grid.stripe(s).topics)));
    }
  }
}

std::vector<StateSection> LdaState::save() {
  StateSection assignments{kAssignments, {}}, prior_values{kPriors, {}};
  if (stream != nullptr) {
    stream->drain();
    assignments.source = [this](const ByteSink& sink) { give_assignments(sink); };
    assignments.source_bytes = grid.tokens() * sizeof(Topic);
  } else {
    assignments.bytes.reserve(tokens_here() * sizeof(Topic));
    give_assignments([&](std::span<const std::byte> bytes) {
      assignments.bytes.insert(assignments.bytes.end(), bytes.begin(), bytes.end());
    });
  }
  append(prior_values.bytes, priors.alpha);
  append(prior_values.bytes, std::vector{priors.beta});
  append(prior_values.bytes, priors.word_beta);
  return {std::move(assignments), std::move(prior_values)};
}

void LdaState::load(const std::vector<StateSection>& sections, const ParallelFor& parallel) {
  const StateSection& assignments = find_section(sections, kAssignments);
  if (assignments.size() != tokens_here() * sizeof(Topic)) throw of_another_model(kAssignments);
  if (stream != nullptr) stream->drain();
  AssignmentTaker taker(*this);
  assignments.read([&](std::span<const std::byte> bytes) { taker.take(bytes); });
  std::span<const std::byte> bytes = find_section(sections, kPriors).bytes;
  take(bytes, std::span(priors.alpha), kPriors);
  take(bytes, std::span(&priors.beta, 1), kPriors);
  take(bytes, std::span(priors.word_beta), kPriors);
  count(parallel);
}

std::uint64_t LdaState::tokens_here() const {
  std::uint64_t tokens = 0;
  for (std::size_t s = 0; s < grid.stripes(); ++s) tokens += grid.is_here(s) ? grid.tokens_of(s) : 0;
  return tokens;
}

Bytes LdaState::joined_assignments(const WorkerMap& map, std::span<const Bytes> by_node) const {
  std::vector<std::size_t> used(by_node.size(), 0);
  Bytes all;
  all.reserve(grid.tokens() * sizeof(Topic));
  for (std::size_t s = 0; s < grid.stripes(); ++s) {
    const NodeId node = map.node_of(static_cast<WorkerId>(s % grid.workers()));
    const auto piece = std::span(by_node[node]).subspan(used[node], grid.tokens_of(s) * sizeof(Topic));
    all.insert(all.end(), piece.begin(), piece.end());
    used[node] += piece.size();
  }
  return all;
}

Bytes LdaState::assignments_here(std::span<const std::byte> of_all) const {
  if (of_all.size() != grid.tokens() * sizeof(Topic)) throw of_another_model(kAssignments);
  Bytes here;
  here.reserve(tokens_here() * sizeof(Topic));
  for (std::size_t s = 0; s < grid.stripes(); ++s) {
    const auto piece = of_all.first(grid.tokens_of(s) * sizeof(Topic));
    of_all = of_all.subspan(piece.size());
    if (grid.is_here(s)) here.insert(here.end(), piece.begin(), piece.end());
  }
  return here;
}

void assign_at_random(LdaState& state, std::size_t document_block, std::uint64_t seed, const ParallelFor& parallel) {
  const Random random(seed, Purpose::initial_model);
  parallel(state.grid.end_here() - state.grid.first_here(), [&](std::size_t i) {
    const std::size_t s = state.grid.stripe_of(document_block, state.grid.first_here() + i);
    RandomStream draws = random.stream(0, s);
    for (Topic& topic : state.grid.stripe(s).topics) topic = static_cast<Topic>(draws.below(state.topics()));
  });
}

}  // namespace orrery::lda
