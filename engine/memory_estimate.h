// What a run will need, said before it starts (design, section 8): a run that would not fit is refused with the
// numbers, not killed by the kernel an hour later.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery {

/// Named amounts of memory that exist at the same time. Not for use by two threads.
class MemoryEstimate {
 public:
  struct Part {
    std::string what;
    std::uint64_t bytes = 0;
  };

  /// Adds `count` things of `bytes_each`. A product or total above 2^64 counts as 2^64 - 1.
  MemoryEstimate& add(std::string what, std::uint64_t count, std::uint64_t bytes_each = 1);
  std::uint64_t total() const noexcept { return total_; }
  const std::vector<Part>& parts() const noexcept { return parts_; }
  /// One line a part and the total, in aligned columns.
  std::string table() const;
  /// Throws a usage error with the table when the total is above `limit` bytes; `limit_name` says what the limit is
  /// ("--memory-limit", "memory of this machine").
  void require_fits(std::uint64_t limit, const std::string& limit_name) const;

 private:
  std::vector<Part> parts_;
  std::uint64_t total_ = 0;
};

/// The most memory that this process has had resident so far, in bytes (VmHWM). Not getrusage: its number is inherited
/// from the program that started this one. 0 where /proc is not mounted.
std::uint64_t peak_rss_bytes();

}  // namespace orrery
