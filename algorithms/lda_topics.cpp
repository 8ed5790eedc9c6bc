#include "algorithms/lda_topics.h"

#include <algorithm>
#include <utility>

#include "engine/data/portable_math.h"
#include "engine/wire.h"

namespace orrery::lda {
namespace {

/// The documents of each wanted word in a document block, ascending by internal number; empty for other words.
std::vector<std::vector<std::uint32_t>> documents_of(const LdaState& state, std::size_t document_block,
                                                     const std::vector<bool>& wanted) {
  const TokenGrid& grid = state.grid;
  const std::vector<std::uint32_t> external = external_ids(grid.words());
  std::vector<std::vector<std::uint32_t>> documents(wanted.size());
  for (std::size_t w = grid.first_here(); w < grid.end_here(); ++w) {
    const std::size_t s = grid.stripe_of(document_block, w);
    const std::uint32_t first = grid.documents().begin[s];
    for_each_run(grid.stripe(s), [&](std::size_t block, const Run& run, std::size_t token) {
      const std::uint32_t word = external[grid.words().begin[block] + run.word];
      if (!wanted[word]) return;
      for (std::size_t i = token; i < token + run.tokens; ++i) {
        const std::uint32_t document = first + grid.stripe(s).documents[i];
        if (documents[word].empty() || documents[word].back() != document) documents[word].push_back(document);
      }
    });
  }
  return documents;
}

std::size_t common(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  std::size_t count = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    count += a[i] == b[j] ? 1 : 0;
    const bool a_first = a[i] < b[j], b_first = b[j] < a[i];
    i += b_first ? 0 : 1;
    j += a_first ? 0 : 1;
  }
  return count;
}

double mutual_information(std::size_t a, std::size_t b, std::size_t both, std::size_t documents) {
  if (both == 0) return -1;
  if (both == documents) return 1;
  const auto n = static_cast<double>(documents);
  const double p_both = static_cast<double>(both) / n;
  return portable_log(p_both / (static_cast<double>(a) / n * (static_cast<double>(b) / n))) / -portable_log(p_both);
}

}  // namespace

std::vector<std::vector<std::uint32_t>> top_words(const FrozenTopics& model, std::size_t top) {
  // A heap for each topic with the worst of its best words in front.
  using Entry = std::pair<double, std::uint32_t>;  // probability, word
  const auto better = [](const Entry& a, const Entry& b) {
    return a.first > b.first || (a.first == b.first && a.second < b.second);
  };
  std::vector<std::vector<Entry>> heaps(model.rates.size());
  for (std::uint32_t word = 0; word < model.words(); ++word) {
    for (std::uint64_t j = model.begin[word]; j < model.begin[word + 1]; ++j) {
      std::vector<Entry>& heap = heaps[model.topics[j]];
      const double smoothing = model.beta_of(word) * model.rates[model.topics[j]];
      const Entry entry{double{model.shares[j]} + smoothing, word};
      if (heap.size() == top && (top == 0 || !better(entry, heap.front()))) continue;
      heap.push_back(entry);
      std::push_heap(heap.begin(), heap.end(), better);
      if (heap.size() <= top) continue;
      std::pop_heap(heap.begin(), heap.end(), better);
      heap.pop_back();
    }
  }
  std::vector<std::vector<std::uint32_t>> words(heaps.size());
  for (std::size_t k = 0; k < heaps.size(); ++k) {
    std::sort(heaps[k].begin(), heaps[k].end(), better);
    for (const Entry& entry : heaps[k]) words[k].push_back(entry.second);
  }
  return words;
}

namespace {

constexpr std::size_t kTopicsEach = 16;  // a part of a parallel loop

/// In how many documents the best words of a topic are, and each pair of them: a triangle, row by row, with the words
/// themselves on its diagonal.
using Meetings = std::vector<std::uint32_t>;
std::size_t place(std::size_t i, std::size_t j) { return i * (i + 1) / 2 + j; }

/// Adds up what the nodes have found in their documents.
void for_all_nodes(const Collective& nodes, std::vector<Meetings>& meetings) {
  if (nodes.nodes() == 1) return;
  Bytes mine;
  for (Meetings& of_topic : meetings) {
    put_all(mine, std::span<const std::uint32_t>(of_topic));
    std::fill(of_topic.begin(), of_topic.end(), 0U);
  }
  for (const Bytes& said : nodes.to_all(std::move(mine))) {
    WireReader in(said);
    for (Meetings& of_topic : meetings) {
      for (std::uint32_t& count : of_topic) count += in.take<std::uint32_t>();
    }
  }
}

double mean_information(const Meetings& meetings, std::size_t words, std::size_t documents) {
  double sum = 0;
  for (std::size_t i = 0; i < words; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      sum += mutual_information(meetings[place(i, i)], meetings[place(j, j)], meetings[place(i, j)], documents);
    }
  }
  return words < 2 ? 0 : sum / static_cast<double>(words * (words - 1) / 2);
}

}  // namespace

std::vector<double> coherence(LdaState& state, const FrozenTopics& model, const ParallelFor& parallel,
                              const Collective& nodes) {
  const auto words = top_words(model, kCoherenceWords);
  std::vector<bool> wanted(model.words(), false);
  std::vector<Meetings> meetings(words.size());
  for (std::size_t k = 0; k < words.size(); ++k) {
    if (state.totals.committed()[k] < kCoherenceTokens) continue;
    meetings[k].assign(place(words[k].size(), 0), 0);
    for (const std::uint32_t word : words[k]) wanted[word] = true;
  }
  const auto for_topics = [&](const auto& call) {
    parallel((words.size() + kTopicsEach - 1) / kTopicsEach, [&](std::size_t part) {
      for (std::size_t k = part * kTopicsEach; k < std::min(words.size(), (part + 1) * kTopicsEach); ++k) {
        if (!meetings[k].empty()) call(k);
      }
    });
  };
  state.for_each_document_block(parallel, [&](std::size_t document_block) {
    const auto documents = documents_of(state, document_block, wanted);
    for_topics([&](std::size_t k) {
      for (std::size_t i = 0; i < words[k].size(); ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
          meetings[k][place(i, j)] +=
              static_cast<std::uint32_t>(common(documents[words[k][i]], documents[words[k][j]]));
        }
      }
    });
  });
  for_all_nodes(nodes, meetings);
  std::vector<double> out(words.size(), 0.0);
  for_topics(
      [&](std::size_t k) { out[k] = mean_information(meetings[k], words[k].size(), state.grid.documents().size()); });
  return out;
}

}  // namespace orrery::lda
