#include "algorithms/lda_state.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "engine/error.h"
#include "engine/random.h"

namespace orrery::lda {
namespace {

constexpr const char* kAssignments = "assignments";
constexpr const char* kPriors = "priors";

std::vector<std::int64_t> totals_of(const TokenGrid& grid, std::size_t topics) {
  std::vector<std::int64_t> totals(topics, 0);
  for (std::size_t s = 0; s < grid.stripes(); ++s) {
    for (const Topic topic : grid.stripe(s).topics) {
      if (topic != kNoTopic) ++totals[topic];
    }
  }
  return totals;
}

/// Walks through the runs of all stripes in one block word by word: take(token topics) for each run of `word`.
class RunsByWord {
 public:
  RunsByWord(const TokenGrid& grid, BlockId block) : grid_(grid), block_(block), places_(grid.stripes()) {
    for (std::size_t s = 0; s < places_.size(); ++s) places_[s] = {0, grid.stripe(s).token_begin[block]};
  }
  template <class Take>
  void take(std::uint32_t word, Take&& take) {
    for (std::size_t s = 0; s < places_.size(); ++s) {
      const Stripe& stripe = grid_.stripe(s);
      const auto runs = stripe.runs_of(block_);
      Place& at = places_[s];
      if (at.run == runs.size() || runs[at.run].word != word) continue;
      take(std::span(stripe.topics).subspan(at.token, runs[at.run].tokens));
      at.token += runs[at.run++].tokens;
    }
  }

