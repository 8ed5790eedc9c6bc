#include "engine/data/packed_corpus.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <span>
#include <type_traits>

#include "engine/atomic_file.h"
#include "engine/checksum.h"
#include "engine/error.h"

namespace orrery {

namespace {

constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kAlignment = 64;
constexpr std::uint32_t kNamed = 1, kKeepCase = 2;

struct PackHead {
  std::array<char, 8> magic{};
  std::uint32_t version = kVersion;
  std::uint32_t flags = 0;
  std::uint64_t documents = 0, cells = 0, tokens = 0;
  std::uint32_t words = 0, reserved = 0;
  std::uint64_t vocabulary_bytes = 0;
  std::uint64_t content = 0;  // CorpusData::checksum
  std::uint64_t vocabulary_checksum = 0, starts_checksum = 0, words_checksum = 0, counts_checksum = 0;
  std::array<std::uint64_t, 3> unused{};
  std::uint64_t checksum = 0;  // of all above
};
static_assert(sizeof(PackHead) == 128 && std::is_trivially_copyable_v<PackHead>);

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Where the parts of a file lie. Sizes are those of a file that exists, so they cannot overflow once checked.
struct Places {
  explicit Places(const PackHead& head)
      : starts(aligned(sizeof(PackHead) + head.vocabulary_bytes)),
        words(aligned(starts + (head.documents + 1) * sizeof(std::uint64_t))),
        counts(aligned(words + head.cells * sizeof(std::uint32_t))),
        end(counts + head.cells * sizeof(std::uint32_t)) {}
  std::uint64_t starts, words, counts, end;
};

std::uint64_t head_checksum(const PackHead& head) {
  return checksum(std::as_bytes(std::span{&head, 1}).first(offsetof(PackHead, checksum)));
}

/// The next part begins at `place`.
void pad_to(AtomicFile& file, std::uint64_t place) {
  static constexpr std::array<std::byte, kAlignment> kZeros{};
  file.write(std::span(kZeros).first(static_cast<std::size_t>(place - file.size())));
}

PackHead read_head(const InputFile& file) {
  PackHead head;
  const auto bytes = std::span(reinterpret_cast<char*>(&head), sizeof head);
  if (file.read_at(0, bytes) < bytes.size()) {
    throw data_error(file.path(), "is truncated: too short for the head of a packed corpus");
  }
  if (std::string_view(head.magic.data(), head.magic.size()) != kPackedCorpusMagic) {
    throw data_error(file.path(), "is no packed corpus");
  }
  if (head.version != kVersion) {
    throw data_error(file.path(), "expected a packed corpus of version " + std::to_string(kVersion) + ", got version " +
                                      std::to_string(head.version) + "; pack the corpus again");
  }
  if (head_checksum(head) != head.checksum) {
    throw data_error(file.path(), "is damaged: the checksum of its head does not agree");
  }
  const std::uint64_t most = file.content_bytes();
  const bool possible = head.documents < most && head.cells < most && head.vocabulary_bytes < most;
  const std::uint64_t expected = possible ? Places(head).end : 0;
  if (possible && expected == most) return head;
  throw data_error(file.path(), (expected <= most && possible ? "is damaged: expected " : "is truncated: expected ") +
                                    (possible ? std::to_string(expected) : "more") + " bytes, got " +
                                    std::to_string(most));
}

void require_sum(const std::string& path, const char* part, std::uint64_t expected, std::uint64_t got) {
  if (expected == got) return;
  throw data_error(path, std::string("is damaged in its ") + part + ": expected checksum " + checksum_text(expected) +
                             ", got " + checksum_text(got));
}

}  // namespace

bool is_packed_corpus(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::array<char, kPackedCorpusMagic.size()> begin{};
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), begin.size());
  return file && std::string_view(begin.data(), begin.size()) == kPackedCorpusMagic;
}

std::uint64_t pack_corpus(const CorpusData& data, const std::filesystem::path& path) {
  const Corpus& corpus = data.corpus;
  std::string vocabulary;
  for (const std::string& word : corpus.vocabulary) vocabulary += word + "\n";
  const auto starts = std::as_bytes(std::span(corpus.starts)), words = std::as_bytes(std::span(corpus.words)),
             counts = std::as_bytes(std::span(corpus.counts));
  PackHead head;
  std::copy(kPackedCorpusMagic.begin(), kPackedCorpusMagic.end(), head.magic.begin());
  head.flags = (data.named ? kNamed : 0) | (data.keep_case ? kKeepCase : 0);
  head.documents = corpus.documents();
  head.cells = corpus.cells();
  head.tokens = corpus.tokens;
  head.words = corpus.word_count;
  head.vocabulary_bytes = vocabulary.size();
  head.content = data.checksum;
  head.vocabulary_checksum = checksum(vocabulary);
  head.starts_checksum = checksum(starts);
  head.words_checksum = checksum(words);
  head.counts_checksum = checksum(counts);
  head.checksum = head_checksum(head);
  const Places places(head);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span{&head, 1}));
  file.write(vocabulary);
  pad_to(file, places.starts);
  file.write(starts);
  pad_to(file, places.words);
  file.write(words);
  pad_to(file, places.counts);
  file.write(counts);
  file.commit();
  return places.end;
}

