// Ctrl-C and SIGTERM (design, section 11): the first one asks the run to finish its clock and to write a checkpoint, a
// second one ends the process at once. The engine knows only the flag; who owns the process (tools/) makes the guard.
#pragma once

#include <signal.h>

#include <atomic>

namespace orrery {

/// While it lives SIGINT and SIGTERM set a flag instead of ending the process; afterwards the old handling is back. At
/// most one lives in a process (internal Error otherwise), because a signal handler can find nothing but a static: the
/// pointer to the living guard is the only one of the project.
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
  /// What the first signal will bring about, for its message: "finishing the iteration". Must live as long as the
  /// guard (a literal).
  void announce(const char* consequence) noexcept { consequence_.store(consequence, std::memory_order_relaxed); }

 private:
  static void handle(int signal_number);

  std::atomic<bool> requested_{false};
  std::atomic<const char*> consequence_{"stopping"};
  struct sigaction old_interrupt_ {};
  struct sigaction old_terminate_ {};
  static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<const char*>::is_always_lock_free,
                "a signal handler may touch lock-free atomics only");
};

}  // namespace orrery
