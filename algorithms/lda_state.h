// A topic model in training: every token's topic, and the counts that follow from them. Keeps the promise that counts
// are those of the assignments, always: Σ_k n_kw is the frequency of the word, Σ_k n_dk the length of the document.
//
// Counts of words and totals are in memory. Documents, with their tokens, are there too, or come from disk block by
// block: then a stripe that is not here has no tokens in the grid and no counts in `documents`, and the counts are made
// anew from the assignments when it is brought. So where documents lie changes no bit.
//
// Of several nodes each has the tokens of its own workers, and counts from them alone until it is told those of the
// others (LdaTrainee).
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "algorithms/lda_counts.h"
#include "algorithms/lda_layout.h"
#include "algorithms/lda_priors.h"
#include "algorithms/lda_stream.h"
#include "engine/clock.h"
#include "engine/training.h"

namespace orrery::lda {

/// Which documents stay in memory, and where the others go.
struct Streaming {
  std::filesystem::path directory;
  std::size_t resident_blocks = 0;  ///< the first so many document blocks stay
};

struct LdaState {
  /// Without counts of documents: these come block by block, with admit() and store(), and then count(). Stripes of the
  /// grid may be filled then only.
  LdaState(TokenGrid&& laid_out, const Topology& machine, const WorkerMap& map, std::size_t topics, Priors&& start,
           const Streaming* streaming = nullptr);

  std::size_t topics() const noexcept { return words.topics(); }
  double beta_sum() const { return priors.beta_sum(grid.words().size()); }

  bool is_streamed(std::size_t stripe) const { return stream != nullptr && stripe >= resident_stripes; }
  /// Of a block that has just been filled: makes counts of its documents, all 0. Then, when it has been given topics:
  /// what does not stay in memory goes to the disk.
  void admit(std::size_t document_block);
  void store(std::size_t document_block);
  /// For a stripe of another node: its documents, with counts that are 0 yet.
  void make_documents(std::size_t stripe);
  /// Makes tokens and counts of a stripe available, takes them away again (with what has changed in the topics), or
  /// begins to read what will be brought. Nothing happens where documents stay in memory. For the stripe's worker.
  void bring(std::size_t stripe);
  void release(std::size_t stripe, bool changed);
  void expect(std::size_t stripe);
  /// Calls visit(document block) for each, in order, with its stripes that are here in memory. Between clocks.
  void for_each_document_block(const ParallelFor& parallel, const std::function<void(std::size_t)>& visit);

  /// Counts from the assignments, as if there had been none. Tokens without a topic count nowhere. Cost: a pass.
  void count(const ParallelFor& parallel);
  /// What is wrong with the counts, or nothing: rows and totals against the assignments. Between clocks.
  std::string contradiction(const ParallelFor& parallel);

  /// Assignments of what is here (and priors, which may have been fitted) as bytes, and back; then counted. Streamed
  /// assignments are a source. Between clocks.
  std::vector<StateSection> save();
  void load(const std::vector<StateSection>& sections, const ParallelFor& parallel);
  /// The assignments of all nodes, from what save() gives on each of them; and what save() would give here.
  Bytes joined_assignments(const WorkerMap& map, std::span<const Bytes> by_node) const;
  Bytes assignments_here(std::span<const std::byte> of_all) const;
  static constexpr const char* kAssignments = "assignments";

  TokenGrid grid;
  WordTopics words;
  std::vector<std::unique_ptr<DocumentTopics>> documents;  ///< by stripe; null where it is not in memory
  TopicTotals totals;
  Priors priors;  ///< word_beta by internal word
  std::unique_ptr<DocumentStream> stream;
  std::size_t resident_stripes = 0;

 private:
  std::uint64_t tokens_here() const;
  std::span<const std::uint32_t> lengths_of(std::size_t stripe) const;
  void count_stripe(std::size_t stripe);
  void count_words(BlockId block, std::size_t document_block);
  void give_assignments(const ByteSink& sink) const;

  const Topology& topology_;
  std::vector<DomainId> domains_;                       ///< by worker
  std::vector<std::unique_ptr<DocumentTopics>> spare_;  ///< by worker: counts of a stripe that has left
};

/// Draws a topic for every token of a document block, all equally likely.
void assign_at_random(LdaState& state, std::size_t document_block, std::uint64_t seed, const ParallelFor& parallel);

}  // namespace orrery::lda