PackedCorpus::PackedCorpus(const std::string& path) : file_(path) {
  if (!file_.seekable()) {
    throw data_error(path, "a packed corpus is read in place: expected a plain file, got a compressed one or a pipe");
  }
  const PackHead head = read_head(file_);
  const Places places(head);
  documents_ = head.documents;
  cells_ = head.cells;
  tokens_ = head.tokens;
  checksum_ = head.content;
  word_count_ = head.words;
  named_ = (head.flags & kNamed) != 0;
  keep_case_ = (head.flags & kKeepCase) != 0;
  starts_at_ = places.starts;
  words_at_ = places.words;
  counts_at_ = places.counts;
  starts_checksum_ = head.starts_checksum;
  words_checksum_ = head.words_checksum;
  counts_checksum_ = head.counts_checksum;
  read_vocabulary(head.vocabulary_bytes, head.vocabulary_checksum);
}

void PackedCorpus::read_vocabulary(std::uint64_t bytes, std::uint64_t expected) {
  std::vector<char> text(static_cast<std::size_t>(bytes));
  read_values(sizeof(PackHead), 0, text);
  require_sum(file_.path(), "vocabulary", expected, orrery::checksum(std::string_view(text.data(), text.size())));
  for (auto word = text.begin(); word != text.end();) {
    const auto end = std::find(word, text.end(), '\n');
    if (end == text.end()) break;
    vocabulary_.emplace_back(word, end);
    word = end + 1;
  }
  if (!vocabulary_.empty() && vocabulary_.size() != word_count_) {
    throw data_error(file_.path(), "is damaged: expected " + std::to_string(word_count_) + " words, got " +
                                       std::to_string(vocabulary_.size()));
  }
}

template <class T>
void PackedCorpus::read_values(std::uint64_t part, std::uint64_t index, std::vector<T>& values) const {
  const auto bytes = std::span(reinterpret_cast<char*>(values.data()), values.size() * sizeof(T));
  if (file_.read_at(part + index * sizeof(T), bytes) < bytes.size()) {
    throw data_error(file_.path(), "has become shorter since it was opened");
  }
}

Corpus PackedCorpus::read(std::uint64_t first, std::uint64_t last) const {
  Corpus out;
  out.word_count = word_count_;
  out.starts.resize(static_cast<std::size_t>(last - first + 1));
  read_values(starts_at_, first, out.starts);
  const std::uint64_t begin = out.starts.front();
  if (!std::is_sorted(out.starts.begin(), out.starts.end()) || out.starts.back() > cells_) {
    throw data_error(file_.path(), "is damaged: the places of its documents do not ascend");
  }
  for (std::uint64_t& start : out.starts) start -= begin;
  out.words.resize(static_cast<std::size_t>(out.starts.back()));
  out.counts.resize(out.words.size());
  read_values(words_at_, begin, out.words);
  read_values(counts_at_, begin, out.counts);
  for (const std::uint32_t count : out.counts) out.tokens += count;
  return out;
}

void PackedCorpus::check_piece(const Corpus& piece, std::uint64_t first) const {
  for (std::size_t d = 0; d < piece.documents(); ++d) {
    for (std::uint64_t c = piece.starts[d]; c < piece.starts[d + 1]; ++c) {
      const bool ascends = c == piece.starts[d] || piece.words[c - 1] < piece.words[c];
      if (ascends && piece.words[c] < word_count_ && piece.counts[c] > 0) continue;
      throw data_error(file_.path(),
                       "is damaged: document " + std::to_string(first + d + 1) + " has a word or a count that is none");
    }
  }
}

void PackedCorpus::visit(const Visit& visit, std::uint64_t cells) const {
  Checksum starts, words, counts;
  std::uint64_t tokens = 0, seen = 0;
  const std::uint64_t per_document = cells_ / std::max<std::uint64_t>(documents_, 1) + 1;
  const std::uint64_t step = std::max<std::uint64_t>(cells / per_document, 1);
  for (std::uint64_t first = 0; first < documents_; first += step) {
    Corpus piece = read(first, std::min(documents_, first + step));
    check_piece(piece, first);
    std::vector<std::uint64_t> places(piece.starts.begin(), piece.starts.end() - 1);
    for (std::uint64_t& place : places) place += seen;
    starts.update(std::as_bytes(std::span(places)));
    words.update(std::as_bytes(std::span(piece.words)));
    counts.update(std::as_bytes(std::span(piece.counts)));
    tokens += piece.tokens;
    seen += piece.cells();
    visit(first, piece);
  }
  starts.update(std::as_bytes(std::span(&seen, 1)));
  require_sum(file_.path(), "places of documents", starts_checksum_, starts.value());
  require_sum(file_.path(), "words", words_checksum_, words.value());
  require_sum(file_.path(), "counts", counts_checksum_, counts.value());
  if (tokens != tokens_ || seen != cells_) {
    throw data_error(file_.path(),
                     "is damaged: expected " + std::to_string(tokens_) + " tokens, got " + std::to_string(tokens));
  }
}

CorpusData read_packed_corpus(const std::string& path) {
  const PackedCorpus packed(path);
  CorpusData data;
  data.named = packed.named();
  data.keep_case = packed.keep_case();
  Corpus& corpus = data.corpus;
  corpus.word_count = packed.word_count();
  corpus.tokens = packed.tokens();
  corpus.starts.reserve(static_cast<std::size_t>(packed.documents()) + 1);
  corpus.words.reserve(static_cast<std::size_t>(packed.cells()));
  corpus.counts.reserve(static_cast<std::size_t>(packed.cells()));
  packed.visit([&](std::uint64_t, const Corpus& piece) {
    const std::uint64_t base = corpus.words.size();
    for (std::size_t d = 1; d < piece.starts.size(); ++d) corpus.starts.push_back(base + piece.starts[d]);
    corpus.words.insert(corpus.words.end(), piece.words.begin(), piece.words.end());
    corpus.counts.insert(corpus.counts.end(), piece.counts.begin(), piece.counts.end());
  });
  corpus.vocabulary = packed.vocabulary();
  return data;
}

}  // namespace orrery
