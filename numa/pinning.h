// Where the threads of a run go, and the scoped binding of one thread. Design section 8: threads of a domain's arena
// are pinned by an observer that restores what it changed; a machine that refuses runs all the same, and the report
// says so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "numa/topology.h"

namespace orrery {

/// How tightly threads are bound. From loose to tight.
enum class Binding {
  none,    ///< not at all: fewer threads than domains, so they visit the domains in turn
  domain,  ///< to all PUs of the domain; the kernel picks among them
  pu       ///< each to its PU
};
const char* to_string(Binding binding);

/// Where one thread belongs.
struct ThreadPlace {
  std::optional<unsigned> domain;  ///< none when threads visit the domains in turn
  /// The PU meant for it; none without a domain. Within a domain all cores come before any second hardware thread, and
  /// cores of different level-3 caches alternate. With more threads than PUs, PUs repeat.
  std::optional<unsigned> pu;
  /// PUs that it is to be bound to: {pu}, or all of the domain, ascending. Empty: it is not to be bound.
  std::vector<unsigned> mask;
  /// Node that the memory of a bound thread is to be on, its stack for one; -1 where there is nothing to choose.
  int memory_node = -1;
};

/// Where T threads go. A function of the topology and T alone.
struct PinPlan {
  std::vector<ThreadPlace> threads;          ///< ascending by domain
  std::vector<unsigned> threads_per_domain;  ///< one entry per domain of the topology; all 0 when visiting()
  Binding binding = Binding::none;
  bool oversubscribed = false;  ///< more threads than allowed PUs
  std::string reason;           ///< why the binding is looser than `pu`; empty if it is not

  /// Threads visit the domains in turn because there are fewer of them than domains.
  bool visiting() const noexcept { return !threads.empty() && !threads.front().domain; }
};

/// Deals the threads over the domains in proportion to their cores (each share rounded up or down, at least one each);
/// beyond the cores, in proportion to the PUs that are left. The binding is `pu` when every core gets a thread and no
/// PU two: then no thread ever has a reason to move. With fewer threads it is `domain`, so that two processes on one
/// machine do not both sit on its first cores; with fewer threads than domains it is `none`. On another machine's
/// topology the plan says where threads would go (domain and pu are set) and binds nothing (mask is empty). `tightest`
/// loosens the binding further. Throws std::invalid_argument if threads is 0. Cost: O(PUs + threads).
PinPlan plan_pins(const Topology& topology, unsigned threads, Binding tightest = Binding::pu);

/// Binds the calling thread while it lives; the destructor gives back the mask that was there before. Refusal is not an
/// error: bound() is false and reason() says why. On a machine with several nodes the part of the stack that is in use
/// moves to the thread's node: it was touched where the thread was made or worked before, and what a loop keeps on its
/// stack would be remote for ever. Pins nest if they end in reverse order. Make and destroy it on
/// one thread; it may be moved. Cost: two system calls to bind, one to
/// restore; with several nodes one more, and some 10 us when the stack has to move.
class ThreadPin {
 public:
  /// Not bound and nothing to say.
  ThreadPin() = default;
  /// As the plan wants it. When a single PU is refused, say because it went offline, nothing is bound: the kernel then
  /// keeps the thread inside the mask that it had. A place without a mask binds nothing and gives no reason.
  explicit ThreadPin(const ThreadPlace& place);
  /// To one PU of this machine. Refused, with the reason, on another machine's topology.
  static ThreadPin to_pu(const Topology& topology, unsigned pu);
  /// To all allowed PUs of the domain, for example for the time of a visit.
  static ThreadPin to_domain(const Topology& topology, unsigned domain);

  ThreadPin(ThreadPin&& other) noexcept;
  ThreadPin& operator=(ThreadPin&& other) noexcept;
  ThreadPin(const ThreadPin&) = delete;
  ThreadPin& operator=(const ThreadPin&) = delete;
  ~ThreadPin();

  bool bound() const noexcept { return bound_; }
  /// Why the thread is not bound although it should be; empty otherwise.
  const std::string& reason() const noexcept { return reason_; }
  /// From now on these PUs are given back instead of the former mask. For threads that were made by a bound thread:
  /// they inherit its mask at birth, and giving that back would leave them on one PU for ever.
  void restore_to(const std::vector<unsigned>& pus);
  /// Gives back the former mask now; afterwards not bound.
  void release() noexcept;

 private:
  void bind(const std::vector<unsigned>& pus, int memory_node);

  bool bound_ = false;
  int thread_ = 0;  // kernel's thread id, so that a pin that has moved restores the right thread
  std::vector<unsigned long> former_mask_;  // as sched_getaffinity gave it
  std::string reason_;
};

/// The PU and the kernel's memory node that the calling thread runs on now; -1 where the kernel does not tell.
int current_cpu() noexcept;
int current_node() noexcept;
/// PUs that the calling thread may run on now; at least 1.
unsigned allowed_cpu_count();

}  // namespace orrery
