#include "engine/interrupt.h"

#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <optional>
#include <string>

#include "tests/engine/files.h"

namespace orrery {
namespace {

using test::exit_code_of_child;
using test::expect_error;

/// The handler speaks to standard error: keep that out of the test's output.
void silence() { ::close(STDERR_FILENO); }

TEST(Interrupt, TheFirstSignalSetsTheFlag) {
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) {
    EXPECT_EQ(exit_code_of_child([&] {
                silence();
                InterruptGuard guard;
                if (guard.requested() || guard.flag()) return 1;
                std::raise(number);
                return guard.requested() && guard.flag() ? 0 : 2;
              }),
              0);
  }
}

TEST(Interrupt, TheSecondEndsTheProcessAtOnceWith130) {
  EXPECT_EQ(exit_code_of_child([] {
              silence();
              InterruptGuard guard;
              std::raise(SIGINT);
              std::raise(SIGTERM);
              return 0;
            }),
            130);
}

TEST(Interrupt, ARequestMayBeRepeatedAndASignalThatInsistsAfterItIsTheFirst) {
  EXPECT_EQ(exit_code_of_child([] {
              silence();
              InterruptGuard guard;
              std::raise(SIGUSR1);
              std::raise(SIGUSR1);
              if (guard.terminated()) return 1;
              std::raise(SIGTERM);
              return guard.terminated() ? 0 : 2;
            }),
            0);
}

/// What a child says on standard error while `body` raises signals.
std::string said_by(const std::function<int()>& body, int expected_exit_code) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  EXPECT_EQ(exit_code_of_child([&] {
              ::dup2(ends[1], STDERR_FILENO);
              return body();
            }),
            expected_exit_code);
  ::close(ends[1]);
  std::string text;
  char buffer[512];
  for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  return text;
}

TEST(Interrupt, TheFirstSaysWhatItBringsAboutAndTheSecondThatItWasTheSecond) {
  const std::string text = said_by(
      [] {
        InterruptGuard guard;
        guard.announce("doing this and that");
        std::raise(SIGINT);
        std::raise(SIGINT);
        return 0;
      },
      130);
  EXPECT_NE(text.find("interrupted, doing this and that (once more to stop at once)\n"), std::string::npos) << text;
  EXPECT_NE(text.find("interrupted again"), std::string::npos) << text;
}

TEST(Interrupt, UntilSomethingElseIsAnnouncedItStops) {
  EXPECT_NE(said_by(
                [] {
                  InterruptGuard guard;
                  return std::raise(SIGTERM);
                },
                0)
                .find("interrupted, stopping"),
            std::string::npos);
}

TEST(Interrupt, OldHandlingIsBackAfterwards) {
  const int status = test::status_of_child([] {
    silence();
    {
      InterruptGuard guard;
      std::raise(SIGINT);
    }
    std::raise(SIGINT);
    return 0;
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
}

TEST(Interrupt, ANewGuardStartsUnsetAndTwoAtOnceAreOurFault) {
  EXPECT_EQ(exit_code_of_child([] {
              silence();
              std::optional<InterruptGuard> first(std::in_place);
              std::raise(SIGINT);
              first.reset();
              first.emplace();
              return first->requested() ? 1 : 0;
            }),
            0);
  const InterruptGuard guard;
  expect_error(ErrorKind::internal, {"second"}, [] { InterruptGuard another; });
}

}  // namespace
}  // namespace orrery
