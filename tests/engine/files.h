// What the tests of files share: a directory that vanishes, bytes in and out, and children whose end can be looked at.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/error.h"

namespace orrery::test {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "orrery-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary directory");
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_bytes(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// Names of what is in the directory, sorted.
inline std::vector<std::string> names_in(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

/// Runs `body` in a child and returns the wait status. The child ends with what body returns, or with the exit code of
/// the Error that it throws.
template <class Body>
int status_of_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      ::_exit(body());
    } catch (const Error& error) {
      ::_exit(error.exit_code());
    } catch (const std::exception&) {
      ::_exit(99);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

template <class Body>
int exit_code_of_child(Body body) {
  const int status = status_of_child(body);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/// In a child only: no file may grow beyond `bytes`; writes then fail like on a full disk.
inline void limit_file_size(rlim_t bytes) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

/// In a child only: a file system of `size` ("1m") at `directory`, seen by this child alone. False where that is not
/// permitted.
inline bool mount_small_disk(const std::filesystem::path& directory, const char* size) {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  const std::string options = std::string{"size="} + size;
  return ::mount("tmpfs", directory.c_str(), "tmpfs", 0, options.c_str()) == 0;
}
inline constexpr int kNotPermitted = 77;

/// In a child only: become somebody who may write nowhere but where everybody may.
inline bool become_nobody() { return ::geteuid() != 0 || ::setuid(65534) == 0; }

/// Starts `body(ready)` in a child, which runs for ever and calls ready() once, and kills it (SIGKILL) `microseconds`
/// after that.
template <class Body>
void run_and_kill(Body body, unsigned microseconds) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    body([&] { [[maybe_unused]] const ssize_t written = ::write(pipe_ends[1], "x", 1); });
    ::_exit(0);
  }
  ::close(pipe_ends[1]);
  char byte = 0;
  EXPECT_EQ(::read(pipe_ends[0], &byte, 1), 1) << "the child ended before it was ready";
  ::usleep(microseconds);  // the moment of the kill is what varies here, not a synchronisation
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself";
  ::close(pipe_ends[0]);
}

/// Expects an Error of that kind whose text holds all of `parts`.
template <class Body>
void expect_error(ErrorKind kind, std::initializer_list<std::string_view> parts, Body body) {
  try {
    body();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    for (const std::string_view part : parts) {
      EXPECT_NE(std::string_view{error.what()}.find(part), std::string_view::npos)
          << "'" << part << "' is not in: " << error.what();
    }
  }
}

}  // namespace orrery::test
