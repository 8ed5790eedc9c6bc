// Space on disk for what does not fit in memory. It has no name, so nothing is left of it when the process ends,
// however it ends (design section 11: no half-written file ever stands under a final name).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace orrery {

/// An unnamed file of a fixed size in a directory's file system. Reading and writing are safe from several threads, as
/// long as places do not overlap. Every failure throws an output error that names the directory.
class ScratchFile {
 public:
  /// Sets the space aside at once, so that a full disk is found here and not hours later.
  ScratchFile(const std::filesystem::path& directory, std::uint64_t bytes);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Requires that all of it has been written.
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;
  std::uint64_t size() const noexcept { return size_; }

 private:
  void open_unnamed(const std::filesystem::path& directory);
  [[noreturn]] void fail(int error_number) const;

  std::string named_;
  std::uint64_t size_;
  int descriptor_ = -1;
};

}  // namespace orrery
