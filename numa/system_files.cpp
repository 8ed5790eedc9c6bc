#include "numa/system_files.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <system_error>

namespace orrery::detail {
namespace {

/// A hierarchy that is mounted here: the folders from our own group up to the mount point.
struct Hierarchy {
  bool v2 = false;
  std::vector<std::string> folders;
};

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool in_comma_list(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

/// The kernel writes blanks in mount points as \040.
std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 4, code, 8).ptr == text.data() + i + 4) {
      result += static_cast<char>(code);
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

/// Path of our group in the hierarchy of the controller ("" : version 2), from /proc/self/cgroup.
std::optional<std::string> own_group(const std::string& root, std::string_view controller) {
  std::istringstream lines(read_file(root + "/proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : in_comma_list(controllers, controller))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

/// Folders from the group up to the mount point. A container may see its own group as the mount's root, or a path that
/// leads out of its name space: then only the mount point itself can be looked at.
std::vector<std::string> folders_up(const std::string& mount_point, const std::string& mount_root,
                                    const std::string& group) {
  std::string relative;
  const std::string prefix = mount_root == "/" ? "" : mount_root;
  if (group.compare(0, prefix.size(), prefix) == 0 && group.find("/..") == std::string::npos) {
    relative = group.substr(prefix.size());
  }
  while (!relative.empty() && relative.back() == '/') relative.pop_back();
  std::vector<std::string> folders;
  while (!relative.empty()) {
    folders.push_back(mount_point + relative);
    relative.resize(relative.find_last_of('/') == std::string::npos ? 0 : relative.find_last_of('/'));
  }
  folders.push_back(mount_point);
  return folders;
}

/// The hierarchies that may limit the controller: version 2, and version 1 of that name. Both can be mounted.
std::vector<Hierarchy> hierarchies(const std::string& root, std::string_view controller) {
  std::vector<Hierarchy> result;
  std::istringstream lines(read_file(root + "/proc/self/mountinfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = words_of(line);
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    const bool v2 = dash[1] == "cgroup2";
    if (!v2 && !(dash[1] == "cgroup" && in_comma_list(dash[3], controller))) continue;
    const auto group = own_group(root, v2 ? std::string_view() : controller);
    if (!group) continue;
    result.push_back({v2, folders_up(root + unescaped(words[4]), unescaped(words[3]), *group)});
  }
  return result;
}

std::optional<std::uint64_t> number_in(const std::string& path) {
  const auto text = read_file(path);
  return text ? leading_number(*text) : std::nullopt;
}

std::optional<MemoryLimit> limit_of(const std::string& folder, bool v2) {
  const auto limit = number_in(folder + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  if (!limit || *limit >= std::uint64_t{1} << 62) return std::nullopt;  // version 1 says "none" with a huge number
  const std::uint64_t used = number_in(folder + (v2 ? "/memory.current" : "/memory.usage_in_bytes")).value_or(0);
  const std::string stat = read_file(folder + "/memory.stat").value_or("");
  const std::uint64_t droppable = figure(stat, v2 ? "inactive_file" : "total_inactive_file").value_or(0);
  const std::uint64_t kept = used - std::min(used, droppable);
  return MemoryLimit{*limit, *limit - std::min(*limit, kept), folder};
}

std::optional<double> quota_of(const std::string& folder, bool v2) {
  std::optional<std::uint64_t> quota, period;
  if (v2) {
    const std::vector<std::string> words = words_of(read_file(folder + "/cpu.max").value_or(""));  // "max 100000"
    if (words.size() == 2) {
      quota = leading_number(words[0]);
      period = leading_number(words[1]);
    }
  } else {
    quota = number_in(folder + "/cpu.cfs_quota_us");  // -1: none
    period = number_in(folder + "/cpu.cfs_period_us");
  }
  if (!quota || !period || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

}  // namespace

std::string system_reason(int error_number) { return std::generic_category().message(error_number); }

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

std::optional<std::uint64_t> leading_number(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  std::uint64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> figure(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    const std::size_t end = at + key.size();
    const bool starts = at == 0 || text[at - 1] == '\n' || text[at - 1] == ' ';
    const bool ends = end < text.size() && (text[end] == ':' || text[end] == ' ');
    if (!starts || !ends) continue;
    const std::string_view line = text.substr(end + 1, std::min(text.find('\n', end), text.size()) - end - 1);
    const auto value = leading_number(line);
    if (!value) return std::nullopt;
    return line.find("kB") == std::string_view::npos ? *value : *value * 1024;
  }
  return std::nullopt;
}

std::vector<unsigned> cpu_list(std::string_view text) {
  constexpr unsigned kMostCpus = 1U << 16;  // a broken file must not make us list billions
  std::vector<unsigned> result;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    unsigned first = 0, last = 0;
    auto parsed = std::from_chars(at, end, first);
    if (parsed.ec != std::errc()) {
      ++at;
      continue;
    }
    last = first;
    if (parsed.ptr < end && *parsed.ptr == '-') parsed = std::from_chars(parsed.ptr + 1, end, last);
    for (unsigned cpu = first; parsed.ec == std::errc() && cpu <= last && cpu < kMostCpus; ++cpu) result.push_back(cpu);
    at = parsed.ptr;
  }
  return result;
}

std::optional<MemoryLimit> group_memory_limit(const std::string& root) {
  std::optional<MemoryLimit> tightest;
  for (const Hierarchy& hierarchy : hierarchies(root, "memory")) {
    for (const std::string& folder : hierarchy.folders) {
      const auto limit = limit_of(folder, hierarchy.v2);
      if (limit && (!tightest || limit->left_bytes < tightest->left_bytes)) tightest = limit;
    }
  }
  return tightest;
}

std::optional<double> group_cpu_quota(const std::string& root) {
  std::optional<double> tightest;
  for (const Hierarchy& hierarchy : hierarchies(root, "cpu")) {
    for (const std::string& folder : hierarchy.folders) {
      const auto quota = quota_of(folder, hierarchy.v2);
      if (quota && (!tightest || *quota < *tightest)) tightest = quota;
    }
  }
  return tightest;
}

std::optional<std::uint64_t> node_available_bytes(const std::string& root, int os_node) {
  const auto text = read_file(root + "/sys/devices/system/node/node" + std::to_string(os_node) + "/meminfo");
  if (!text) return std::nullopt;
  const auto free = figure(*text, "MemFree");
  if (!free) return std::nullopt;
  // Half of the file cache counts as freeable, as MemAvailable does it for the whole machine: some of it is in use.
  return *free + (figure(*text, "Active(file)").value_or(0) + figure(*text, "Inactive(file)").value_or(0)) / 2 +
         figure(*text, "SReclaimable").value_or(0) / 2;
}

}  // namespace orrery::detail
