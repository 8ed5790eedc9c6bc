#include "engine/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "engine/atomic_file.h"
#include "engine/error.h"

namespace orrery {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kLock = ".lock";
// run.json goes last: a crash while these are removed leaves a directory that still counts as a run, not one without a
// record.
constexpr std::array<std::string_view, 4> kWritten = {"model", "checkpoint", "metrics.jsonl", "run.json"};

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

/// The process number that the holder wrote, for the message; "another process" when it is not there (yet).
std::string holder_of(int descriptor) {
  std::array<char, 32> text{};
  const ssize_t size = ::pread(descriptor, text.data(), text.size() - 1, 0);
  return size > 0 ? "process " + std::string{text.data(), static_cast<std::size_t>(size)} : "another process";
}

}  // namespace

RunDirectory::RunDirectory(fs::path path, ExistingRun existing) : path_(std::move(path)), existing_(existing) {
  if (path_.empty()) throw usage_error("--out: expected a directory, got nothing");
  if (!path_.has_filename()) path_ = path_.parent_path();  // "runs/a/" is "runs/a"
  make_directory();
  take_lock();
  try {
    check_existing();
  } catch (const Error&) {
    std::error_code ignored;  // the error under way is the one to report
    fs::remove(path_ / kLock, ignored);
    ::close(lock_);
    throw;
  }
}

RunDirectory::~RunDirectory() {
  std::error_code ignored;  // tidying up: what stays is an empty file or an empty directory
  fs::remove(path_ / kLock, ignored);
  ::close(lock_);
  if (topmost_made_.empty()) return;
  for (fs::path made = path_;; made = made.parent_path()) {
    // Not remove_all: a directory that holds anything stays.
    if (::rmdir(made.c_str()) != 0 || made == topmost_made_) return;
  }
}

void RunDirectory::make_directory() {
  fs::path topmost;
  for (fs::path at = path_; !at.empty() && !is_there(at); at = at.parent_path()) topmost = at;
  std::error_code error;
  fs::create_directories(path_, error);
  if (!error && !fs::is_directory(path_, error) && !error) error = std::make_error_code(std::errc::not_a_directory);
  if (error) throw output_error(path_.string(), error.value());
  topmost_made_ = topmost;
}

void RunDirectory::take_lock() {
  const fs::path file = path_ / kLock;
  for (;;) {
    lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock_ < 0) throw output_error(path_.string(), errno);
    if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
      const int reason = errno;
      const std::string holder = holder_of(lock_);
      ::close(lock_);
      if (reason != EWOULDBLOCK) throw output_error(path_.string(), reason);
      throw usage_error("--out " + path_.string() + ": in use by " + holder +
                        "; choose another directory or wait for it");
    }
    struct stat held {};
    struct stat named {};
    // The holder before us removes the file before it lets go: then ours is a lock on nothing.
    const bool linked = ::fstat(lock_, &held) == 0 && ::stat(file.c_str(), &named) == 0 && held.st_ino == named.st_ino;
    if (linked) break;
    ::close(lock_);
  }
  const std::string process = std::to_string(::getpid());
  if (::ftruncate(lock_, 0) != 0 || ::pwrite(lock_, process.data(), process.size(), 0) < 0) {
    const int reason = errno;
    fs::remove(file);
    ::close(lock_);
    throw output_error(path_.string(), reason);
  }
}

bool RunDirectory::holds_run() const {
  return is_there(record_file()) || is_there(model_directory()) || is_there(checkpoint_directory());
}

bool RunDirectory::came_to_nothing() const {
  if (!is_there(record_file()) || is_there(model_directory())) return false;
  std::error_code none;  // no directory, no checkpoints
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoint_directory(), none)) {
    if (!entry.path().filename().string().starts_with('.')) return false;  // with a dot it is half written
  }
  try {
    return !read_run_record(record_file()).finished();
  } catch (const Error&) {  // nobody knows what a record that cannot be read is of: left alone
    return false;
  }
}

void RunDirectory::check_existing() {
  if (existing_ == ExistingRun::overwrite || !holds_run()) return;
  const std::string where = "--out " + path_.string();
  if (existing_ == ExistingRun::refuse) {
    if (came_to_nothing()) return;
    throw usage_error(where + ": holds a run; --resume goes on with an unfinished one, --overwrite replaces it");
  }
  if (!is_there(record_file())) {
    throw usage_error(where + ": cannot be resumed, it has no run.json; --overwrite replaces what is there");
  }
  RunRecord record = read_run_record(record_file());
  if (record.finished()) {
    throw usage_error(
        where + ": its run is finished (" + std::to_string(record.result->iterations) +
        " iterations), nothing to resume; --overwrite replaces it, --init starts a new run from its model");
  }
  resumed_ = std::move(record);
}

bool RunDirectory::holds_remains() const { return existing_ == ExistingRun::refuse && is_there(record_file()); }

bool RunDirectory::writes(std::string_view name) {
  return name == kLock || std::find(kWritten.begin(), kWritten.end(), name) != kWritten.end();
}

std::size_t RunDirectory::begin() {
  if (existing_ == ExistingRun::overwrite || holds_remains()) {
    const auto remove = [&](std::string_view name) {
      std::error_code error;
      fs::remove_all(path_ / name, error);
      if (error) throw output_error((path_ / name).string(), error.value());
    };
    for (const std::string_view name : {"plan.bin", "report.html"}) remove(name);
    for (const std::string_view name : kWritten) remove(name);
  }
  return remove_orphans(path_) + remove_orphans(checkpoint_directory());
}

}  // namespace orrery
