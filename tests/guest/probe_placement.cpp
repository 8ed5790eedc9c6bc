// Pages: where Buffer and Replicated say they lie, where the kernel says they lie, and who touched them first.
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "numa/memory.h"
#include "numa/pinning.h"
#include "tests/guest/probe.h"

namespace orrery::guest {
namespace {

/// Writes every page on a thread that is bound to the domain.
void touch_from(const Topology& topology, unsigned domain, Buffer& buffer) {
  std::thread([&] {
    const ThreadPin pin = ThreadPin::to_domain(topology, domain);
    std::memset(buffer.data(), 1, buffer.size());
  }).join();
}

std::string text(const PageReport& report) {
  std::string result = std::to_string(report.bytes) + " bytes:";
  for (const auto& [node, bytes] : report.nodes)
    result += " node " + std::to_string(node) + " " + std::to_string(bytes);
  return result + " not present " + std::to_string(report.not_present) + " unknown " + std::to_string(report.unknown) +
         " " + report.reason;
}

void expect_all_on(Checks& checks, const Buffer& buffer, int node, const std::string& what) {
  const PageReport report = where_pages_are(buffer.data(), buffer.size());
  checks.expect(report.on_node(node) == buffer.size(),
                what + " is to be on node " + std::to_string(node) + ", " + text(report));
  checks.expect(buffer.remark().empty(), what + " remarks: " + buffer.remark());
}

void check_local(Checks& checks, const Topology& topology, std::size_t bytes) {
  for (const Domain& home : topology.domains()) {
    for (const Domain& from : topology.domains()) {
      const std::string what = "local(" + std::to_string(bytes) + ", domain " + std::to_string(home.id) +
                               ") touched by " + std::to_string(from.id);
      Buffer buffer = Buffer::local(bytes, home.id, topology);
      touch_from(topology, from.id, buffer);
      expect_all_on(checks, buffer, home.memory_node, what);
    }
    Buffer populated = Buffer::local(bytes, home.id, topology);
    populated.populate();
    expect_all_on(checks, populated, home.memory_node, "populated local buffer");
  }
}

void check_interleaved(Checks& checks, const Topology& topology, std::size_t bytes) {
  Buffer buffer = Buffer::interleaved(bytes, topology);
  touch_from(topology, 0, buffer);
  const PageReport report = where_pages_are(buffer.data(), buffer.size());
  checks.expect(buffer.remark().empty(), "interleaved remarks: " + buffer.remark());
  std::set<int> homes;
  for (const Domain& domain : topology.domains()) homes.insert(domain.memory_node);
  std::uint64_t present = 0;
  const std::uint64_t share = bytes / homes.size();
  const std::uint64_t unit = bytes >= Buffer::kHugePage ? 2 * Buffer::kHugePage : 2 * 4096;
  for (const auto& [node, there] : report.nodes) {
    checks.expect(topology.domain_of_node(node) >= 0,
                  "interleaved memory is on a node without domain, " + text(report));
    checks.expect(there + unit >= share && there <= share + unit, "interleaved shares are not even, " + text(report));
    present += there;
  }
  checks.expect(present == bytes && report.nodes.size() == homes.size(), "interleaved: " + text(report));
}

void check_replicated(Checks& checks, const Topology& topology) {
  Replicated copies(5 * Buffer::kHugePage / 2, topology);
  std::memset(copies.on(0).data(), 7, copies.size());
  copies.copy_from(0);
  for (const Domain& domain : topology.domains()) {
    expect_all_on(checks, copies.on(domain.id), domain.memory_node, "copy of domain " + std::to_string(domain.id));
    checks.expect(copies.as<unsigned char>(domain.id).back() == 7,
                  "copy of domain " + std::to_string(domain.id) + " is not equal");
  }
}

/// Ordinary memory goes to the node of the thread that touches it first: what the pins are for, besides the buffers.
void check_first_touch(Checks& checks, const Topology& topology) {
  for (const Domain& domain : topology.domains()) {
    // A one-domain topology places nothing, so its buffer is ordinary memory with the right alignment.
    Buffer buffer = Buffer::local(2 * Buffer::kHugePage, 0, Topology::synthetic("core:1 pu:1"));
    touch_from(topology, domain.id, buffer);
    expect_all_on(checks, buffer, domain.memory_node, "memory first touched by domain " + std::to_string(domain.id));
  }
}

/// Many buffers at once must not get into each other's huge pages.
void check_neighbours(Checks& checks, const Topology& topology) {
  std::vector<Buffer> buffers;
  const auto domains = static_cast<unsigned>(topology.domains().size());
  for (unsigned i = 0; i < 24; ++i)
    buffers.push_back(Buffer::local(i % 3 == 0 ? 12345 : Buffer::kHugePage + 4096 * i, i % domains, topology));
  for (unsigned i = 24; i-- > 0;) touch_from(topology, i / 3 % domains, buffers[i]);
  for (unsigned i = 0; i < 24; ++i) {
    expect_all_on(checks, buffers[i], topology.domains()[i % domains].memory_node, "neighbour " + std::to_string(i));
  }
}

}  // namespace

void check_placement(Checks& checks, const Topology& topology) {
  for (const std::size_t bytes :
       {std::size_t{100}, std::size_t{300000}, Buffer::kHugePage, 4 * Buffer::kHugePage + 12345}) {
    check_local(checks, topology, bytes);
  }
  check_interleaved(checks, topology, 64 * 4096);
  check_interleaved(checks, topology, topology.domains().size() * 4 * Buffer::kHugePage);
  check_replicated(checks, topology);
  check_first_touch(checks, topology);
  check_neighbours(checks, topology);
}

void check_spill(Checks& checks, const Topology& topology) {
  if (topology.domains().size() < 2) return;
  const Domain& home = topology.domains().front();
  const std::size_t bytes = available_memory(topology, home.id) + (std::size_t{48} << 20);
  Buffer buffer = Buffer::local(bytes, home.id, topology);
  checks.expect(buffer.remark().find("has room for") != std::string::npos,
                "no remark about a full node: " + buffer.remark());
  buffer.populate();
  const PageReport report = where_pages_are(buffer.data(), buffer.size(), 4096);
  checks.expect(report.share_on(home.memory_node) > 0.5, "a full node holds less than half, " + text(report));
  checks.expect(report.nodes.size() > 1, "nothing spilled, " + text(report));
}

}  // namespace orrery::guest
