#include "engine/memory_estimate.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

#include "engine/error.h"
#include "engine/params.h"

namespace orrery {

namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

}  // namespace

MemoryEstimate& MemoryEstimate::add(std::string what, std::uint64_t count, std::uint64_t bytes_each) {
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, bytes_each, &bytes)) bytes = kMost;
  if (__builtin_add_overflow(total_, bytes, &total_)) total_ = kMost;
  parts_.push_back({std::move(what), bytes});
  return *this;
}

std::string MemoryEstimate::table() const {
  std::size_t name_width = std::string_view{"total"}.size();
  std::size_t size_width = bytes_text(total_).size();
  for (const Part& part : parts_) {
    name_width = std::max(name_width, part.what.size());
    size_width = std::max(size_width, bytes_text(part.bytes).size());
  }
  std::string text;
  const auto row = [&](const std::string& name, std::uint64_t bytes) {
    const std::string size = bytes_text(bytes);
    text += "  " + name + std::string(name_width - name.size() + 2 + size_width - size.size(), ' ') + size + "\n";
  };
  for (const Part& part : parts_) row(part.what, part.bytes);
  row("total", total_);
  return text;
}

void MemoryEstimate::require_fits(std::uint64_t limit, const std::string& limit_name) const {
  if (total_ <= limit) return;
  throw usage_error("the run would need " + bytes_text(total_) + " of memory, but the limit (" + limit_name + ") is " +
                    bytes_text(limit) + ":\n" + table());
}

std::uint64_t peak_rss_bytes() {
  constexpr std::string_view kKey = "VmHWM:";
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(kKey)) continue;
    const std::size_t digits = line.find_first_of("0123456789");
    if (digits == std::string::npos) return 0;
    std::uint64_t kibibytes = 0;
    const auto parsed = std::from_chars(line.data() + digits, line.data() + line.size(), kibibytes);
    return parsed.ec == std::errc{} ? kibibytes * 1024 : 0;
  }
  return 0;
}

}  // namespace orrery
