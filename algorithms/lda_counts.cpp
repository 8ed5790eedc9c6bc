#include "algorithms/lda_counts.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "engine/assert.h"

namespace orrery::lda {
namespace {

constexpr std::uint64_t kCacheLine = 64;

std::uint64_t dense_bytes(std::size_t topics) { return padded_topics(topics) * sizeof(std::int32_t); }

std::uint64_t list_capacity(std::uint32_t tokens, std::size_t topics) {
  return std::min<std::uint64_t>(tokens, topics);
}

std::uint64_t list_bytes(std::uint32_t tokens, std::size_t topics) {
  return sizeof(std::uint32_t) + list_capacity(tokens, topics) * (sizeof(Topic) + sizeof(std::int32_t));
}

bool is_dense(std::uint32_t tokens, std::size_t topics) { return dense_bytes(topics) <= list_bytes(tokens, topics); }

}  // namespace

std::uint64_t WordTopics::row_bytes(std::uint32_t tokens, std::size_t topics) {
  return is_dense(tokens, topics) ? dense_bytes(topics) : list_bytes(tokens, topics);
}

namespace {

// Dense rows start at cache lines; frequent words come first in a block, so they lie together in front of the lists.
std::vector<std::uint64_t> row_offsets(const Axis& words, std::size_t topics, std::vector<std::size_t>& block_bytes) {
  std::vector<std::uint64_t> offsets(words.size());
  for (std::size_t block = 0; block < words.parts(); ++block) {
    std::uint64_t used = 0;
    for (std::uint32_t word = words.begin[block]; word < words.begin[block + 1]; ++word) {
      offsets[word] = used;
      used += WordTopics::row_bytes(words.counts[word], topics);
    }
    block_bytes.push_back((used + kCacheLine - 1) / kCacheLine * kCacheLine);
  }
  return offsets;
}

}  // namespace

WordTopics::WordTopics(const Topology& topology, const Axis& words, std::size_t topics)
    : topics_(topics),
      block_begin_(words.begin),
      offsets_(row_offsets(words, topics, block_bytes_)),
      frequencies_(words.counts),
      blocks_(topology, block_bytes_) {
  for (const std::size_t bytes : block_bytes_) bytes_ += bytes;
}

void WordTopics::set(BlockId block, std::uint32_t word, std::span<const std::int32_t> by_topic) {
  const Row at = row(view(block), block, word);
  if (at.dense) {
    std::copy(by_topic.begin(), by_topic.end(), at.counts);
    return;
  }
  const std::size_t capacity = list_capacity(frequencies_[block_begin_[block] + word], topics_);
  std::uint32_t size = 0;
  for (std::size_t k = 0; k < topics_; ++k) {
    if (by_topic[k] == 0) continue;
    ORRERY_CHECK(by_topic[k] > 0 && size < capacity);
    at.topics[size] = static_cast<Topic>(k);
    at.counts[size++] = by_topic[k];
  }
  *at.size = size;
}

void WordTopics::clear() {
  for (BlockId block = 0; block < block_bytes_.size(); ++block) {
    std::memset(blocks_.view(block).data(), 0, block_bytes_[block]);
  }
}

Bytes WordTopics::pack(BlockId block) const {
  Bytes bytes;
  for (std::uint32_t word = 0; word < words_of(block); ++word) {
    const Row at = row(view(block), block, word);
    if (!at.dense) {
      put(bytes, *at.size);
      put_all(bytes, std::span<const Topic>(at.topics, *at.size));
    }
    put_all(bytes, std::span<const std::int32_t>(at.counts, at.dense ? topics_ : *at.size));
  }
  return bytes;
}

void WordTopics::unpack(BlockId block, std::span<const std::byte> bytes) {
  WireReader in(bytes);
  for (std::uint32_t word = 0; word < words_of(block); ++word) {
    const Row at = row(view(block), block, word);
    if (!at.dense) {
      *at.size = in.take<std::uint32_t>();
      in.take_all(std::span(at.topics, *at.size));
    }
    in.take_all(std::span(at.counts, at.dense ? topics_ : *at.size));
  }
}

namespace {

/// Adds to a row's list one that ascends as it does; topics that come to 0 go. The row has room for the others.
void merge(const WordTopics::Row& row, std::span<const Topic> topics, std::span<const std::int32_t> counts) {
  const std::vector<Topic> old_topics(row.topics, row.topics + *row.size);
  const std::vector<std::int32_t> old_counts(row.counts, row.counts + *row.size);
  std::uint32_t size = 0;
  for (std::size_t i = 0, j = 0; i < old_topics.size() || j < topics.size();) {
    const bool has_old = i < old_topics.size() && (j == topics.size() || old_topics[i] <= topics[j]);
    const bool has_new = j < topics.size() && (i == old_topics.size() || topics[j] <= old_topics[i]);
    const Topic topic = has_old ? old_topics[i] : topics[j];
    const std::int32_t count = (has_old ? old_counts[i] : 0) + (has_new ? counts[j] : 0);
    ORRERY_CHECK(count >= 0);
    if (count != 0) {
      row.topics[size] = topic;
      row.counts[size++] = count;
    }
    i += has_old ? 1 : 0;
    j += has_new ? 1 : 0;
  }
  *row.size = size;
}

}  // namespace

void WordTopics::add(BlockId block, std::span<const std::byte> bytes) {
  WireReader in(bytes);
  std::vector<Topic> topics;
  std::vector<std::int32_t> counts;
  for (std::uint32_t word = 0; word < words_of(block); ++word) {
    const Row at = row(view(block), block, word);
    if (!at.dense) {
      topics.resize(in.take<std::uint32_t>());
      in.take_all(std::span(topics));
    }
    counts.resize(at.dense ? topics_ : topics.size());
    in.take_all(std::span(counts));
    if (!at.dense) {
      merge(at, topics, counts);
    } else {
      for (std::size_t k = 0; k < topics_; ++k) at.counts[k] += counts[k];
    }
  }
}

void WordTopics::copy(BlockId block, const WordTopics& other) {
  std::memcpy(view(block), other.view(block), block_bytes_[block]);
}

Bytes WordTopics::difference(BlockId block, const WordTopics& base) const {
  Bytes bytes;
  std::vector<std::int32_t> moved(topics_, 0);
  std::vector<Topic> present, topics;
  std::vector<std::int32_t> counts;
  for (std::uint32_t word = 0; word < words_of(block); ++word) {
    const auto put_in = [&](const WordTopics& from, std::int32_t sign) {
      from.for_each_topic(block, word, [&](Topic topic, std::int32_t count) {
        present.push_back(topic);
        moved[topic] += sign * count;
      });
    };
    put_in(*this, 1);
    put_in(base, -1);
    std::sort(present.begin(), present.end());
    for (const Topic topic : present) {
      if (moved[topic] == 0) continue;
      topics.push_back(topic);
      counts.push_back(std::exchange(moved[topic], 0));
    }
    put(bytes, static_cast<std::uint32_t>(topics.size()));
    put_all(bytes, std::span<const Topic>(topics));
    put_all(bytes, std::span<const std::int32_t>(counts));
    present.clear();
    topics.clear();
    counts.clear();
  }
  return bytes;
}

void WordTopics::add_difference(BlockId block, std::span<const std::byte> bytes) {
  WireReader in(bytes);
  std::vector<Topic> topics;
  std::vector<std::int32_t> counts;
  for (std::uint32_t word = 0; word < words_of(block); ++word) {
    const Row at = row(view(block), block, word);
    topics.resize(in.take<std::uint32_t>());
    counts.resize(topics.size());
    in.take_all(std::span(topics));
    in.take_all(std::span(counts));
    if (topics.empty()) continue;
    if (!at.dense) {
      merge(at, topics, counts);
      continue;
    }
    for (std::size_t j = 0; j < topics.size(); ++j) {
      at.counts[topics[j]] += counts[j];
      ORRERY_CHECK(at.counts[topics[j]] >= 0);
    }
  }
}

WordTopics::Row WordTopics::row(std::byte* block_memory, BlockId block, std::uint32_t word) const {
  const std::uint32_t internal = block_begin_[block] + word;
  std::byte* const start = block_memory + offsets_[internal];
  Row row;
  row.dense = is_dense(frequencies_[internal], topics_);
  if (row.dense) {
    row.counts = reinterpret_cast<std::int32_t*>(start);
    return row;
  }
  row.size = reinterpret_cast<std::uint32_t*>(start);
  row.topics = row.size + 1;
  row.counts = reinterpret_cast<std::int32_t*>(row.topics + list_capacity(frequencies_[internal], topics_));
  return row;
}

// Rows lie beyond the second-level cache, and the next one's place is known while the one before is worked on.
void WordTopics::prefetch(const std::byte* block_memory, BlockId block, std::uint32_t word) const {
  constexpr std::uint64_t kMost = 4096;
  const std::uint32_t internal = block_begin_[block] + word;
  const std::byte* const start = block_memory + offsets_[internal];
  const std::uint64_t bytes = std::min(kMost, row_bytes(frequencies_[internal], topics_));
  for (std::uint64_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(start + at, 1);
}

OpenRow::OpenRow(std::size_t topics, std::size_t most_added)
    : padded_(padded_topics(topics)), counts_(padded_ + kTopicAlignment, 0), present_(padded_, 0), added_(most_added) {}

void OpenRow::open(const WordTopics::Row& row, Visit& visit) {
  visit.listed = !row.dense;
  visit.added = added_.data();
  visit.added_size = 0;
  if (row.dense) {
    visit.counts = row.counts;
    return;
  }
  // Kernels load whole cache lines.
  void* aligned = counts_.data();
  std::size_t space = counts_.size() * sizeof(std::int32_t);
  visit.counts = static_cast<std::int32_t*>(std::align(kCacheLine, padded_ * sizeof(std::int32_t), aligned, space));
  visit.present = present_.data();
  topics_.assign(row.topics, row.topics + *row.size);
  for (std::uint32_t j = 0; j < *row.size; ++j) {
    visit.counts[row.topics[j]] = row.counts[j];
    visit.present[row.topics[j]] = 1;
  }
  visit.row = topics_.data();
  visit.row_size = topics_.size();
}

void OpenRow::close(const WordTopics::Row& row, const Visit& visit) {
  if (row.dense) return;
  std::sort(visit.added, visit.added + visit.added_size);
  std::uint32_t size = 0;
  const auto take = [&](Topic topic) {
    std::int32_t& count = visit.counts[topic];
    ORRERY_HEAVY_CHECK(count >= 0);
    if (count != 0) {
      row.topics[size] = topic;
      row.counts[size++] = count;
    }
    count = 0;
    visit.present[topic] = 0;
  };
  // Two ascending lists without a common topic.
  const Topic* old = visit.row;
  const Topic* const old_end = old + visit.row_size;
  for (const Topic* added = visit.added; added != visit.added + visit.added_size; ++added) {
    while (old != old_end && *old < *added) take(*old++);
    take(*added);
  }
  while (old != old_end) take(*old++);
  *row.size = size;
}

DocumentTopics::DocumentTopics(const Topology& topology, DomainId domain, std::span<const std::uint32_t> lengths,
                               std::size_t topics, DocumentForm form)
    : topology_(topology),
      domain_(domain),
      topics_(topics),
      stride_(padded_topics(topics)),
      form_(form),
      lengths_(lengths.begin(), lengths.end()) {
  allocate();
}

std::uint64_t DocumentTopics::bytes_of_list(std::uint32_t length, std::size_t topics) {
  return padded_topics(list_capacity(length, topics)) * (sizeof(Topic) + sizeof(std::int32_t));
}

void DocumentTopics::reuse(std::span<const std::uint32_t> lengths) {
  lengths_.assign(lengths.begin(), lengths.end());
  tokens_.clear();
}

// Mapping memory anew costs more than to clear what is there: a fault for each page.
std::byte* DocumentTopics::take_memory(std::size_t bytes) {
  if (bytes <= memory_.size()) {
    std::fill_n(memory_.data(), bytes, std::byte{0});
  } else {
    memory_.release();
    memory_ = Buffer::local(bytes, domain_, topology_);
  }
  return memory_.data();
}

void DocumentTopics::allocate() {
  if (form_ == DocumentForm::dense) {
    dense_counts_ = reinterpret_cast<std::int32_t*>(take_memory(lengths_.size() * stride_ * sizeof(std::int32_t)));
    return;
  }
  begin_.assign(lengths_.size() + 1, 0);
  for (std::size_t d = 0; d < lengths_.size(); ++d) {
    begin_[d + 1] = begin_[d] + bytes_of_list(lengths_[d], topics_) / sizeof(std::uint32_t);
  }
  sizes_.assign(lengths_.size(), 0);
  slots_ = reinterpret_cast<std::uint32_t*>(take_memory(begin_.back() * sizeof(std::uint32_t)));
}

DenseRows DocumentTopics::dense() noexcept { return {dense_counts_, stride_}; }

ListedRows DocumentTopics::listed() noexcept { return {slots_, begin_.data(), sizes_.data()}; }

void DocumentTopics::add(std::uint32_t document, Topic topic) {
  if (form_ == DocumentForm::dense) {
    ++dense_counts_[document * stride_ + topic];
    return;
  }
  const std::uint64_t capacity = (begin_[document + 1] - begin_[document]) / 2;
  std::uint32_t* const topics = slots_ + begin_[document];
  std::uint32_t* const counts = topics + capacity;
  std::uint32_t& size = sizes_[document];
  const auto place = static_cast<std::uint32_t>(std::lower_bound(topics, topics + size, topic) - topics);
  if (place == size || topics[place] != topic) {
    ORRERY_CHECK(size < capacity);
    std::copy_backward(topics + place, topics + size, topics + size + 1);
    std::copy_backward(counts + place, counts + size, counts + size + 1);
    topics[place] = topic;
    counts[place] = 0;
    ++size;
  }
  ++counts[place];
}

void DocumentTopics::list_tokens(std::span<const std::uint32_t> documents) {
  if (tokens_.size() == documents.size()) return;
  ORRERY_CHECK(documents.size() <= std::numeric_limits<std::uint32_t>::max());
  tokens_begin_.assign(1, 0);
  for (const std::uint32_t length : lengths_) tokens_begin_.push_back(tokens_begin_.back() + length);
  tokens_.resize(documents.size());
  std::vector<std::size_t> next(tokens_begin_);
  for (std::size_t i = 0; i < documents.size(); ++i) tokens_[next[documents[i]]++] = static_cast<std::uint32_t>(i);
}

void DocumentTopics::convert(DocumentForm form) {
  if (form == form_) return;
  DocumentTopics other(topology_, domain_, lengths_, topics_, form);
  for (std::uint32_t d = 0; d < lengths_.size(); ++d) {
    for_each_topic(d, [&](Topic topic, std::int32_t count) {
      other.add(d, topic);
      if (form == DocumentForm::dense) {
        other.dense_counts_[d * stride_ + topic] = count;
      } else {
        // Topics ascend, so the one just added is the last.
        const std::uint64_t capacity = (other.begin_[d + 1] - other.begin_[d]) / 2;
        other.slots_[other.begin_[d] + capacity + other.sizes_[d] - 1] = static_cast<std::uint32_t>(count);
      }
    });
  }
  form_ = form;
  memory_ = std::move(other.memory_);
  dense_counts_ = other.dense_counts_;
  slots_ = other.slots_;
  begin_ = std::move(other.begin_);
  sizes_ = std::move(other.sizes_);
}

// Topics of a document, not yet sorted, with their counts, which become 0.
void DocumentTopics::list_topics(std::size_t document, const std::vector<Topic>& topics,
                                 std::vector<std::int32_t>& counts) {
  const std::uint64_t capacity = (begin_[document + 1] - begin_[document]) / 2;
  ORRERY_CHECK(topics.size() <= capacity);
  std::uint32_t* const slot = slots_ + begin_[document];
  std::copy(topics.begin(), topics.end(), slot);
  std::sort(slot, slot + topics.size());
  for (std::size_t j = 0; j < topics.size(); ++j) {
    slot[capacity + j] = static_cast<std::uint32_t>(std::exchange(counts[slot[j]], 0));
  }
  sizes_[document] = static_cast<std::uint32_t>(topics.size());
}

void DocumentTopics::count(std::span<const std::uint32_t> documents, std::span<const Topic> topics) {
  allocate();
  if (form_ == DocumentForm::listed) return count_lists(documents, topics);
  for (std::size_t i = 0; i < topics.size(); ++i) {
    if (topics[i] != kNoTopic) ++dense_counts_[documents[i] * stride_ + topics[i]];
  }
}

void DocumentTopics::count_lists(std::span<const std::uint32_t> documents, std::span<const Topic> topics) {
  std::vector<std::uint64_t> next(lengths_.size() + 1, 0);
  for (std::size_t d = 0; d < lengths_.size(); ++d) next[d + 1] = next[d] + lengths_[d];
  std::vector<Topic> by_document(next.back());
  for (std::size_t i = 0; i < topics.size(); ++i) {
    if (topics[i] != kNoTopic) by_document[next[documents[i]]++] = topics[i];
  }
  std::vector<std::int32_t> counts(topics_, 0);
  std::vector<Topic> present;
  std::uint64_t first = 0;
  for (std::size_t d = 0; d < lengths_.size(); first += lengths_[d++]) {
    present.clear();
    for (std::uint64_t i = first; i < next[d]; ++i) {
      if (counts[by_document[i]]++ == 0) present.push_back(by_document[i]);
    }
    list_topics(d, present, counts);
  }
}

Bytes DocumentTopics::pack() const {
  Bytes bytes;
  std::vector<std::pair<Topic, std::int32_t>> row;
  for (std::size_t d = 0; d < lengths_.size(); ++d) {
    row.clear();
    for_each_topic(d, [&](Topic topic, std::int32_t count) { row.emplace_back(topic, count); });
    put(bytes, static_cast<std::uint32_t>(row.size()));
    for (const auto& [topic, count] : row) {
      put(bytes, topic);
      put(bytes, count);
    }
  }
  return bytes;
}

void DocumentTopics::unpack(WireReader& in) {
  for (std::uint32_t d = 0; d < lengths_.size(); ++d) {
    for (auto left = in.take<std::uint32_t>(); left > 0; --left) {
      const auto topic = in.take<Topic>();
      for (auto count = in.take<std::int32_t>(); count > 0; --count) add(d, topic);
    }
  }
}

double DocumentTopics::topics_per_token() const {
  std::uint64_t tokens = 0, seen = 0;
  for (std::size_t d = 0; d < lengths_.size(); ++d) {
    std::uint64_t topics = 0;
    for_each_topic(d, [&](Topic, std::int32_t) { ++topics; });
    tokens += lengths_[d];
    seen += lengths_[d] * topics;
  }
  return tokens == 0 ? 0 : static_cast<double>(seen) / static_cast<double>(tokens);
}

TopicTotals::TopicTotals(std::size_t topics, WorkerId first, WorkerId end)
    : first_(first), committed_(topics, 0), pending_(end - first) {}

void TopicTotals::reset(std::vector<std::int64_t> totals) {
  committed_ = std::move(totals);
  for (auto& moves : pending_) moves.clear();
}

void TopicTotals::start_clock(WorkerId worker, std::span<std::int64_t> out) const {
  const std::lock_guard lock(mutex_);
  std::copy(committed_.begin(), committed_.end(), out.begin());
  for (const Moves& moves : pending_[worker - first_]) {
    for (std::size_t k = 0; k < out.size(); ++k) out[k] += moves.by_topic[k];
  }
}

void TopicTotals::hand_over(WorkerId worker, Clock clock, std::vector<std::int64_t> moves) {
  const std::lock_guard lock(mutex_);
  pending_[worker - first_].push_back({clock, std::move(moves)});
}

std::vector<std::int64_t> TopicTotals::moves_of(Clock clock) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::int64_t> sum(committed_.size(), 0);
  for (const auto& of_worker : pending_) {
    for (const Moves& moves : of_worker) {
      for (std::size_t k = 0; moves.clock == clock && k < sum.size(); ++k) sum[k] += moves.by_topic[k];
    }
  }
  return sum;
}

void TopicTotals::commit(Clock clock, std::span<const std::int64_t> far) {
  const std::lock_guard lock(mutex_);
  for (std::size_t k = 0; k < far.size(); ++k) committed_[k] += far[k];
  for (auto& of_worker : pending_) {
    ORRERY_CHECK(!of_worker.empty() && of_worker.front().clock == clock);
    for (std::size_t k = 0; k < committed_.size(); ++k) committed_[k] += of_worker.front().by_topic[k];
    of_worker.erase(of_worker.begin());
  }
  for (const std::int64_t total : committed_) ORRERY_CHECK(total >= 0);
}

}  // namespace orrery::lda
