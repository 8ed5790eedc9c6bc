#include "engine/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <streambuf>
#include <system_error>
#include <utility>

#include "engine/error.h"

namespace orrery {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

fs::path directory_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path{"."} : parent;
}

std::string temporary_prefix(const fs::path& path) {
  return "." + path.filename().string() + ".tmp-" + std::to_string(::getpid()) + "-";
}

/// `.NAME.tmp-DIGITS-DIGITS`
bool is_temporary_name(std::string_view name) {
  const std::size_t mark = name.rfind(".tmp-");
  if (name.empty() || name.front() != '.' || mark == std::string_view::npos || mark < 2) return false;
  const std::string_view numbers = name.substr(mark + 5);
  const std::size_t dash = numbers.find('-');
  if (dash == 0 || dash == std::string_view::npos || dash + 1 == numbers.size()) return false;
  const auto digits = [](std::string_view text) {
    return text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return digits(numbers.substr(0, dash)) && digits(numbers.substr(dash + 1));
}

bool lock_now(int descriptor) { return ::flock(descriptor, LOCK_EX | LOCK_NB) == 0; }

/// True when the name still leads to the open file: a cleaner may have removed it between open and lock.
bool still_linked(int descriptor, const fs::path& path) {
  struct stat by_descriptor {};
  struct stat by_path {};
  return ::fstat(descriptor, &by_descriptor) == 0 && ::lstat(path.c_str(), &by_path) == 0 &&
         by_descriptor.st_ino == by_path.st_ino && by_descriptor.st_dev == by_path.st_dev;
}

/// Opens with `open_one(temporary)` under the first free number, locked. Sets `temporary`; throws an output error that
/// says `named`.
template <class OpenOne>
int open_locked(const fs::path& path, const fs::path& named, fs::path& temporary, OpenOne open_one) {
  const std::string prefix = temporary_prefix(path);
  for (unsigned number = 0;; ++number) {
    temporary = directory_of(path) / (prefix + std::to_string(number));
    const int descriptor = open_one(temporary);
    if (descriptor < 0) {
      if (errno == EEXIST) continue;
      throw output_error(named.string(), errno);
    }
    if (lock_now(descriptor) && still_linked(descriptor, temporary)) return descriptor;
    ::close(descriptor);
  }
}

void write_all(int descriptor, const char* data, std::size_t size, const fs::path& named) {
  while (size > 0) {
    const ssize_t written = ::write(descriptor, data, size);
    if (written < 0) {
      if (errno == EINTR) continue;
      throw output_error(named.string(), errno);
    }
    data += written;
    size -= static_cast<std::size_t>(written);
  }
}

}  // namespace

/// An ostream's view of the file; exceptions of write() pass through the stream because its mask asks for them.
class AtomicFile::Buffer : public std::streambuf {
 public:
  explicit Buffer(AtomicFile& file) : file_(file) {}

 protected:
  int_type overflow(int_type symbol) override {
    if (traits_type::eq_int_type(symbol, traits_type::eof())) return traits_type::not_eof(symbol);
    const char byte = traits_type::to_char_type(symbol);
    file_.write(std::string_view{&byte, 1});
    return symbol;
  }
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    file_.write(std::string_view{text, static_cast<std::size_t>(count)});
    return count;
  }

 private:
  AtomicFile& file_;
};

AtomicFile::AtomicFile(fs::path path, fs::path named)
    : path_(std::move(path)), named_(named.empty() ? path_ : std::move(named)) {
  descriptor_ = open_locked(path_, named_, temporary_, [](const fs::path& temporary) {
    return ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  });
  pending_.reserve(kBufferBytes);
}

AtomicFile::AtomicFile(AtomicDirectory& directory, std::string_view name)
    : path_(directory.temporary() / name),
      named_(directory.path() / name),
      temporary_(path_),
      directory_(&directory),
      descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) fail(errno);
  pending_.reserve(kBufferBytes);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::unlink(temporary_.c_str());
  ::close(descriptor_);
}

void AtomicFile::fail(int error_number) const { throw output_error(named_.string(), error_number); }

