#include "engine/interrupt.h"

#include <gtest/gtest.h>

#include <csignal>
#include <optional>

#include "tests/engine/files.h"

namespace orrery {
namespace {

using test::exit_code_of_child;
using test::expect_error;

/// The handler speaks to standard error: keep that out of the test's output.
void silence() { ::close(STDERR_FILENO); }

TEST(Interrupt, TheFirstSignalSetsTheFlag) {
  for (const int number : {SIGINT, SIGTERM}) {
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

TEST(Interrupt, TheSecondSaysSo) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(exit_code_of_child([&] {
              ::dup2(ends[1], STDERR_FILENO);
              InterruptGuard guard;
              std::raise(SIGINT);
              std::raise(SIGINT);
              return 0;
            }),
            130);
  ::close(ends[1]);
  char text[512] = {};
  EXPECT_GT(::read(ends[0], text, sizeof text - 1), 0);
  EXPECT_NE(std::string{text}.find("interrupted again"), std::string::npos) << text;
  ::close(ends[0]);
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
