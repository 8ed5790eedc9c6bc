// What the kernel says about memory: where pages are, and how much is left.
#include <numaif.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <map>

#include "numa/memory.h"
#include "numa/system_files.h"

namespace orrery {
namespace {

constexpr std::size_t kPagesPerCall = 1024;

/// A stretch of memory whose first page is asked for and stands for all of it.
struct Sample {
  std::uintptr_t page = 0;
  std::uint64_t bytes = 0;
};

void count(PageReport& report, std::map<int, std::uint64_t>& nodes, int status, std::uint64_t bytes) {
  // ENOENT: no page yet. EFAULT: the shared page of zeros, which a read of untouched memory gives, or nothing mapped.
  if (status >= 0) {
    nodes[status] += bytes;
  } else if (status == -ENOENT || status == -EFAULT) {
    report.not_present += bytes;
  } else {
    report.unknown += bytes;
    report.reason = "the kernel does not tell where a page is: " + detail::system_reason(-status);
  }
}

void ask(PageReport& report, std::map<int, std::uint64_t>& nodes, std::span<const Sample> samples) {
  std::array<void*, kPagesPerCall> pages{};
  std::array<int, kPagesPerCall> status{};
  for (std::size_t i = 0; i < samples.size(); ++i) pages[i] = reinterpret_cast<void*>(samples[i].page);
  report.pages_asked += samples.size();
  const bool answered = move_pages(0, samples.size(), pages.data(), nullptr, status.data(), 0) == 0;
  const int error_number = answered ? 0 : errno;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    // A call that fails as a whole says nothing about any page; -EPERM and the like never are a page's own status.
    if (answered) {
      count(report, nodes, status[i], samples[i].bytes);
    } else {
      report.unknown += samples[i].bytes;
      report.reason = "the kernel does not tell where pages are (move_pages): " + detail::system_reason(error_number);
    }
  }
}

std::uint64_t address_space_in_use() {
  const auto pages = detail::leading_number(detail::read_file("/proc/self/statm").value_or(""));
  return pages.value_or(0) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

std::uint64_t PageReport::on_node(int os_node) const {
  for (const auto& [node, node_bytes] : nodes) {
    if (node == os_node) return node_bytes;
  }
  return 0;
}

double PageReport::share_on(int os_node) const {
  std::uint64_t present = 0;
  for (const auto& entry : nodes) present += entry.second;
  return present == 0 ? 0.0 : static_cast<double>(on_node(os_node)) / static_cast<double>(present);
}

PageReport where_pages_are(const void* start, std::size_t bytes, std::size_t max_pages) {
  PageReport report;
  report.bytes = bytes;
  if (bytes == 0) return report;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(start), end = begin + bytes;
  const std::uintptr_t first = begin / page * page;
  const std::uintptr_t total = (end - first + page - 1) / page;
  const std::uintptr_t stride = (max_pages == 0 ? 1 : (total + max_pages - 1) / max_pages) * page;
  std::map<int, std::uint64_t> nodes;
  std::vector<Sample> samples;
  for (std::uintptr_t at = first; at < end; at += stride) {
    samples.push_back({at, std::min(at + stride, end) - std::max(at, begin)});
    if (samples.size() < kPagesPerCall && end - at > stride) continue;
    ask(report, nodes, samples);
    samples.clear();
  }
  report.nodes.assign(nodes.begin(), nodes.end());
  return report;
}

std::uint64_t AvailableMemory::usable() const noexcept {
  return limit_bytes == 0 ? available_bytes : std::min(available_bytes, limit_left_bytes);
}

AvailableMemory available_memory() {
  AvailableMemory result;
  const std::string figures = detail::read_file("/proc/meminfo").value_or("");
  result.physical_bytes = detail::figure(figures, "MemTotal").value_or(0);
  result.available_bytes = detail::figure(figures, "MemAvailable").value_or(result.physical_bytes);
  if (const auto group = detail::group_memory_limit("")) {
    result.limit_bytes = group->limit_bytes;
    result.limit_left_bytes = group->left_bytes;
    result.limited_by = group->group;
  }
  rlimit addresses{};
  if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY) {
    const std::uint64_t left = addresses.rlim_cur - std::min<std::uint64_t>(addresses.rlim_cur, address_space_in_use());
    if (result.limit_bytes == 0 || left < result.limit_left_bytes) {
      result.limit_bytes = addresses.rlim_cur;
      result.limit_left_bytes = left;
      result.limited_by = "RLIMIT_AS";
    }
  }
  return result;
}

std::uint64_t available_memory(const Topology& topology, unsigned domain) {
  const Domain& home = topology.domains().at(domain);
  if (!topology.is_this_system() || home.memory_node < 0) return 0;
  // With one node it is all the memory there is, also what a virtual machine added later without telling the node.
  if (topology.domains().size() == 1 && topology.memory_only().empty()) return available_memory().available_bytes;
  return detail::node_available_bytes("", home.memory_node).value_or(0);
}

}  // namespace orrery
