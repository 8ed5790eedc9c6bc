#include "engine/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace orrery {

namespace {

constexpr std::chrono::milliseconds kTerminalPause{100};
constexpr std::chrono::milliseconds kLogPause{1000};
constexpr std::size_t kDefaultWidth = 80;

std::size_t width_of(int descriptor) {
  struct winsize size {};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : kDefaultWidth;
}

/// The first `columns` characters; a UTF-8 sequence counts as one and is not torn.
std::string_view cut(std::string_view text, std::size_t columns) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts_character = (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U;
    if (starts_character && count++ == columns) return text.substr(0, i);
  }
  return text;
}

}  // namespace

std::optional<ProgressMode> parse_progress(std::string_view name) {
  if (name == "auto") return ProgressMode::automatic;
  if (name == "on") return ProgressMode::on;
  if (name == "off") return ProgressMode::off;
  return std::nullopt;
}

Progress::Progress(int descriptor, ProgressMode mode, bool quiet, std::function<Time()> now)
    : descriptor_(descriptor),
      terminal_(::isatty(descriptor) == 1),
      shows_status_(!quiet && (mode == ProgressMode::on || (mode == ProgressMode::automatic && terminal_))),
      quiet_(quiet),
      now_(std::move(now)) {}

Progress::~Progress() { clear(); }

bool Progress::due() const {
  const std::lock_guard lock(mutex_);
  return due_locked();
}

bool Progress::due_locked() const {
  return shows_status_ && (!last_ || now_() - *last_ >= (terminal_ ? kTerminalPause : kLogPause));
}

void Progress::status(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (!due_locked()) return;
  last_ = now_();
  if (!terminal_) {
    write_out(std::string{text} + "\n");
    return;
  }
  shown_ = cut(text, width_of(descriptor_) - 1);
  write_out("\r\x1b[K" + shown_);
}

void Progress::clear() {
  const std::lock_guard lock(mutex_);
  clear_locked();
}

void Progress::clear_locked() {
  if (shown_.empty()) return;
  shown_.clear();
  last_.reset();
  write_out("\r\x1b[K");
}

void Progress::line_locked(std::string_view text) {
  std::string out;
  if (!shown_.empty()) out += "\r\x1b[K";
  out += text;
  out += "\n" + shown_;
  write_out(out);
}

void Progress::note(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (!quiet_) line_locked(text);
}

void Progress::warn(std::string_view text) {
  const std::lock_guard lock(mutex_);
  line_locked("orrery: warning: " + std::string{text});
}

void Progress::write_out(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace orrery
