// Files that appear under their name whole or not at all. Every file that the project writes goes through here (or
// through the same steps, for a directory): a temporary name in the same directory, fsync, rename, fsync of the
// directory. This keeps "no half-written file ever stands under a final name; the next run removes orphaned
// temporaries" (design, section 11).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

class AtomicDirectory;

/// One file being written. Construct = the temporary file exists and is open; commit() = it stands under its name, on
/// disk; destruct without commit = the temporary is gone and an older file of that name is untouched. Not for use by
/// two threads. The temporary is `.NAME.tmp-PID-N` and carries a lock (flock) as long as it is being written, so that
/// others can tell a living one from an orphan. Every failure (no directory, no permission, disk full, I/O error)
/// throws an output error that names the final file.
class AtomicFile {
 public:
  /// Errors call the file `named` where that is not its own path: at the end of a link.
  explicit AtomicFile(std::filesystem::path path, std::filesystem::path named = {});
  /// A file of a directory that is being filled: it needs no temporary name of its own, and commit() leaves the fsync
  /// to the directory's, so that the disk is waited for once.
  AtomicFile(AtomicDirectory& directory, std::string_view name);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends bytes, through a buffer of 1 MiB.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// Appends through an ostream; a failed write throws out of the insertion. Valid as long as this object.
  std::ostream& stream();
  /// Hands everything appended so far to the file system.
  void flush();
  /// Bytes appended so far.
  std::uint64_t size() const noexcept { return size_; }
  /// Flush, fsync, close, rename, fsync of the directory. Nothing may be written afterwards.
  void commit();
  const std::filesystem::path& path() const noexcept { return path_; }
  /// Where the bytes are until commit().
  const std::filesystem::path& temporary() const noexcept { return temporary_; }

 private:
  class Buffer;
  [[noreturn]] void fail(int error_number) const;

  std::filesystem::path path_;
  std::filesystem::path named_;
  std::filesystem::path temporary_;
  AtomicDirectory* directory_ = nullptr;  ///< of whose files this is one
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::string pending_;
  std::unique_ptr<Buffer> buffer_;
  std::unique_ptr<std::ostream> stream_;
};

/// Writes `text` to `path` as one AtomicFile.
void write_file(const std::filesystem::path& path, std::string_view text);

/// Reads `path` whole. Throws a data error with the reason when that fails or it has more than `most` bytes.
std::string read_file(const std::filesystem::path& path, std::uintmax_t most = UINTMAX_MAX);

/// A directory being filled, with the promises of AtomicFile. commit() puts it under its name; a directory that stood
/// there before is exchanged for it in one step (renameat2) and then removed; where the file system has no exchange,
/// the old one is first moved aside under a temporary name.
class AtomicDirectory {
 public:
  explicit AtomicDirectory(std::filesystem::path path);
  ~AtomicDirectory();
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;

  /// Where files may be put until commit().
  const std::filesystem::path& temporary() const noexcept { return temporary_; }
  const std::filesystem::path& path() const noexcept { return path_; }
  /// fsync of the files, fsync of the directory, rename, fsync of its parent.
  void commit();

 private:
  friend class AtomicFile;
  struct Unsynced {
    int descriptor;
    std::string name;
  };
  void sync_files();
  void close_files() noexcept;
  void replace_old();

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  std::vector<Unsynced> unsynced_;
};

/// Removes the temporary files and directories in `directory` (not below it) whose writer is gone, and returns how
/// many. A missing directory holds none. What cannot be removed throws an output error.
std::size_t remove_orphans(const std::filesystem::path& directory);

/// fsync of a directory, so that a rename or unlink in it survives a power cut. Throws an output error, which calls it
/// `named` where that is given.
void sync_directory(const std::filesystem::path& directory, const std::filesystem::path& named = {});

}  // namespace orrery
