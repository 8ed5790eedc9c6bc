// An input file as bytes: opened once, gzip undone, its first bytes open to inspection before anything is consumed.
// Design section 10 and 11: input that cannot be read is the caller's fault and says which file and why; gzip is
// transparent, and a truncated archive is an error, never a short data set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace orrery {

/// How many bytes of `text`, the first of `file`, are a byte order mark of UTF-8: 3 or 0. Throws data_error for one of
/// UTF-16: read as single bytes such a text would pass for strange ids and words.
std::size_t byte_order_mark(std::string_view file, std::string_view text);

/// One open input. Regular files and pipes are accepted. Its content begins behind a UTF-8 byte order mark. Not
/// thread-safe, except read_at().
class InputFile {
 public:
  /// Opens the file. Throws data_error when it is missing, unreadable, a directory, a device or UTF-16.
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  bool gzip() const { return gzip_; }
  /// A plain regular file: read_at() may be used, from many threads at once.
  bool seekable() const { return seekable_; }
  /// Where the content of a seekable file ends, for read_at().
  std::uint64_t content_bytes() const { return disk_bytes_ - mark_bytes_; }

  /// The first bytes of the content, at least `bytes` of them unless the content is shorter. Consumes nothing. The view
  /// lives until the next peek() or read(). Only before the first read().
  std::string_view peek(std::size_t bytes);
  /// Writes the next bytes of the content to `to`; 0 only at the end of the content. Throws data_error on damaged or
  /// truncated gzip data, after all bytes before the damage have been handed out.
  std::size_t read(std::span<char> to);
  /// Fills `to` from byte `offset` of a seekable file; fewer only at its end.
  std::size_t read_at(std::uint64_t offset, std::span<char> to) const;

 private:
  class Inflater;

  std::size_t read_raw(std::span<char> to);
  std::size_t decode(std::span<char> to);
  void skip_byte_order_mark();

  std::string path_;
  int fd_ = -1;
  bool gzip_ = false;
  bool seekable_ = false;
  std::uint64_t disk_bytes_ = 0;  // 0 for a pipe
  std::size_t mark_bytes_ = 0;
  std::string raw_head_;  // bytes read to look for the gzip mark
  std::size_t raw_used_ = 0;
  std::string head_;  // decoded bytes that were peeked at
  std::size_t head_used_ = 0;
  std::unique_ptr<Inflater> inflater_;
};

}  // namespace orrery