 private:
  struct Place {
    std::size_t run, token;
  };
  const TokenGrid& grid_;
  std::size_t block_;
  std::vector<Place> places_;
};

}  // namespace

LdaState::LdaState(TokenGrid&& laid_out, const Topology& topology, const WorkerMap& map, std::size_t topics,
                   Priors&& start)
    : grid(std::move(laid_out)),
      words(topology, grid.words(), topics),
      totals(topics, map.workers()),
      priors(std::move(start)) {
  const Axis& axis = grid.documents();
  for (WorkerId w = 0; w < map.workers(); ++w) {
    documents.push_back(std::make_unique<DocumentTopics>(
        topology, map.domain_of(w), std::span(axis.counts).subspan(axis.begin[w], axis.part_size(w)), topics,
        DocumentForm::listed));
  }
}

void LdaState::count_block(BlockId block) {
  RunsByWord runs(grid, block);
  std::vector<std::int32_t> counts(topics(), 0);
  std::vector<Topic> present;
  for (std::uint32_t word = 0; word < grid.words().part_size(block); ++word) {
    runs.take(word, [&](std::span<const Topic> tokens) {
      for (const Topic topic : tokens) {
        if (topic != kNoTopic && counts[topic]++ == 0) present.push_back(topic);
      }
    });
    std::sort(present.begin(), present.end());
    const WordTopics::Row row = words.row(words.view(block), block, word);
    if (row.dense) {
      std::copy(counts.begin(), counts.end(), row.counts);
    } else {
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

void LdaState::count(const ParallelFor& parallel) {
  parallel(grid.stripes(), [&](std::size_t s) {
    documents[s]->clear();
    const Stripe& stripe = grid.stripe(s);
    for (std::size_t i = 0; i < stripe.topics.size(); ++i) {
      if (stripe.topics[i] != kNoTopic) documents[s]->add(stripe.documents[i], stripe.topics[i]);
    }
  });
  parallel(grid.blocks(), [&](std::size_t b) { count_block(static_cast<BlockId>(b)); });
  totals.reset(totals_of(grid, topics()));
}

std::string LdaState::contradiction(const ParallelFor& parallel) const {
  std::vector<std::string> found(grid.stripes() + grid.blocks());
  parallel(grid.stripes(), [&](std::size_t s) {
    const Stripe& stripe = grid.stripe(s);
    std::vector<std::pair<std::uint32_t, Topic>> assigned, counted;
    for (std::size_t i = 0; i < stripe.topics.size(); ++i) assigned.emplace_back(stripe.documents[i], stripe.topics[i]);
    for (std::uint32_t d = 0; d < documents[s]->documents(); ++d) {
      documents[s]->for_each_topic(d, [&](Topic topic, std::int32_t count) {
        counted.insert(counted.end(), static_cast<std::size_t>(std::max(count, 0)), {d, topic});
      });
    }
    std::sort(assigned.begin(), assigned.end());
    if (assigned != counted) found[s] = "topics of the documents of worker " + std::to_string(s);
  });
  parallel(grid.blocks(), [&](std::size_t b) {
    const auto block = static_cast<BlockId>(b);
    RunsByWord runs(grid, block);
    for (std::uint32_t word = 0; word < grid.words().part_size(block); ++word) {
      std::vector<std::int64_t> rest(topics(), 0);
      runs.take(word, [&](std::span<const Topic> tokens) {
        for (const Topic topic : tokens) ++rest[topic];
      });
      words.for_each_topic(block, word, [&](Topic topic, std::int32_t count) { rest[topic] -= count; });
      const bool balanced = std::all_of(rest.begin(), rest.end(), [](std::int64_t r) { return r == 0; });
      if (!balanced) found[grid.stripes() + b] = "topics of word " + std::to_string(grid.words().begin[b] + word);
    }
  });
  for (const std::string& fault : found) {
    if (!fault.empty()) return fault + " differ from the assignments";
  }
  return totals_of(grid, topics()) == totals.committed() ? "" : "totals of topics differ from the assignments";
}

namespace {

template <class T>
void append(Bytes& out, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <class T>
void take(std::span<const std::byte>& in, std::span<T> values, const char* section) {
  if (in.size() < values.size_bytes()) {
    throw Error(ErrorKind::data, std::string("the checkpoint's section '") + section + "' is of another model");
  }
  if (!values.empty()) std::memcpy(values.data(), in.data(), values.size_bytes());
  in = in.subspan(values.size_bytes());
}

const StateSection& find_section(const std::vector<StateSection>& sections, const char* name) {
  for (const StateSection& section : sections) {
    if (section.name == name) return section;
  }
  throw Error(ErrorKind::data, std::string("the checkpoint has no section '") + name + "'");
}

}  // namespace

std::vector<StateSection> LdaState::save() const {
  StateSection assignments{kAssignments, {}}, prior_values{kPriors, {}};
  assignments.bytes.reserve(grid.tokens() * sizeof(Topic));
  for (std::size_t s = 0; s < grid.stripes(); ++s) append(assignments.bytes, std::span(grid.stripe(s).topics));
  append(prior_values.bytes, std::span(priors.alpha));
  append(prior_values.bytes, std::span(&priors.beta, 1));
  append(prior_values.bytes, std::span(priors.word_beta));
  return {std::move(assignments), std::move(prior_values)};
}

void LdaState::load(const std::vector<StateSection>& sections, const ParallelFor& parallel) {
  std::span<const std::byte> bytes = find_section(sections, kAssignments).bytes;
  for (std::size_t s = 0; s < grid.stripes(); ++s) {
    take(bytes, std::span(grid.stripe(s).topics), kAssignments);
    for (const Topic topic : grid.stripe(s).topics) {
      if (topic >= topics())
        throw Error(ErrorKind::data, "the checkpoint assigns a topic that the model does not have");
    }
  }
  bytes = find_section(sections, kPriors).bytes;
  take(bytes, std::span(priors.alpha), kPriors);
  take(bytes, std::span(&priors.beta, 1), kPriors);
  take(bytes, std::span(priors.word_beta), kPriors);
  count(parallel);
}

void assign_at_random(LdaState& state, std::uint64_t seed, const ParallelFor& parallel) {
  const Random random(seed, Purpose::initial_model);
  parallel(state.grid.stripes(), [&](std::size_t s) {
    RandomStream draws = random.stream(0, s);
    for (Topic& topic : state.grid.stripe(s).topics) topic = static_cast<Topic>(draws.below(state.topics()));
  });
  state.count(parallel);
}

}  // namespace orrery::lda
