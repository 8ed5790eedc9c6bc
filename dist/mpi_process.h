// This process as one rank of an MPI job (design section 7): the transport of a run on several nodes. It keeps the
// promise that workers never call MPI: one thread, made here, starts MPI, sends and receives everything and ends MPI
// (MPI_THREAD_FUNNELED); a second one hands messages to their receivers, so that a long receive() neither stops other
// messages nor looks like death. <mpi.h> stays out of this header.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/message.h"
#include "engine/transport.h"
#include "engine/types.h"

namespace orrery {

struct MpiOptions {
  /// Payloads travel in pieces of at most so many bytes (MPI counts are 32-bit, and signs of life must get through
  /// between two pieces), >= 1.
  std::size_t piece_bytes = std::size_t{8} << 20;
  /// Payloads up to so many bytes travel with their header.
  std::size_t inline_bytes = 4096;
  /// A rank from which nothing has come for so long is lost.
  double silent_seconds = 10;
  /// After a loss or a failure: how long ranks may take to come to close(). Then last_words() is called and the process
  /// ends with the exit code of ErrorKind::lost: a unit that never returns must not keep a dead job alive.
  double grace_seconds = 5;
  /// True once this process was told to end (SIGTERM). What started the job may be about to kill it because a rank has
  /// died, so who is silent then counts as lost within a second. May be null; must outlive the process object.
  const std::atomic<bool>* told_to_end = nullptr;
  /// See grace_seconds; gets the reason. Called on the communication thread.
  std::function<void(const std::string&)> last_words;
};

/// How a rank leaves the job.
struct Farewell {
  bool failed = false;  ///< on its own account, not because of another rank
  int exit_code = 0;
  std::string text;  ///< of the failure
};

/// At most one in the life of a process (MPI can be started once). Construct = started, destruct = ended.
class MpiProcess {
 public:
  /// Collective. @throws Error (internal) when MPI cannot be started or was started before.
  explicit MpiProcess(MpiOptions options);
  /// As close({}) if that was not called.
  ~MpiProcess();
  MpiProcess(const MpiProcess&) = delete;
  MpiProcess& operator=(const MpiProcess&) = delete;

  NodeId rank() const noexcept;
  NodeId ranks() const noexcept;
  /// "name of the host" of each rank, as MPI says it.
  const std::vector<std::string>& hosts() const noexcept;
  /// The ranks of this host, ascending.
  std::vector<NodeId> ranks_here() const;

  /// A transport of its own for each run: messages of one never reach the receiver of another. Collective: the k-th one
  /// of a rank belongs to the k-th ones of the others. Must be gone before this object. When a rank is lost or fails
  /// every receiver gets a Message of kind `failed` in its name, now or at attach().
  std::unique_ptr<Transport> open();

  /// Every rank hands in bytes and gets everybody's, by rank. Collective; one thread at a time.
  /// @throws Error (lost) when a rank is lost or has failed.
  std::vector<Bytes> exchange(Bytes mine);

  /// Throws Error (lost) once a rank is lost or has failed; costs an atomic load. Any thread.
  void check() const;

  /// Farewells by rank; none of a rank that is lost.
  using Farewells = std::vector<std::optional<Farewell>>;
  /// Says farewell and waits for that of all others, as long as they live; after a failure not longer than the grace
  /// time. Then MPI is ended, unless a rank is missing. `before_end` is called before that: no rank ends before all
  /// have come back from theirs, so what is printed there is printed. Once.
  Farewells close(Farewell mine, const std::function<void(const Farewells&)>& before_end = {});

  /// For tests and benches, before close().
  struct Counters {
    std::uint64_t turns = 0;   ///< of the communication thread
    double cpu_seconds = 0;    ///< of the communication thread
    std::uint64_t pieces = 0;  ///< sent
    std::uint64_t woken = 0;   ///< waits of the communication thread that did not last their time
  };
  Counters counters() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace orrery
