// What this process may use of a machine: NUMA domains, their cores, caches and memory. Design section 8: it honours
// the allowed CPU set, it can also come from a synthetic description or an XML file, and whatever is degraded is said
// once. A plain value: no handle to the library that found it out stays behind.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace orrery {

/// A description that cannot be understood, or a machine about which nothing can be found out.
class TopologyError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A physical core with the hardware threads (PUs) of it that this process may use.
struct Core {
  std::vector<unsigned> pus;  ///< kernel's numbers of its PUs, ascending, never empty; the first one is used first
  int package = -1;           ///< position in packages(), -1 if the description has none
  int l3 = -1;                ///< which level-3 cache it shares (an arbitrary number per cache), -1 if unknown
};

/// A NUMA node that owns allowed CPUs: the place of one per-socket parameter cache and one arena.
struct Domain {
  unsigned id = 0;   ///< position in Topology::domains(), the engine's DomainId
  int os_node = -1;  ///< kernel's number of the node; -1 if synthetic. Only of use here when is_this_system()
  int memory_node =
      -1;  ///< node that its memory is to come from: os_node, or the nearest one that has memory we may use
  std::vector<Core> cores;         ///< never empty
  int package = -1;                ///< package of its first core, -1 if unknown
  std::uint64_t memory_bytes = 0;  ///< memory of memory_node, 0 if unknown
  std::uint64_t l3_bytes = 0;      ///< its share of the level-3 caches it touches, 0 if unknown

  /// Its PUs, ascending.
  std::vector<unsigned> pus() const;
  unsigned pu_count() const noexcept;
};

/// A NUMA node that has memory and no CPU of its own (CXL, HBM). It is never a domain and gets no arena.
struct MemoryNode {
  int os_node = -1;
  std::uint64_t memory_bytes = 0;
  unsigned nearest_domain = 0;  ///< by distance where known, else the domain that shares its CPUs
};

struct Package {
  int os_index = -1;
  std::vector<unsigned> domains;  ///< ids of the domains that have a core here
};

/// Bytes per cache of a level, the smallest that any allowed PU sees; 0 where unknown.
struct CacheSizes {
  std::uint64_t l1d = 0;
  std::uint64_t l2 = 0;
  std::uint64_t l3 = 0;
};

/// The part of a machine that this process may use. Copyable value; everything is found out when it is made, so that
/// all accessors are safe from any thread and cheap.
class Topology {
 public:
  /// This machine as the process sees it: CPUs that are online and allowed by cgroup cpuset and affinity mask, memory
  /// nodes allowed by cgroup and by a binding memory policy (numactl --membind). HWLOC_SYNTHETIC, HWLOC_XMLFILE and
  /// HWLOC_FSROOT are honoured, as in every program that uses hwloc, and said in warnings(). Costs a few milliseconds,
  /// on large machines some tens. Throws TopologyError when hwloc finds nothing out.
  static Topology detect();
  /// A machine that need not exist, in hwloc's words from large to small: "pack:2 numa:1 core:8 pu:2", or with logical
  /// domains only "numa:2 core:4 pu:1". At most kMaxSyntheticPus PUs. Throws TopologyError if it is not understood.
  static Topology synthetic(const std::string& description);
  /// A machine saved by `lstopo FILE.xml`. Throws TopologyError if the file cannot be read or is not such a file.
  static Topology xml(const std::string& path);

  /// hwloc's time grows with the square of it.
  static constexpr unsigned kMaxSyntheticPus = 4096;

  /// At least one, ids ascending, in the order of the kernel's node numbers.
  const std::vector<Domain>& domains() const noexcept { return domains_; }
  const std::vector<MemoryNode>& memory_only() const noexcept { return memory_only_; }
  const std::vector<Package>& packages() const noexcept { return packages_; }
  const CacheSizes& caches() const noexcept { return caches_; }
  /// Row a, column b: relative latency from domain a to the memory of domain b, 10 = local. Empty when unknown.
  const std::vector<std::vector<unsigned>>& distances() const noexcept { return distances_; }

  /// True when CPU and node numbers are those of this machine, so that binding means something.
  bool is_this_system() const noexcept { return this_system_; }
  /// Where the description came from: "this machine", "synthetic 'STR'", "file 'PATH'".
  const std::string& source() const noexcept { return source_; }
  /// This machine lets threads be bound / memory be placed (tried when detected). False for any other machine.
  bool can_bind_threads() const noexcept { return bind_threads_; }
  bool can_bind_memory() const noexcept { return bind_memory_; }

  /// Cores and PUs (hardware threads) of all domains, that is, those this process may use.
  unsigned allowed_cores() const noexcept;
  unsigned allowed_pus() const noexcept;
  /// The PUs of all domains, ascending.
  std::vector<unsigned> pus() const;
  /// CPUs' worth of time that the control group grants (cpu.max), 0 if unlimited or unknown.
  double cpu_quota() const noexcept { return cpu_quota_; }
  /// Domain that owns the PU, -1 if none does.
  int domain_of_pu(unsigned pu) const noexcept;
  /// Domain whose memory comes from the kernel's node, -1 if none does.
  int domain_of_node(int os_node) const noexcept;

  /// Everything that makes the run worse than the machine could be, each once, for the user and for run.json.
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }
  /// What is worth knowing and nobody's fault: one domain only, a narrowed CPU set, a machine that is not this one.
  const std::vector<std::string>& notes() const noexcept { return notes_; }
  /// One paragraph for people, lines end with '\n'.
  std::string description() const;

 private:
  friend class TopologyReader;
  Topology() = default;

  std::vector<Domain> domains_;
  std::vector<MemoryNode> memory_only_;
  std::vector<Package> packages_;
  CacheSizes caches_;
  std::vector<std::vector<unsigned>> distances_;
  std::string source_;
  bool this_system_ = false;
  bool bind_threads_ = false;
  bool bind_memory_ = false;
  double cpu_quota_ = 0;
  std::vector<std::string> warnings_;
  std::vector<std::string> notes_;
};

}  // namespace orrery
