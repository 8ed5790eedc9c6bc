// Corpora packed into one binary file: parsed once, then read in place, any range of documents by itself, so that a
// training can take its documents from the disk block by block (design section 10). Files are written whole or not at
// all; one that is cut short, damaged or of another version is refused with what was expected and what was got.
//
// The file, little endian: a head of 128 bytes | the vocabulary, a word a line | where each document's cells begin, 64
// bits each, documents + 1 of them | the word of each cell, 32 bits | its count, 32 bits. Every part begins at a
// multiple of 64 bytes and has a checksum in the head, which has one itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/corpus.h"
#include "engine/data/input_file.h"

namespace orrery {

/// What a packed corpus begins with.
inline constexpr std::string_view kPackedCorpusMagic = "ORRYPACK";

/// Whether a file begins like one. No pipe does.
bool is_packed_corpus(const std::string& path);
/// Writes a corpus as read_corpus() gave it; returns the size of the file. Throws an output error.
std::uint64_t pack_corpus(const CorpusData& data, const std::filesystem::path& path);

/// An open packed corpus. Construct = the head is valid, the size of the file is what it promises and the vocabulary is
/// read; the cells are checked as they are visited. Reading is safe from several threads.
class PackedCorpus {
 public:
  /// @throws Error (data) for a file that is compressed, truncated, damaged, of another version, or none.
  explicit PackedCorpus(const std::string& path);

  std::uint64_t documents() const noexcept { return documents_; }
  std::uint64_t cells() const noexcept { return cells_; }
  std::uint64_t tokens() const noexcept { return tokens_; }
  std::uint32_t word_count() const noexcept { return word_count_; }
  const std::vector<std::string>& vocabulary() const noexcept { return vocabulary_; }
  /// The words came as words (from a text), not as numbers; and they kept their case.
  bool named() const noexcept { return named_; }
  bool keep_case() const noexcept { return keep_case_; }
  /// That of the corpus that was packed (CorpusData::checksum).
  std::uint64_t checksum() const noexcept { return checksum_; }

  /// The documents [first, last) as a corpus of their own, without the vocabulary. Cost: its bytes. The cells are taken
  /// as they are: visit() has checked them. @throws Error (data) when the file cannot be read.
  Corpus read(std::uint64_t first, std::uint64_t last) const;
  /// All documents in order, in pieces of about `cells` cells: visit(first document, piece). Checks every checksum, and
  /// that words, counts and places are possible. @throws Error (data).
  using Visit = std::function<void(std::uint64_t first, Corpus& piece)>;
  void visit(const Visit& visit, std::uint64_t cells = std::uint64_t{1} << 17) const;

 private:
  void read_vocabulary(std::uint64_t bytes, std::uint64_t expected);
  void check_piece(const Corpus& piece, std::uint64_t first) const;
  template <class T>
  void read_values(std::uint64_t part, std::uint64_t index, std::vector<T>& values) const;

  InputFile file_;
  std::uint64_t documents_ = 0, cells_ = 0, tokens_ = 0, checksum_ = 0;
  std::uint64_t starts_at_ = 0, words_at_ = 0, counts_at_ = 0;  ///< in the file
  std::uint64_t starts_checksum_ = 0, words_checksum_ = 0, counts_checksum_ = 0;
  std::uint32_t word_count_ = 0;
  bool named_ = false, keep_case_ = false;
  std::vector<std::string> vocabulary_;
};

/// The whole of it, as read_corpus() gives every other corpus.
CorpusData read_packed_corpus(const std::string& path);

}  // namespace orrery
