// Checkpoints on disk: DIR/checkpoint/clock-N.ckpt, one file each, written behind the run. Keeps what the design
// promises in section 11: nothing before the last checkpoint is ever lost, no half-written file stands under a final
// name, and a truncated, corrupted or foreign checkpoint is refused with the reason and the one before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "engine/training.h"
#include "engine/types.h"

namespace orrery {

/// All that the bits of a run depend on: parameters, workers, schedule, seed, SIMD level, checksums of the data. Two
/// runs with equal fingerprints may share a checkpoint; threads, ranks and limits do not belong in it. Keys and values
/// hold neither tab nor line feed (internal Error).
class Fingerprint {
 public:
  Fingerprint& add(std::string key, std::string value);
  const std::vector<std::pair<std::string, std::string>>& items() const noexcept { return items_; }
  /// "rank: 16 there, 32 here; seed: …": where `there` differs from this; empty when they are equal.
  std::string differences(const Fingerprint& there) const;

 private:
  std::vector<std::pair<std::string, std::string>> items_;
};

/// The state of a run at a cluster clock: no update beyond it, all before it.
struct Checkpoint {
  Clock clock = 0;
  std::vector<StateSection> sections = {};

  /// Throws a data error when there is no such section.
  const Bytes& section(std::string_view name) const;
};

/// The checkpoints of one run. The methods are for one thread; the store itself writes on a thread of its own, one
/// checkpoint at a time. Nothing on disk is touched before the first write.
class CheckpointStore {
 public:
  /// `directory` is DIR/checkpoint; it is made when the first checkpoint is written. `keep` >= 1 newest ones stay.
  CheckpointStore(std::filesystem::path directory, Fingerprint fingerprint, std::size_t keep = 2);
  /// Waits for the write that is under way. Its failure is lost here: call wait() before.
  ~CheckpointStore();
  CheckpointStore(const CheckpointStore&) = delete;
  CheckpointStore& operator=(const CheckpointStore&) = delete;

  /// Writes and returns when the checkpoint is on disk under its name; older ones beyond `keep` are then removed, and
  /// so are those of a later clock, which a resumed run has refused. Throws an output error.
  void write(const Checkpoint& checkpoint);
  /// Takes the state over and writes it while the run goes on. First waits for the one before, and throws its failure.
  /// Sections that lie on disk would change as the run goes on: with one of them it returns when all is written.
  void write_behind(Checkpoint checkpoint);
  /// Waits for the write under way and throws its failure, once.
  void wait();

  struct Found {
    std::optional<Checkpoint> checkpoint = {};
    /// "FILE: why it is not used", newest first, of those newer than the one found.
    std::vector<std::string> refused = {};
  };
  /// Reads the newest checkpoint that is whole and of this run's fingerprint.
  /// Sections of the names in `on_disk` are checked and stay in the file (StateSection::source).
  Found newest_valid(const std::vector<std::string>& on_disk = {}) const;
  /// Clocks of the files that are there, newest first; valid or not.
  std::vector<Clock> clocks() const;
  std::filesystem::path file_of(Clock clock) const;

 private:
  void write_file(const Checkpoint& checkpoint) const;
  void prune(Clock newest) const;

  std::filesystem::path directory_;
  Fingerprint fingerprint_;
  std::size_t keep_;
  std::exception_ptr failure_;
  std::thread writer_;
};

/// Writes one file, whole or not at all. Throws an output error.
void write_checkpoint(const std::filesystem::path& file, const Fingerprint& fingerprint, const Checkpoint& checkpoint);
/// Reads one file. Throws a data error that says why it cannot be used: truncated, corrupted, another format, or of
/// another fingerprint.
Checkpoint read_checkpoint(const std::filesystem::path& file, const Fingerprint& fingerprint,
                           const std::vector<std::string>& on_disk = {});

}  // namespace orrery
