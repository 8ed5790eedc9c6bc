#include "engine/data/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "engine/error.h"

namespace orrery {

namespace {

std::size_t check_read(ssize_t got, const std::string& path) {
  if (got < 0) throw data_error(path, std::string{"cannot read: "} + std::strerror(errno));
  return static_cast<std::size_t>(got);
}

int open_input(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw data_error(path, std::string{"cannot read: "} + std::strerror(errno));
  return fd;
}

}  // namespace

std::size_t byte_order_mark(std::string_view file, std::string_view text) {
  const bool low_first = text.starts_with("\xFF\xFE");
  if (low_first || text.starts_with("\xFE\xFF")) {
    throw data_error(file, std::string{"expected UTF-8 or ASCII text, got UTF-16 (byte order mark "} +
                               (low_first ? "FF FE)" : "FE FF)"));
  }
  return text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
}

// Undoes gzip, member after member, straight from the raw bytes. An error is kept until everything before it is out.
class InputFile::Inflater {
 public:
  explicit Inflater(InputFile& file) : file_(file), raw_(std::size_t{128} << 10) {
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  std::size_t read(std::span<char> to) {
    std::size_t done = 0;
    while (done < to.size() && !ended_ && !fault_) {
      if (stream_.avail_in == 0 && !output_pending_ && !refill()) break;
      if (between_members_ && !begin_member()) continue;
      done += inflate_some(to.subspan(done));
    }
    if (done == 0 && fault_ && !to.empty()) throw data_error(file_.path(), *fault_);
    return done;
  }

 private:
  // False when the raw bytes are at their end, which is fine only between members.
  bool refill() {
    const std::size_t got = file_.read_raw(raw_);
    stream_.next_in = reinterpret_cast<Bytef*>(raw_.data());
    stream_.avail_in = static_cast<uInt>(got);
    if (got > 0) return true;
    if (!between_members_) {
      fault_ = "the gzip data is truncated: it ends after " + std::to_string(text_bytes_) +
               " bytes of text, before its end mark";
    }
    ended_ = true;
    return false;
  }

  // After a member: another member, or zero padding (tape blocks), or the end; anything else is damage.
  bool begin_member() {
    if (*stream_.next_in == 0) {
      ++stream_.next_in;
      --stream_.avail_in;
      return false;
    }
    if (*stream_.next_in != 0x1f) {
      fault_ = "there are bytes that are not gzip data after the end of the gzip data";
      return false;
    }
    inflateReset(&stream_);
    between_members_ = false;
    return true;
  }

  std::size_t inflate_some(std::span<char> to) {
    constexpr std::size_t kMost = std::size_t{1} << 30;  // zlib counts in 32 bits
    const std::size_t room = std::min(to.size(), kMost);
    stream_.next_out = reinterpret_cast<Bytef*>(to.data());
    stream_.avail_out = static_cast<uInt>(room);
    const int status = ::inflate(&stream_, Z_NO_FLUSH);
    const std::size_t got = room - stream_.avail_out;
    text_bytes_ += got;
    output_pending_ = stream_.avail_out == 0 && status != Z_STREAM_END;
    if (status == Z_STREAM_END) {
      between_members_ = true;
    } else if (status == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      fault_ = "the gzip data is damaged after " + std::to_string(text_bytes_) +
               " bytes of text: " + (stream_.msg != nullptr ? stream_.msg : "unknown code");
    }
    return got;
  }

  InputFile& file_;
  std::vector<char> raw_;
  z_stream stream_{};
  std::uint64_t text_bytes_ = 0;
  bool between_members_ = false;
  bool output_pending_ = false;  // zlib may hold text back although it has eaten all of its input
  bool ended_ = false;
  std::optional<std::string> fault_;
};

InputFile::InputFile(std::string path) : path_(std::move(path)), fd_(open_input(path_)) {
  try {
    struct stat status {};
    if (::fstat(fd_, &status) != 0) throw data_error(path_, std::string{"cannot read: "} + std::strerror(errno));
    if (S_ISDIR(status.st_mode)) throw data_error(path_, "expected a file, got a directory");
    if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) {
      throw data_error(path_, "expected a regular file or a pipe, got a device or a socket");
    }
    if (S_ISREG(status.st_mode)) disk_bytes_ = static_cast<std::uint64_t>(status.st_size);
    char mark[2];
    std::size_t got = 0;
    while (got < sizeof mark) {
      const std::size_t more = read_raw(std::span{mark}.subspan(got));
      if (more == 0) break;
      got += more;
    }
    raw_head_.assign(mark, got);
    gzip_ = got == 2 && mark[0] == '\x1f' && mark[1] == '\x8b';
    seekable_ = S_ISREG(status.st_mode) && !gzip_;
    if (gzip_) inflater_ = std::make_unique<Inflater>(*this);
    skip_byte_order_mark();
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

InputFile::~InputFile() { ::close(fd_); }

std::size_t InputFile::read_raw(std::span<char> to) {
  if (raw_used_ < raw_head_.size()) {
    const std::size_t count = std::min(to.size(), raw_head_.size() - raw_used_);
    std::memcpy(to.data(), raw_head_.data() + raw_used_, count);
    raw_used_ += count;
    return count;
  }
  ssize_t got = 0;
  do {
    got = ::read(fd_, to.data(), to.size());
  } while (got < 0 && errno == EINTR);
  return check_read(got, path_);
}

std::size_t InputFile::decode(std::span<char> to) {
  std::size_t done = 0;
  while (done < to.size()) {
    const std::size_t got = inflater_ ? inflater_->read(to.subspan(done)) : read_raw(to.subspan(done));
    if (got == 0) break;
    done += got;
    if (inflater_) break;  // what is out before a fault must reach the caller before the fault does
  }
  return done;
}

std::string_view InputFile::peek(std::size_t bytes) {
  while (head_.size() < bytes) {
    const std::size_t have = head_.size();
    head_.resize(std::max(bytes, have + 1));
    std::size_t got = 0;
    try {
      got = decode(std::span{head_}.subspan(have));
    } catch (const Error&) {  // read() reports it again, in its place; before the first byte its place is here
      if (have == 0) throw;
    }
    head_.resize(have + got);
    if (got == 0) break;
  }
  return head_;
}

void InputFile::skip_byte_order_mark() {
  mark_bytes_ = byte_order_mark(path_, peek(3));
  head_.erase(0, mark_bytes_);
}

std::size_t InputFile::read(std::span<char> to) {
  std::size_t done = 0;
  if (head_used_ < head_.size()) {
    done = std::min(to.size(), head_.size() - head_used_);
    std::memcpy(to.data(), head_.data() + head_used_, done);
    head_used_ += done;
    if (head_used_ == head_.size()) head_.clear(), head_.shrink_to_fit(), head_used_ = 0;
    return done;
  }
  return decode(to);
}

std::size_t InputFile::read_at(std::uint64_t offset, std::span<char> to) const {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t got =
        ::pread(fd_, to.data() + done, to.size() - done, static_cast<off_t>(mark_bytes_ + offset + done));
    if (got < 0 && errno == EINTR) continue;
    const std::size_t count = check_read(got, path_);
    if (count == 0) break;
    done += count;
  }
  return done;
}

}  // namespace orrery
