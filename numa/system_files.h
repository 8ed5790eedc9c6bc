// What the kernel says: the reason for an error, and in small text files memory figures, CPU lists, limits of control
// groups (v1, v2, nested). Inside numa/ only. Every function takes the folder that stands for "/", so that tests can
// show it other machines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::detail {

/// What an errno means.
std::string system_reason(int error_number);
/// Whole content, nothing if it cannot be read.
std::optional<std::string> read_file(const std::string& path);
/// The unsigned number at the start of the text (blanks skipped), nothing if there is none.
std::optional<std::uint64_t> leading_number(std::string_view text);
/// Value of the line that begins with (or, for node files, contains) `key`, as in "MemTotal:  123 kB"; kB are turned
/// into bytes.
std::optional<std::uint64_t> figure(std::string_view text, std::string_view key);
/// "0-3,8,10-11" as numbers; malformed parts are left out.
std::vector<unsigned> cpu_list(std::string_view text);

struct MemoryLimit {
  std::uint64_t limit_bytes = 0;
  std::uint64_t left_bytes = 0;  ///< limit minus what is used and cannot be dropped
  std::string group;             ///< folder of the group
};
/// Of all control groups that this process is in, the one with the least memory left.
std::optional<MemoryLimit> group_memory_limit(const std::string& root);
/// CPUs' worth of time per period that the tightest control group grants; nothing if unlimited.
std::optional<double> group_cpu_quota(const std::string& root);
/// Free and freeable bytes of a memory node, from its meminfo.
std::optional<std::uint64_t> node_available_bytes(const std::string& root, int os_node);

}  // namespace orrery::detail
