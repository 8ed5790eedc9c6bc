// Ctrl-C and SIGTERM (design, section 11): the first one asks the run to finish its clock and to write a checkpoint, a
// second one ends the process at once. SIGUSR1 only asks: it is what a batch system sends before the time is over, and
// what mpirun passes on to ranks without killing them a second later. The engine knows only the flag; who owns the
// process (tools/) makes the guard.
#pragma once

#include <signal.h>

#include <atomic>

namespace orrery {

/// While it lives SIGINT, SIGTERM and SIGUSR1 set a flag instead of ending the process; afterwards the old handling is
/// back. At most one lives in a process (internal Error otherwise), because a signal handler can find nothing but a
/// static: the pointer to the living guard is the only one of the project.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Has a signal come? One relaxed load, for any thread.
  bool requested() const noexcept { return requested_.load(std::memory_order_relaxed); }
  /// The flag itself, for train(). Valid as long as the guard.
  const std::atomic<bool>& flag() const noexcept { return requested_; }
  /// Set by SIGTERM only: who sent it may be about to kill this process.
  const std::atomic<bool>& terminated() const noexcept { return terminated_; }
  /// What the first signal will bring about, for its message: "finishing the iteration". Must live as long as the
  /// guard (a literal). Null: no message, because another process speaks for this one.
  void announce(const char* consequence) noexcept { consequence_.store(consequence, std::memory_order_relaxed); }

 private:
  static void handle(int signal_number);

  std::atomic<bool> requested_{false}, told_before_{false}, terminated_{false};
  std::atomic<const char*> consequence_{"stopping"};
  struct sigaction old_interrupt_ {};
  struct sigaction old_terminate_ {};
  struct sigaction old_user_ {};
  static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<const char*>::is_always_lock_free,
                "a signal handler may touch lock-free atomics only");
};

}  // namespace orrery
