#include "engine/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

namespace orrery {
namespace {

using namespace std::chrono_literals;

/// A clock that stands until it is told.
struct Hand {
  Progress::Time now{};
  std::function<Progress::Time()> reader() {
    return [this] { return now; };
  }
};

/// Where progress is written; text() is what has come out so far.
class Output {
 public:
  explicit Output(bool terminal, unsigned short columns = 40) {
    if (terminal) {
      read_ = ::posix_openpt(O_RDWR | O_NOCTTY);
      if (read_ < 0 || ::grantpt(read_) != 0 || ::unlockpt(read_) != 0) throw std::runtime_error("no terminals here");
      write_ = ::open(::ptsname(read_), O_RDWR | O_NOCTTY);
      termios raw{};
      ::tcgetattr(write_, &raw);
      ::cfmakeraw(&raw);
      ::tcsetattr(write_, TCSANOW, &raw);
      winsize size{};
      size.ws_col = columns;
      ::ioctl(write_, TIOCSWINSZ, &size);
    } else {
      int ends[2];
      if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
      read_ = ends[0];
      write_ = ends[1];
    }
    ::fcntl(read_, F_SETFL, O_NONBLOCK);
  }
  ~Output() {
    ::close(read_);
    ::close(write_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  int descriptor() const { return write_; }
  std::string text() {
    std::array<char, 4096> buffer{};
    for (;;) {
      const ssize_t size = ::read(read_, buffer.data(), buffer.size());
      if (size <= 0) return text_;
      text_.append(buffer.data(), static_cast<std::size_t>(size));
    }
  }

 private:
  int read_ = -1;
  int write_ = -1;
  std::string text_;
};

TEST(Progress, KnowsItsModes) {
  EXPECT_EQ(parse_progress("auto"), ProgressMode::automatic);
  EXPECT_EQ(parse_progress("on"), ProgressMode::on);
  EXPECT_EQ(parse_progress("off"), ProgressMode::off);
  EXPECT_EQ(parse_progress("yes"), std::nullopt);
}

TEST(Progress, AStatusOnATerminalIsOneLineThatIsGoneAtTheEnd) {
  Output output(true);
  Hand hand;
  {
    Progress progress(output.descriptor(), ProgressMode::automatic, false, hand.reader());
    progress.status("iteration 1");
    hand.now += 200ms;
    progress.status("iteration 2");
  }
  EXPECT_EQ(output.text(), "\r\x1b[Kiteration 1\r\x1b[Kiteration 2\r\x1b[K");
}

TEST(Progress, AFloodShowsAtMostTenLinesASecond) {
  Output output(true);
  Hand hand;
  Progress progress(output.descriptor(), ProgressMode::automatic, false, hand.reader());
  for (int i = 0; i < 10000; ++i) {
    progress.status("x");
    hand.now += 100us;
  }
  const std::string text = output.text();
  EXPECT_LE(std::count(text.begin(), text.end(), 'x'), 10);
  EXPECT_GE(std::count(text.begin(), text.end(), 'x'), 9);
}

TEST(Progress, ALongStatusIsCutToTheTerminalBetweenCharacters) {
  Output output(true, 10);
  Progress progress(output.descriptor(), ProgressMode::automatic, false);
  progress.status("äöüäöüäöüäöüäöü");
  EXPECT_EQ(output.text(), "\r\x1b[Käöüäöüäöü");
}

TEST(Progress, LinesGoAboveTheStatus) {
  Output output(true);
  Progress progress(output.descriptor(), ProgressMode::automatic, false);
  progress.status("status");
  progress.warn("beware");
  progress.note("by the way");
  EXPECT_EQ(output.text(), "\r\x1b[Kstatus\r\x1b[Korrery: warning: beware\nstatus\r\x1b[Kby the way\nstatus");
}

TEST(Progress, NothingButLinesIntoAFile) {
  Output output(false);
  {
    Progress progress(output.descriptor(), ProgressMode::automatic, false);
    EXPECT_FALSE(progress.due());
    progress.status("status");
    progress.note("note");
  }
  EXPECT_EQ(output.text(), "note\n");
}

TEST(Progress, OnWritesPlainLinesIntoAFileAtMostOneASecond) {
  Output output(false);
  Hand hand;
  {
    Progress progress(output.descriptor(), ProgressMode::on, false, hand.reader());
    for (int i = 0; i < 30; ++i) {
      progress.status("s");
      hand.now += 100ms;
    }
  }
  EXPECT_EQ(output.text(), "s\ns\ns\n");
}

TEST(Progress, OffAndQuietShowNoStatusAndQuietKeepsWarnings) {
  Output off(true);
  Progress(off.descriptor(), ProgressMode::off, false).status("status");
  EXPECT_EQ(off.text(), "");
  Output quiet(true);
  Progress progress(quiet.descriptor(), ProgressMode::on, true);
  progress.status("status");
  progress.note("note");
  progress.warn("beware");
  EXPECT_EQ(quiet.text(), "orrery: warning: beware\n");
}

TEST(Progress, AClosedOutputDoesNotStopARun) {
  const auto old = std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  {
    Progress progress(ends[1], ProgressMode::on, false);
    progress.status("status");
    progress.warn("beware");
  }
  ::close(ends[1]);
  std::signal(SIGPIPE, old);
}

}  // namespace
}  // namespace orrery
