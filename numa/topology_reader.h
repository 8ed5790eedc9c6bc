// Turns what hwloc found out into the plain values of Topology. Inside numa/ only: the one header that names hwloc.
#pragma once

#include <hwloc.h>

#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "numa/topology.h"

namespace orrery {
namespace detail {

struct FreeTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using HwlocTopology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, FreeTopology>;
using Bitmap = std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, FreeBitmap>;

/// A topology that is set up and not loaded yet. Throws TopologyError.
HwlocTopology new_topology();
void load(const HwlocTopology& topology, const std::string& source);

}  // namespace detail

/// One use: construct, read(), throw away.
class TopologyReader {
 public:
  /// `topology` is loaded and outlives the reader. cpus and nodes are what may be used of it.
  TopologyReader(hwloc_topology_t topology, std::string source, detail::Bitmap cpus, detail::Bitmap nodes);

  Topology read();
  /// This machine, or what the environment puts in its place.
  static Topology read_system();
  static void add_warning(Topology& topology, std::string text);
  static void add_note(Topology& topology, std::string text);
  /// Fills what only a real machine has: quota, offline CPUs, and whether it lets threads and memory be bound.
  static void examine_system(Topology& topology);

 private:
  void read_domains();
  void add_domain(hwloc_obj_t node, const detail::Bitmap& pus);
  void read_cores(Domain& domain, hwloc_const_bitmap_t pus);
  void read_caches(hwloc_obj_t pu);
  int package_of(hwloc_obj_t pu);
  void read_distances();
  void choose_memory_nodes();
  void read_memory_only();
  std::uint64_t l3_share(hwloc_const_bitmap_t cpus) const;
  bool usable(hwloc_obj_t node) const;
  /// Relative latency between two nodes, 0 when unknown.
  unsigned distance(hwloc_obj_t from, hwloc_obj_t to) const;

  hwloc_topology_t hwloc_;
  detail::Bitmap cpus_, nodes_;
  Topology result_;
  std::vector<hwloc_obj_t> domain_nodes_;   // node of each domain
  std::vector<hwloc_obj_t> memory_nodes_;   // nodes without CPUs
  std::map<hwloc_obj_t, int> package_ids_;  // position in packages()
  std::map<std::pair<hwloc_obj_t, hwloc_obj_t>, unsigned> latency_;
  bool synthetic_ = false;
};

}  // namespace orrery