void AtomicFile::write(std::span<const std::byte> bytes) {
  write(std::string_view{reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void AtomicFile::write(std::string_view text) {
  if (descriptor_ < 0) fail(EBADF);
  size_ += text.size();
  if (pending_.size() + text.size() > kBufferBytes) flush();
  if (text.size() >= kBufferBytes) {
    write_all(descriptor_, text.data(), text.size(), named_);
  } else {
    pending_.append(text);
  }
}

std::ostream& AtomicFile::stream() {
  if (!stream_) {
    buffer_ = std::make_unique<Buffer>(*this);
    stream_ = std::make_unique<std::ostream>(buffer_.get());
    stream_->exceptions(std::ios::badbit | std::ios::failbit);
  }
  return *stream_;
}

void AtomicFile::flush() {
  write_all(descriptor_, pending_.data(), pending_.size(), named_);
  pending_.clear();
}

void AtomicFile::commit() {
  if (descriptor_ < 0) fail(EBADF);
  flush();
  if (directory_ != nullptr) {
    directory_->unsynced_.push_back({descriptor_, named_.filename().string()});
    descriptor_ = -1;
    return;
  }
  if (::fsync(descriptor_) != 0) fail(errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
  // Closed after the rename: until then the lock must keep cleaners off the temporary name.
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0) fail(errno);
  sync_directory(directory_of(path_), directory_of(named_));
}

void write_file(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

std::string read_file(const fs::path& path, std::uintmax_t most) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);  // an error for a directory too, which a stream would open
  if (error) throw data_error(path.string(), "cannot be read: " + error.message());
  if (size > most) throw data_error(path.string(), "is too large: " + std::to_string(size) + " bytes");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw data_error(path.string(), "cannot be read: " + std::generic_category().message(errno));
  std::string text(static_cast<std::size_t>(size), '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(size))) {
    throw data_error(path.string(), "cannot be read as a whole");
  }
  return text;
}

AtomicDirectory::AtomicDirectory(fs::path path) : path_(std::move(path)) {
  descriptor_ = open_locked(path_, path_, temporary_, [](const fs::path& temporary) {
    if (::mkdir(temporary.c_str(), 0777) != 0) return -1;
    const int descriptor = ::open(temporary.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0 && errno == ENOENT) errno = EEXIST;  // a cleaner was faster: take the next number
    return descriptor;
  });
}

AtomicDirectory::~AtomicDirectory() {
  close_files();
  if (descriptor_ < 0) return;
  std::error_code ignored;  // a destructor cannot report; what stays is an orphan that the next run removes
  fs::remove_all(temporary_, ignored);
  ::close(descriptor_);
}

void AtomicDirectory::sync_files() {
  for (const Unsynced& file : unsynced_) {
    if (::fsync(file.descriptor) != 0) throw output_error((path_ / file.name).string(), errno);
  }
  close_files();
}

void AtomicDirectory::close_files() noexcept {
  for (const Unsynced& file : unsynced_) ::close(file.descriptor);
  unsynced_.clear();
}

void AtomicDirectory::commit() {
  if (descriptor_ < 0) throw output_error(path_.string(), EBADF);
  sync_files();
  sync_directory(temporary_, path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR) throw output_error(path_.string(), errno);
    replace_old();
  }
  ::close(std::exchange(descriptor_, -1));
  sync_directory(directory_of(path_));
}

void AtomicDirectory::replace_old() {
  fs::path old = temporary_;
  if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno != EINVAL && errno != ENOSYS) throw output_error(path_.string(), errno);
    old += "0";  // still a temporary name, so a crash from here on leaves an orphan
    if (::rename(path_.c_str(), old.c_str()) != 0) throw output_error(path_.string(), errno);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) throw output_error(path_.string(), errno);
  }
  std::error_code error;
  fs::remove_all(old, error);
  if (error) throw output_error(path_.string(), error.value());
}

std::size_t remove_orphans(const fs::path& directory) {
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  if (error == std::errc::no_such_file_or_directory) return 0;
  if (error) throw output_error(directory.string(), error.value());
  std::size_t removed = 0;
  for (const fs::directory_entry& entry : entries) {
    const fs::path& path = entry.path();
    if (!is_temporary_name(path.filename().string())) continue;
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0) {
      if (errno == ENOENT) continue;  // its writer was just done with it
      throw output_error(path.string(), errno);
    }
    if (lock_now(descriptor) && still_linked(descriptor, path)) {
      fs::remove_all(path, error);
      if (!error) ++removed;
    }
    ::close(descriptor);
    if (error) throw output_error(path.string(), error.value());
  }
  return removed;
}

void sync_directory(const fs::path& directory, const fs::path& named) {
  const std::string name = (named.empty() ? directory : named).string();
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw output_error(name, errno);
  const int result = ::fsync(descriptor);
  const int error_number = errno;
  ::close(descriptor);
  // Some network file systems cannot sync a directory; the rename itself has succeeded there.
  if (result != 0 && error_number != EINVAL && error_number != ENOTSUP) {
    throw output_error(name, error_number);
  }
}

}  // namespace orrery
