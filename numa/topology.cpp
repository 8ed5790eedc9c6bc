// How a topology is come by: this machine, a synthetic description, a file. topology_reader.cpp turns it into domains.
#include "numa/topology.h"

#include <numaif.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <future>
#include <string_view>

#include "numa/cpu_mask.h"
#include "numa/system_files.h"
#include "numa/topology_reader.h"

namespace orrery {
namespace {

using detail::Bitmap;

Bitmap copy_of(hwloc_const_bitmap_t bitmap) { return Bitmap(hwloc_bitmap_dup(bitmap)); }

/// PUs that one level of a synthetic description multiplies by: "core:8", "core:8(size=1)" or "8" is 8; attached memory
/// "[numa]" is 1.
unsigned long arity(std::string_view word) {
  if (word.front() == '[') return 1;
  word = word.substr(0, word.find('('));
  if (const std::size_t colon = word.find(':'); colon != std::string_view::npos) word.remove_prefix(colon + 1);
  unsigned long value = 1;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
  if (parsed.ec == std::errc::result_out_of_range) return ~0UL;
  return parsed.ec == std::errc() ? value : 1;
}

/// The PUs of a description, before hwloc spends minutes on building a million of them. Saturates above the limit.
unsigned long synthetic_pus(std::string_view description) {
  unsigned long product = 1;
  unsigned nesting = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= description.size() && product <= Topology::kMaxSyntheticPus; ++i) {
    const char c = i < description.size() ? description[i] : ' ';
    if (c == '(' || c == '[') ++nesting;
    if ((c == ')' || c == ']') && nesting > 0) --nesting;
    if (c != ' ' || (nesting > 0 && i < description.size())) continue;
    if (i > start) {
      const unsigned long more = arity(description.substr(start, i - start));
      product = more > Topology::kMaxSyntheticPus ? more : product * more;
    }
    start = i + 1;
  }
  return product;
}

/// The environment variables by which a user can put another machine in place of this one.
std::vector<std::string> replaced_by() {
  std::vector<std::string> names;
  for (const char* name : {"HWLOC_SYNTHETIC", "HWLOC_XMLFILE", "HWLOC_FSROOT"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') names.emplace_back(name);
  }
  return names;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// Takes away the CPUs outside the affinity mask of the process: the union over its threads, so that a thread that is
/// bound already does not make the machine look small.
void apply_affinity(hwloc_topology_t topology, const Bitmap& cpus, std::vector<std::string>& warnings) {
  const Bitmap bound(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(topology, bound.get(), HWLOC_CPUBIND_PROCESS) != 0) {
    warnings.push_back(std::string("the CPU mask of the process cannot be read: ") + std::strerror(errno));
  } else if (hwloc_bitmap_intersects(bound.get(), cpus.get()) == 0) {
    warnings.push_back("the CPU mask of the process has no CPU in common with the topology; the mask is not used");
  } else {
    hwloc_bitmap_and(cpus.get(), cpus.get(), bound.get());
  }
}

/// `numactl --membind` means these nodes and no others, although a policy of a range could override it.
void apply_memory_policy(const Bitmap& nodes) {
  constexpr unsigned kMostNodes = 1024;
  unsigned long mask[kMostNodes / detail::kMaskBits] = {};
  int mode = 0;
  // Where the call is refused no policy can have been set by it either.
  if (get_mempolicy(&mode, mask, kMostNodes, nullptr, 0) != 0) return;
  constexpr int kFlags = 1 << 15 | 1 << 14;  // MPOL_F_STATIC_NODES, MPOL_F_RELATIVE_NODES; libnuma's header lacks them
  if ((mode & ~kFlags) != MPOL_BIND) return;
  const Bitmap allowed(hwloc_bitmap_alloc());
  hwloc_bitmap_from_ulongs(allowed.get(), kMostNodes / detail::kMaskBits, mask);
  hwloc_bitmap_and(nodes.get(), nodes.get(), allowed.get());
}

/// Asks for an empty mask: where binding is possible at all that is an invalid argument and changes nothing. Setting
/// the present mask again would not do: a CPU that is offline just now is missing in it and would be lost for good.
std::string refused_thread_binding() {
  if (detail::set_thread_mask(0, detail::mask_of({})) || errno == EINVAL) return {};
  return std::strerror(errno);
}

/// Tries to place one page; containers often refuse mbind.
std::string refused_memory_binding(int node) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return std::strerror(errno);
  const detail::CpuMask mask = detail::mask_of({static_cast<unsigned>(node)});
  const long result = mbind(memory, page, MPOL_BIND, mask.data(), mask.size() * detail::kMaskBits + 1, 0);
  const std::string reason = result == 0 ? "" : std::strerror(errno);
  munmap(memory, page);
  return reason;
}

std::size_t cpus_in(const char* path) { return detail::cpu_list(detail::read_file(path).value_or("")).size(); }

}  // namespace

void TopologyReader::examine_system(Topology& topology) {
  const std::size_t present = cpus_in("/sys/devices/system/cpu/present");
  const std::size_t online = cpus_in("/sys/devices/system/cpu/online");
  if (online != 0 && online < present) {
    add_warning(topology, std::to_string(present - online) + " of " + std::to_string(present) + " CPUs are offline");
  }
  if (topology.allowed_pus() < online) {
    add_note(topology, std::to_string(topology.allowed_pus()) + " of " + std::to_string(online) +
                           " CPUs may be used (affinity mask or control group)");
  }
  topology.cpu_quota_ = detail::group_cpu_quota("").value_or(0);
  if (topology.cpu_quota_ > 0 && topology.cpu_quota_ < topology.allowed_pus()) {
    char text[32];
    *std::to_chars(text, text + sizeof text - 1, topology.cpu_quota_, std::chars_format::general, 3).ptr = '\0';
    add_warning(topology, std::string("the control group grants the time of ") + text + " CPUs, fewer than the " +
                              std::to_string(topology.allowed_pus()) + " that may be used");
  }
  const std::string no_threads = refused_thread_binding();
  topology.bind_threads_ = no_threads.empty();
  if (!topology.bind_threads_) add_warning(topology, "threads cannot be bound to CPUs here: " + no_threads);
  const int node = topology.domains_.front().memory_node;
  const std::string no_memory = node < 0 ? "no memory node is known" : refused_memory_binding(node);
  topology.bind_memory_ = no_memory.empty();
  const bool matters = topology.domains_.size() > 1 || !topology.memory_only_.empty();
  if (!topology.bind_memory_ && matters) add_warning(topology, "memory cannot be placed on nodes here: " + no_memory);
}

Topology TopologyReader::read_system() {
  const detail::HwlocTopology hwloc = detail::new_topology();
  detail::load(hwloc, "this machine");
  const bool this_system = hwloc_topology_is_thissystem(hwloc.get()) != 0;
  const std::vector<std::string> names = replaced_by();
  const bool replaced = !names.empty() && (!this_system || std::getenv("HWLOC_THISSYSTEM") != nullptr);
  Bitmap cpus = copy_of(hwloc_topology_get_allowed_cpuset(hwloc.get()));
  Bitmap nodes = copy_of(hwloc_topology_get_allowed_nodeset(hwloc.get()));
  std::vector<std::string> warnings;
  if (!names.empty()) {
    warnings.push_back(joined(names) + (replaced ? " is set: the topology is what it describes, not what the machine is"
                                                 : " is set but cannot be used; the topology is this machine's"));
  }
  if (this_system) {
    apply_affinity(hwloc.get(), cpus, warnings);
    apply_memory_policy(nodes);
  }
  TopologyReader reader(hwloc.get(), replaced ? "environment " + joined(names) : "this machine", std::move(cpus),
                        std::move(nodes));
  Topology topology = reader.read();
  for (std::string& warning : warnings) TopologyReader::add_warning(topology, std::move(warning));
  if (this_system) TopologyReader::examine_system(topology);
  return topology;
}

// On a thread of its own: hwloc binds the calling thread to one CPU after the other to ask each what it is, and what it
// gives back afterwards lacks the CPUs that were offline in between.
Topology Topology::detect() { return std::async(std::launch::async, TopologyReader::read_system).get(); }

Topology Topology::synthetic(const std::string& description) {
  const std::string source = "synthetic '" + description + "'";
  if (synthetic_pus(description) > kMaxSyntheticPus) {
    throw TopologyError(source + ": more than " + std::to_string(kMaxSyntheticPus) + " PUs");
  }
  const detail::HwlocTopology hwloc = detail::new_topology();
  if (hwloc_topology_set_synthetic(hwloc.get(), description.c_str()) != 0) {
    throw TopologyError(source +
                        ": expected levels from large to small with their number in the level above, such as "
                        "\"pack:2 numa:1 core:8 pu:2\"");
  }
  detail::load(hwloc, source);
  return TopologyReader(hwloc.get(), source, copy_of(hwloc_topology_get_allowed_cpuset(hwloc.get())),
                        copy_of(hwloc_topology_get_allowed_nodeset(hwloc.get())))
      .read();
}

Topology Topology::xml(const std::string& path) {
  const std::string source = "file '" + path + "'";
  const detail::HwlocTopology hwloc = detail::new_topology();
  if (hwloc_topology_set_xml(hwloc.get(), path.c_str()) != 0) {
    const int error_number = errno;
    throw TopologyError(source + (error_number == EINVAL ? ": expected a topology as `lstopo FILE.xml` writes it"
                                                         : ": " + std::string(std::strerror(error_number))));
  }
  detail::load(hwloc, source);
  return TopologyReader(hwloc.get(), source, copy_of(hwloc_topology_get_allowed_cpuset(hwloc.get())),
                        copy_of(hwloc_topology_get_allowed_nodeset(hwloc.get())))
      .read();
}

std::vector<unsigned> Domain::pus() const {
  std::vector<unsigned> result;
  for (const Core& core : cores) result.insert(result.end(), core.pus.begin(), core.pus.end());
  std::sort(result.begin(), result.end());
  return result;
}

unsigned Domain::pu_count() const noexcept {
  std::size_t count = 0;
  for (const Core& core : cores) count += core.pus.size();
  return static_cast<unsigned>(count);
}

unsigned Topology::allowed_cores() const noexcept {
  std::size_t count = 0;
  for (const Domain& domain : domains_) count += domain.cores.size();
  return static_cast<unsigned>(count);
}

unsigned Topology::allowed_pus() const noexcept {
  unsigned count = 0;
  for (const Domain& domain : domains_) count += domain.pu_count();
  return count;
}

std::vector<unsigned> Topology::pus() const {
  std::vector<unsigned> result;
  for (const Domain& domain : domains_) {
    const std::vector<unsigned> more = domain.pus();
    result.insert(result.end(), more.begin(), more.end());
  }
  std::sort(result.begin(), result.end());
  return result;
}

int Topology::domain_of_pu(unsigned pu) const noexcept {
  for (const Domain& domain : domains_) {
    for (const Core& core : domain.cores) {
      if (std::find(core.pus.begin(), core.pus.end(), pu) != core.pus.end()) return static_cast<int>(domain.id);
    }
  }
  return -1;
}

int Topology::domain_of_node(int os_node) const noexcept {
  for (const Domain& domain : domains_) {
    if (os_node >= 0 && domain.memory_node == os_node) return static_cast<int>(domain.id);
  }
  return -1;
}

}  // namespace orrery
