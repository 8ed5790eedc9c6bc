// The counts of a topic model: topics of words, topics of documents, and the totals of topics.
//
// Counts of words lie in blocks that travel, those of documents stay with their worker. A row holds a count for every
// topic (dense), or, when that is smaller, a list of the topics that it has: a word with f tokens has at most f topics,
// so memory is bounded by the tokens and does not grow with topics × words. Lists ascend by topic, so that every row is
// a function of the assignments alone: a checkpoint holds those and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "algorithms/lda_kernels.h"
#include "algorithms/lda_layout.h"
#include "engine/block_store.h"
#include "engine/message.h"
#include "engine/types.h"
#include "engine/wire.h"
#include "numa/memory.h"
#include "numa/topology.h"

namespace orrery::lda {

/// n_kw for all words. A word's row is dense if a list with room for all its tokens would be no smaller.
class WordTopics {
 public:
  WordTopics(const Topology& topology, const Axis& words, std::size_t topics);

  /// The memory of a block, brought to `domain`. For its owner.
  std::byte* acquire(BlockId block, DomainId domain) { return blocks_.acquire(block, domain).data(); }
  /// Where the block lies. For its owner, or between clocks.
  std::byte* view(BlockId block) const { return blocks_.view(block).data(); }

  struct Row {
    bool dense = false;
    std::int32_t* counts = nullptr;  ///< dense: by topic, padded; else of the list
    Topic* topics = nullptr;         ///< of the list
    std::uint32_t* size = nullptr;   ///< of the list
  };
  /// `word` counts within the block, whose memory is `block_memory`.
  Row row(std::byte* block_memory, BlockId block, std::uint32_t word) const;
  /// Begins to bring a row into the cache that will be visited next.
  void prefetch(const std::byte* block_memory, BlockId block, std::uint32_t word) const;
  /// Calls visit(topic, count) for every topic that a word has, ascending. Between clocks, or for the owner.
  template <class Visitor>
  void for_each_topic(BlockId block, std::uint32_t word, Visitor&& visit) const {
    for_each_of(row(view(block), block, word), [&](Topic topic, std::int32_t count) {
      if (count != 0) visit(topic, count);
    });
  }
  /// Makes a word's row have these counts, none negative and as many in all as the word has tokens or fewer. Between
  /// clocks.
  void set(BlockId block, std::uint32_t word, std::span<const std::int32_t> by_topic);
  std::size_t topics() const noexcept { return topics_; }
  /// All counts 0. Between clocks.
  void clear();
  /// A block on its way to another node, and there: in place of what it holds, or added to it. Only topics that a list
  /// has are sent. For the block's owner, or between clocks.
  Bytes pack(BlockId block) const;
  void unpack(BlockId block, std::span<const std::byte> bytes);
  void add(BlockId block, std::span<const std::byte> bytes);
  /// The block as it is in `other`, which has the same words.
  void copy(BlockId block, const WordTopics& other);
  /// What the block has more and less than in `base`, row by row the topics that differ; and that added to what it has,
  /// which must come to counts of no more tokens than the words have, none negative.
  Bytes difference(BlockId block, const WordTopics& base) const;
  void add_difference(BlockId block, std::span<const std::byte> bytes);
  std::uint64_t bytes() const noexcept { return bytes_; }
  std::uint64_t bytes_moved() const noexcept { return blocks_.bytes_moved(); }
  /// Bytes of the row of a word with that many tokens.
  static std::uint64_t row_bytes(std::uint32_t tokens, std::size_t topics);

 private:
  /// Calls visit(topic, count) for the topics of a row, ascending; counts may be 0.
  template <class Visitor>
  void for_each_of(const Row& row, Visitor&& visit) const {
    const std::size_t size = row.dense ? topics_ : *row.size;
    for (std::size_t j = 0; j < size; ++j) visit(row.dense ? static_cast<Topic>(j) : row.topics[j], row.counts[j]);
  }
  std::uint32_t words_of(BlockId block) const { return block_begin_[block + 1] - block_begin_[block]; }

  std::size_t topics_;
  std::vector<std::uint32_t> block_begin_;  ///< internal word ids
  std::vector<std::size_t> block_bytes_;
  std::vector<std::uint64_t> offsets_;      ///< by internal word id, within its block
  std::vector<std::uint32_t> frequencies_;  ///< by internal word id
  std::uint64_t bytes_ = 0;
  BlockStore blocks_;
};

/// The row that a worker is working on, with a count for every topic at hand. Owns the scratch for rows that are lists.
class OpenRow {
 public:
  /// `most_added`: how many topics a row may gain while it is open.
  OpenRow(std::size_t topics, std::size_t most_added);

  /// Makes the row's counts available: visit.counts, row, listed, present, added.
  void open(const WordTopics::Row& row, Visit& visit);
  /// Writes a list back, without topics that have lost their last token.
  void close(const WordTopics::Row& row, const Visit& visit);

