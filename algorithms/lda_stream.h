// Documents and the topics of their tokens on disk, for corpora larger than memory. One thread reads and writes, in the
// order of asking: what is expected next is read while something else is sampled, and what was sampled is written
// behind.
//
// A task that brings a stripe may have to wait for the disk, as every access to a file may; the thread it waits for
// needs no task to go on, so nothing can stand still for ever. Bits do not depend on any of this.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "algorithms/lda_layout.h"
#include "engine/npy.h"
#include "engine/scratch_file.h"

namespace orrery::lda {

/// The stripes of a grid that are not in memory. Stripes are moved in and out as a whole. Safe from several threads,
/// each with stripes of its own. Every method throws what a read or write behind it has failed with (an output error).
class DocumentStream {
 public:
  /// Space for all stripes of the grid, which may still be empty, in files without a name in `directory`.
  DocumentStream(const std::filesystem::path& directory, const TokenGrid& grid);
  ~DocumentStream();
  DocumentStream(const DocumentStream&) = delete;
  DocumentStream& operator=(const DocumentStream&) = delete;

  /// Writes a stripe for the first time, and empties it.
  void put(std::size_t s, Stripe& stripe);
  /// Begins to read a stripe that will be brought soon.
  void expect(std::size_t s);
  /// Fills a stripe: at once if it was expected long enough ago.
  void bring(std::size_t s, Stripe& stripe);
  /// Empties a stripe; its topics are written behind if they have changed.
  void release(std::size_t s, Stripe& stripe, bool changed);
  /// Waits until all is written, and forgets what was expected.
  void drain();

  /// The topics of a stripe as they lie on disk. After drain().
  void read_topics(std::size_t s, const ByteSink& sink) const;
  /// Overwrites topics of stripe s from its token `first` on. After drain().
  void write_topics(std::size_t s, std::size_t first, std::span<const Topic> topics);
  std::uint64_t bytes_written() const;

 private:
  struct Place {
    std::uint64_t documents = 0, runs = 0, topics = 0;  ///< in their files, in bytes
    std::size_t tokens = 0, run_count = 0;
  };
  struct Tokens {
    std::vector<std::uint32_t> documents;
    std::vector<Topic> topics;
    std::vector<Run> runs;
  };
  struct Task {
    std::size_t stripe;
    bool reads;
    Tokens tokens;
  };
  static Tokens take_tokens(Stripe& stripe);
  void serve();
  void perform(Task& task);
  /// A set of arrays to be read into. Called with the lock.
  Tokens take_spare();
  void throw_failure() const;

  std::vector<Place> places_;
  std::size_t most_tokens_ = 0;
  std::uint64_t used_ = 0;
  ScratchFile fixed_, topics_;  ///< documents and runs, which do not change; topics, which do
  mutable std::mutex mutex_;
  std::condition_variable work_, done_;
  std::deque<Task> queue_;
  std::set<std::size_t> asked_;  ///< stripes that are being read or are to be
  std::map<std::size_t, Tokens> arrived_;
  std::vector<Tokens> spare_;
  std::exception_ptr failure_;
  std::uint64_t bytes_written_ = 0;
  bool busy_ = false, ends_ = false;
  std::thread thread_;
};

}  // namespace orrery::lda
