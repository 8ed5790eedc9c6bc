#include "engine/interrupt.h"

#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "engine/error.h"

namespace orrery {

namespace {

// The only static of the project: a signal handler has no other way to its object.
std::atomic<InterruptGuard*> living_guard{nullptr};
static_assert(std::atomic<InterruptGuard*>::is_always_lock_free);

void say(std::string_view text) {
  // Nothing can be done in a handler when standard error is gone.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

void InterruptGuard::handle(int signal_number) {
  const int kept = errno;
  InterruptGuard* const guard = living_guard.load(std::memory_order_relaxed);
  // Relaxed: the flag carries no other data, and threads ask for it again and again.
  if (guard == nullptr) return;  // its destructor is under way, and the old handling not yet back
  const bool insists = signal_number != SIGUSR1;
  if (signal_number == SIGTERM) guard->terminated_.store(true, std::memory_order_relaxed);
  const bool is_news = !guard->requested_.exchange(true, std::memory_order_relaxed);
  if (insists && guard->told_before_.exchange(true, std::memory_order_relaxed)) {
    say("\norrery: interrupted again, stopping at once\n");
    ::_exit(static_cast<int>(ErrorKind::interrupted));
  }
  const char* consequence = guard->consequence_.load(std::memory_order_relaxed);
  if (is_news && consequence != nullptr) {
    say("\norrery: interrupted, ");
    say(consequence);
    say(" (once more to stop at once)\n");
  }
  errno = kept;
}

InterruptGuard::InterruptGuard() {
  InterruptGuard* none = nullptr;
  if (!living_guard.compare_exchange_strong(none, this)) {
    throw Error(ErrorKind::internal, "a second InterruptGuard in one process");
  }
  struct sigaction action {};
  action.sa_handler = &InterruptGuard::handle;
  sigemptyset(&action.sa_mask);
  // No SA_RESTART would make every read and write fail with EINTR; a slow system call may well finish first.
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, &old_interrupt_);
  ::sigaction(SIGTERM, &action, &old_terminate_);
  ::sigaction(SIGUSR1, &action, &old_user_);
}

InterruptGuard::~InterruptGuard() {
  ::sigaction(SIGINT, &old_interrupt_, nullptr);
  ::sigaction(SIGTERM, &old_terminate_, nullptr);
  ::sigaction(SIGUSR1, &old_user_, nullptr);
  living_guard.store(nullptr);
}

}  // namespace orrery