 private:
  std::size_t padded_;
  std::vector<std::int32_t> counts_;
  std::vector<std::uint8_t> present_;
  std::vector<Topic> added_;
  std::vector<Topic> topics_;  ///< the list as it was
};

enum class DocumentForm { dense, listed };

/// n_dk for the documents of one worker, in its domain's memory and in the form that its sampler wants.
class DocumentTopics {
 public:
  /// All counts 0. `lengths`: tokens of each document.
  DocumentTopics(const Topology& topology, DomainId domain, std::span<const std::uint32_t> lengths, std::size_t topics,
                 DocumentForm form);

  DocumentForm form() const noexcept { return form_; }
  DenseRows dense() noexcept;
  ListedRows listed() noexcept;
  std::size_t documents() const noexcept { return lengths_.size(); }
  std::uint32_t length(std::size_t document) const { return lengths_[document]; }
  void add(std::uint32_t document, Topic topic);
  /// Becomes the counts of other documents, which count() has yet to make, in the same form and in memory that is kept
  /// if it is large enough.
  void reuse(std::span<const std::uint32_t> lengths);
  /// Lists the tokens of each document, once: token i is one of documents[i]. Cost: a pass over the tokens, 4 bytes
  /// for each.
  void list_tokens(std::span<const std::uint32_t> documents);
  /// The numbers of a document's tokens, ascending. After list_tokens().
  std::span<const std::uint32_t> tokens_of(std::size_t document) const {
    return std::span(tokens_).subspan(tokens_begin_[document], lengths_[document]);
  }
  /// Changes the form and keeps the counts.
  void convert(DocumentForm form);
  /// Counts from scratch: token i is one of documents[i] and has topics[i], or none. Cost: a pass over the tokens, and
  /// for lists the topics of each document sorted.
  void count(std::span<const std::uint32_t> documents, std::span<const Topic> topics);
  /// Calls visit(topic, count) for every topic that a document has, ascending.
  template <class Visitor>
  void for_each_topic(std::size_t document, Visitor&& visit) const {
    if (form_ == DocumentForm::dense) {
      const std::int32_t* row = dense_counts_ + document * stride_;
      for (std::size_t k = 0; k < topics_; ++k) {
        if (row[k] != 0) visit(static_cast<Topic>(k), row[k]);
      }
      return;
    }
    const std::uint32_t* slot = slots_ + begin_[document];
    const std::uint64_t capacity = (begin_[document + 1] - begin_[document]) / 2;
    for (std::uint32_t j = 0; j < sizes_[document]; ++j) {
      visit(slot[j], static_cast<std::int32_t>(slot[capacity + j]));
    }
  }
  /// All rows as bytes, and back into rows that are 0.
  Bytes pack() const;
  void unpack(WireReader& in);
  /// Topics of a document, averaged over tokens: what a draw of a token has to look at.
  double topics_per_token() const;
  static std::uint64_t bytes_of_list(std::uint32_t length, std::size_t topics);

 private:
  void allocate();
  std::byte* take_memory(std::size_t bytes);
  void count_lists(std::span<const std::uint32_t> documents, std::span<const Topic> topics);
  void list_topics(std::size_t document, const std::vector<Topic>& topics, std::vector<std::int32_t>& counts);

  const Topology& topology_;
  DomainId domain_;
  std::size_t topics_, stride_;
  DocumentForm form_;
  std::vector<std::uint32_t> lengths_;
  Buffer memory_;
  std::int32_t* dense_counts_ = nullptr;
  std::uint32_t* slots_ = nullptr;
  std::vector<std::uint64_t> begin_;  ///< of lists, in slots_
  std::vector<std::uint32_t> sizes_;
  std::vector<std::uint32_t> tokens_;  ///< by document
  std::vector<std::size_t> tokens_begin_;
};

/// n_k, shared by all workers. A worker works on a copy to which it adds its own moves; the moves of a clock reach the
/// others when all workers have finished it: at staleness 0 before the next clock begins, so deterministic (a whole
/// sweep with frozen totals was measured to cost nothing in quality). At a staleness a worker that runs ahead starts
/// its clock from what is committed and its own later moves, which is what a table would show it.
class TopicTotals {
 public:
  /// Of several nodes: workers [first, end) are here, and only they hand over.
  TopicTotals(std::size_t topics, WorkerId first, WorkerId end);

  /// Between clocks.
  void reset(std::vector<std::int64_t> totals);
  const std::vector<std::int64_t>& committed() const noexcept { return committed_; }
  /// What `worker` starts a clock from, into `out` (K entries). Any thread, for its own worker.
  void start_clock(WorkerId worker, std::span<std::int64_t> out) const;
  /// The moves of a worker in a clock. Any thread, for its own worker.
  void hand_over(WorkerId worker, Clock clock, std::vector<std::int64_t> moves);
  /// What the workers here have handed over for `clock`, by topic.
  std::vector<std::int64_t> moves_of(Clock clock) const;
  /// All workers have handed over `clock`; `far` is what moves_of() says on the other nodes, added up, if there are
  /// any.
  void commit(Clock clock, std::span<const std::int64_t> far = {});

 private:
  struct Moves {
    Clock clock;
    std::vector<std::int64_t> by_topic;
  };
  const WorkerId first_;
  mutable std::mutex mutex_;
  std::vector<std::int64_t> committed_;
  std::vector<std::vector<Moves>> pending_;  ///< by worker that is here, clocks ascending
};

}  // namespace orrery::lda
