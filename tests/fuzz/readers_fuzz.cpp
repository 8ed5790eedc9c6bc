#include "tests/fuzz/readers_fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "engine/data/corpus.h"
#include "engine/data/dense.h"
#include "engine/data/edges.h"
#include "engine/data/id_map.h"
#include "engine/data/ratings.h"
#include "engine/data/sparse_rows.h"
#include "engine/error.h"

namespace orrery::testing {

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "fuzz_readers: %s\n", what.c_str());
  std::abort();
}

// A file without a directory: the readers open it by its name under /proc.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::uint8_t> content) : fd_(::memfd_create("input", MFD_CLOEXEC)) {
    if (fd_ < 0) fail("no memory file");
    const std::uint8_t* at = content.data();
    for (std::size_t left = content.size(); left > 0;) {
      const ssize_t done = ::write(fd_, at, left);
      if (done <= 0) fail("cannot write a memory file");
      at += done;
      left -= static_cast<std::size_t>(done);
    }
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

constexpr char kReaders[] = {'r', 'p', 'm', 's', 'd', 't', 'v', 'e', 'c', 'n', 'f', 'i'};

char reader_of(std::uint8_t byte) {
  for (const char reader : kReaders) {
    if (byte == static_cast<std::uint8_t>(reader)) return reader;
  }
  return kReaders[byte % sizeof kReaders];
}

std::string ratings(const std::string& path, const ReadOptions& way, char reader) {
  RatingsOptions options;
  options.read = way;
  options.pairs = reader == 'p';
  if (reader == 'm') options.format = DataFormat::matrix_market;
  const RatingsData data = read_ratings(path, options);
  for (std::uint64_t i = 0; i < data.ratings.size(); ++i) {
    if (data.ratings[i].user >= data.users.size() || data.ratings[i].item >= data.items.size())
      fail("index out of range");
  }
  if (count_duplicates(data.ratings) >= data.ratings.size()) fail("all ratings are duplicates");
  const IdMap back = IdMap::from_lines(data.users.texts());
  if (back.checksum() != data.users.checksum()) fail("a map of ids does not come back");
  return data.recognised.describe() + " " + std::to_string(data.checksum);
}

std::string corpus(const std::string& path, const ReadOptions& way, char reader) {
  static constexpr DataFormat kFormats[] = {DataFormat::docword, DataFormat::text, DataFormat::svmlight};
  CorpusOptions options;
  options.read = way;
  options.format = kFormats[reader == 'd' ? 0 : reader == 't' ? 1 : 2];
  const CorpusData data = read_corpus(path, options);
  std::uint64_t tokens = 0;
  for (std::uint64_t c = 0; c < data.corpus.cells(); ++c) {
    tokens += data.corpus.counts[c];
    if (data.corpus.words[c] >= data.corpus.word_count) fail("word out of range");
  }
  if (tokens != data.corpus.tokens || data.corpus.starts.back() != data.corpus.cells()) fail("tokens do not add up");
  return std::to_string(data.checksum);
}

std::string dense(const std::string& path, const ReadOptions& way, char reader) {
  DenseOptions options;
  options.read = way;
  options.format = reader == 'c' ? DataFormat::csv : DataFormat::npy;
  const DenseData data = read_dense(path, options);
  if (data.matrix.values.size() != data.matrix.rows * data.matrix.columns) fail("a table is not full");
  return std::to_string(data.checksum);
}

std::string read(const std::string& path, const ReadOptions& way, char reader) {
  switch (reader) {
    case 'r':
    case 'p':
    case 'm':
      return ratings(path, way, reader);
    case 's':
      return std::to_string(read_svmlight(path, {way}).checksum);
    case 'd':
    case 't':
    case 'v':
      return corpus(path, way, reader);
    case 'e':
      return std::to_string(read_edges(path, way).checksum);
    case 'c':
    case 'n':
      return dense(path, way, reader);
    case 'f': {
      InputFile file(path);
      return detect_format(file).describe();
    }
    default:
      return std::to_string(IdMap::load(path).checksum());
  }
}

std::string outcome(const std::string& path, const ReadOptions& way, char reader) {
  try {
    return read(path, way, reader);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data && error.kind() != ErrorKind::usage) fail(error.what());
    return std::string{"error: "} + error.what();
  }
}

}  // namespace

void fuzz_readers(std::span<const std::uint8_t> input) {
  if (input.empty()) return;
  const char reader = reader_of(input[0]);
  const MemoryFile file(input.subspan(1));
  const std::string whole = outcome(file.path(), {}, reader);
  const ReadOptions tiny{serial_for, std::size_t{1} + input.size() % 13, 3};
  const std::string cut = outcome(file.path(), tiny, reader);
  if (whole != cut)
    fail(std::string{"reader '"} + reader + "': in one piece \"" + whole + "\", in small ones \"" + cut + "\"");
}

}  // namespace orrery::testing
