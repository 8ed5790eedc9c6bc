#include "engine/scratch_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "engine/error.h"

namespace orrery {

ScratchFile::ScratchFile(const std::filesystem::path& directory, std::uint64_t bytes)
    : named_("working space of " + std::to_string(bytes) + " bytes in " + directory.string()), size_(bytes) {
  open_unnamed(directory);
  const int error = bytes == 0 ? 0 : ::posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes));
  if (error == 0) return;
  ::close(descriptor_);
  fail(error);
}

ScratchFile::~ScratchFile() { ::close(descriptor_); }

// Where the file system has no unnamed files, one whose name is taken away at once.
void ScratchFile::open_unnamed(const std::filesystem::path& directory) {
  descriptor_ = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor_ >= 0) return;
  if (errno != EOPNOTSUPP && errno != EISDIR) fail(errno);
  std::string name = (directory / ".scratch-XXXXXX").string();
  descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor_ < 0) fail(errno);
  ::unlink(name.c_str());
}

void ScratchFile::fail(int error_number) const { throw output_error(named_, error_number); }

void ScratchFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    offset += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void ScratchFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail(got < 0 ? errno : EIO);
    offset += static_cast<std::uint64_t>(got);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace orrery
