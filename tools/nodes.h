// The nodes of a training (design section 7): this process alone, or as one rank of an MPI job. Under mpirun every rank
// runs the same command; here is what they settle with each other: that they are about the same thing, how they share
// their hosts, who speaks, and the one exit code with which all of them end.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/message.h"
#include "engine/transport.h"
#include "engine/types.h"
#include "tools/failure.h"

namespace orrery::tools {

/// Names and values that must be the same everywhere.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// How many ranks the launcher of this process says it has started; 1 without a launcher. 0: a launcher (PMIx) that
/// does not say.
unsigned launched_ranks();

/// For commands that one process does. @throws Error (usage) when there are several.
void require_one_process();

class Nodes {
 public:
  /// Joins the job when there is one. `told_to_end` (see MpiOptions) must outlive it.
  /// @throws Error (usage) for several ranks of a build without MPI.
  explicit Nodes(const std::atomic<bool>& told_to_end);
  ~Nodes();

  NodeId node() const;
  NodeId count() const;
  bool several() const { return count() > 1; }
  /// The one that writes files and speaks.
  bool is_first() const { return node() == 0; }
  /// For the engine; null for one node.
  Transport* transport();
  /// Throws Error (lost) once a node is lost or has failed. Any thread.
  void check() const;

  /// Collective, like all that follow; everybody's, by node.
  std::vector<Bytes> exchange(Bytes mine);
  std::vector<std::string> exchange(const std::string& mine);
  /// @throws Error (usage) that names what differs and on which ranks; the same on all of them.
  void require_same(const Facts& facts);
  struct Share {
    unsigned threads = 1;
    std::string warning;  ///< a host that nobody uses in full; else empty
  };
  /// How many threads a rank runs unless told otherwise: the processors it may use, each shared with the ranks of its
  /// host that may use it too; at least 1. For several nodes.
  Share fair_share();
  /// Ranks of this host.
  unsigned ranks_here() const;

  /// What to add to the message when a node is lost: how to go on.
  void set_advice(std::string advice);

  /// Leaves the job: waits for the others and returns the exit code of all. Whoever of them is first prints what went
  /// wrong, and where.
  int leave(int exit_code);
  int leave(const Failure& failure);

 private:
  struct Job;
  std::unique_ptr<Job> job_;  ///< null: one process
};

}  // namespace orrery::tools
