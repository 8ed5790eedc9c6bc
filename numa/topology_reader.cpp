// The rules that make domains out of NUMA nodes; numa/DESIGN.md says why they are as they are.
#include "numa/topology_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

namespace orrery {
namespace {

hwloc_obj_t node_at(hwloc_topology_t topology, unsigned index) {
  return hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, index);
}

std::vector<hwloc_obj_t> all_nodes(hwloc_topology_t topology) {
  std::vector<hwloc_obj_t> nodes;
  for (hwloc_obj_t node = node_at(topology, 0); node != nullptr; node = node->next_cousin) nodes.push_back(node);
  return nodes;
}

void add_once(std::vector<std::string>& list, std::string text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

std::uint64_t cache_size(hwloc_obj_t cache) { return cache == nullptr ? 0 : cache->attr->cache.size; }

void keep_smallest(std::uint64_t& smallest, std::uint64_t size) {
  if (size != 0 && (smallest == 0 || size < smallest)) smallest = size;
}

}  // namespace

namespace detail {

HwlocTopology new_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw TopologyError("hwloc cannot be started");
  HwlocTopology topology(raw);
  // Disallowed parts too: a domain whose memory is disallowed must not vanish together with its cores.
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  return topology;
}

void load(const HwlocTopology& topology, const std::string& source) {
  if (hwloc_topology_load(topology.get()) != 0) {
    throw TopologyError(source + ": hwloc finds nothing out: " + std::strerror(errno));
  }
}

}  // namespace detail

TopologyReader::TopologyReader(hwloc_topology_t topology, std::string source, detail::Bitmap cpus, detail::Bitmap nodes)
    : hwloc_(topology), cpus_(std::move(cpus)), nodes_(std::move(nodes)) {
  result_.source_ = std::move(source);
  result_.this_system_ = hwloc_topology_is_thissystem(topology) != 0;
  const char* backend = hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), "Backend");
  synthetic_ = !result_.this_system_ && backend != nullptr && std::strcmp(backend, "Synthetic") == 0;
}

Topology TopologyReader::read() {
  read_distances();
  read_domains();
  choose_memory_nodes();
  read_memory_only();
  if (result_.domains_.size() == 1) add_note(result_, "one NUMA domain: there is nothing to place");
  if (!result_.this_system_) {
    add_note(result_, "the topology is not this machine's (" + result_.source_ + "): nothing is bound or placed");
  }
  return std::move(result_);
}

void TopologyReader::add_warning(Topology& topology, std::string text) {
  add_once(topology.warnings_, std::move(text));
}

void TopologyReader::add_note(Topology& topology, std::string text) { add_once(topology.notes_, std::move(text)); }

/// A node becomes a domain when it is the first to claim allowed PUs. Several nodes can be local to the same PUs (HBM,
/// CXL): the most specific one goes first, then the one with the lower number, which is the ordinary memory on all
/// known machines.
void TopologyReader::read_domains() {
  std::vector<hwloc_obj_t> nodes = all_nodes(hwloc_);
  std::stable_sort(nodes.begin(), nodes.end(), [](hwloc_obj_t a, hwloc_obj_t b) {
    return std::pair(hwloc_bitmap_weight(a->cpuset), a->os_index) <
           std::pair(hwloc_bitmap_weight(b->cpuset), b->os_index);
  });
  // Claims are made on all PUs, allowed or not: a node whose CPUs are just not ours is neither a domain nor
  // memory-only.
  const detail::Bitmap left(hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(hwloc_)));
  std::vector<std::pair<hwloc_obj_t, detail::Bitmap>> claims;
  for (hwloc_obj_t node : nodes) {
    detail::Bitmap claim(hwloc_bitmap_alloc());
    hwloc_bitmap_and(claim.get(), left.get(), node->cpuset);
    hwloc_bitmap_andnot(left.get(), left.get(), claim.get());
    claims.emplace_back(node, std::move(claim));
  }
  std::stable_sort(claims.begin(), claims.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first->os_index, a.first->logical_index) < std::pair(b.first->os_index, b.first->logical_index);
  });
  // PUs that no node is local to still have to work somewhere.
  if (!claims.empty()) hwloc_bitmap_or(claims.front().second.get(), claims.front().second.get(), left.get());
  for (const auto& [node, claim] : claims) {
    if (hwloc_bitmap_iszero(claim.get())) memory_nodes_.push_back(node);
    hwloc_bitmap_and(claim.get(), claim.get(), cpus_.get());
    if (!hwloc_bitmap_iszero(claim.get())) add_domain(node, claim);
  }
  if (result_.domains_.empty()) throw TopologyError(result_.source_ + ": no CPU that this process may use");
}

void TopologyReader::add_domain(hwloc_obj_t node, const detail::Bitmap& pus) {
  Domain domain;
  domain.id = static_cast<unsigned>(result_.domains_.size());
  domain.os_node = synthetic_ ? -1 : static_cast<int>(node->os_index);
  domain.l3_bytes = l3_share(node->cpuset);
  read_cores(domain, pus.get());
  domain.package = domain.cores.front().package;
  for (const Core& core : domain.cores) {
    if (core.package < 0) continue;
    auto& ids = result_.packages_[static_cast<std::size_t>(core.package)].domains;
    if (std::find(ids.begin(), ids.end(), domain.id) == ids.end()) ids.push_back(domain.id);
  }
  result_.domains_.push_back(std::move(domain));
  domain_nodes_.push_back(node);
}

void TopologyReader::read_cores(Domain& domain, hwloc_const_bitmap_t pus) {
  std::map<hwloc_obj_t, std::size_t> position;
  for (hwloc_obj_t pu = hwloc_get_obj_by_type(hwloc_, HWLOC_OBJ_PU, 0); pu != nullptr; pu = pu->next_cousin) {
    if (!hwloc_bitmap_isset(pus, pu->os_index)) continue;
    hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(hwloc_, HWLOC_OBJ_CORE, pu);
    if (core == nullptr) core = pu;  // no word about cores: each PU counts as one
    const auto [at, fresh] = position.try_emplace(core, domain.cores.size());
    if (fresh) {
      hwloc_obj_t l3 = hwloc_get_ancestor_obj_by_type(hwloc_, HWLOC_OBJ_L3CACHE, pu);
      domain.cores.push_back({{}, package_of(pu), l3 == nullptr ? -1 : static_cast<int>(l3->logical_index)});
    }
    domain.cores[at->second].pus.push_back(pu->os_index);
    read_caches(pu);
  }
  for (Core& core : domain.cores) std::sort(core.pus.begin(), core.pus.end());
}

void TopologyReader::read_caches(hwloc_obj_t pu) {
  keep_smallest(result_.caches_.l1d, cache_size(hwloc_get_ancestor_obj_by_type(hwloc_, HWLOC_OBJ_L1CACHE, pu)));
  keep_smallest(result_.caches_.l2, cache_size(hwloc_get_ancestor_obj_by_type(hwloc_, HWLOC_OBJ_L2CACHE, pu)));
  keep_smallest(result_.caches_.l3, cache_size(hwloc_get_ancestor_obj_by_type(hwloc_, HWLOC_OBJ_L3CACHE, pu)));
}

int TopologyReader::package_of(hwloc_obj_t pu) {
  hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(hwloc_, HWLOC_OBJ_PACKAGE, pu);
  if (package == nullptr) return -1;
  const auto [at, fresh] = package_ids_.try_emplace(package, static_cast<int>(result_.packages_.size()));
  if (fresh) result_.packages_.push_back({static_cast<int>(package->os_index), {}});
  return at->second;
}

/// With sub-NUMA clustering one cache serves several nodes; each is counted the part that belongs to its CPUs.
std::uint64_t TopologyReader::l3_share(hwloc_const_bitmap_t cpus) const {
  std::uint64_t bytes = 0;
  const detail::Bitmap common(hwloc_bitmap_alloc());
  for (hwloc_obj_t l3 = hwloc_get_obj_by_type(hwloc_, HWLOC_OBJ_L3CACHE, 0); l3 != nullptr; l3 = l3->next_cousin) {
    hwloc_bitmap_and(common.get(), cpus, l3->cpuset);
    const int all = hwloc_bitmap_weight(l3->cpuset), here = hwloc_bitmap_weight(common.get());
    if (all > 0) bytes += cache_size(l3) / static_cast<unsigned>(all) * static_cast<unsigned>(here);
  }
  return bytes;
}

void TopologyReader::read_distances() {
  unsigned count = 1;
  hwloc_distances_s* matrix = nullptr;
  if (hwloc_distances_get_by_type(hwloc_, HWLOC_OBJ_NUMANODE, &count, &matrix, HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) !=
          0 ||
      count == 0) {
    return;
  }
  constexpr hwloc_uint64_t kMost = std::numeric_limits<unsigned>::max();
  for (unsigned a = 0; a < matrix->nbobjs; ++a) {
    for (unsigned b = 0; b < matrix->nbobjs; ++b) {
      if (matrix->objs[a] == nullptr || matrix->objs[b] == nullptr) continue;
      latency_[{matrix->objs[a], matrix->objs[b]}] =
          static_cast<unsigned>(std::min<hwloc_uint64_t>(matrix->values[a * matrix->nbobjs + b], kMost));
    }
  }
  hwloc_distances_release(hwloc_, matrix);
}

unsigned TopologyReader::distance(hwloc_obj_t from, hwloc_obj_t to) const {
  const auto found = latency_.find({from, to});
  return found == latency_.end() ? 0 : found->second;
}

bool TopologyReader::usable(hwloc_obj_t node) const {
  return node->attr->numanode.local_memory > 0 && hwloc_bitmap_isset(nodes_.get(), node->os_index);
}

/// A node without memory, or whose memory we may not use, borrows from the nearest that has some.
void TopologyReader::choose_memory_nodes() {
  std::vector<hwloc_obj_t> homes;
  for (Domain& domain : result_.domains_) {
    hwloc_obj_t own = domain_nodes_[domain.id], home = usable(own) ? own : nullptr;
    for (hwloc_obj_t other : all_nodes(hwloc_)) {
      if (usable(own) || !usable(other)) continue;
      if (home == nullptr || distance(own, other) < distance(own, home)) home = other;
    }
    homes.push_back(home);
    if (home != nullptr) domain.memory_bytes = home->attr->numanode.local_memory;
    if (home == nullptr || synthetic_) continue;
    domain.memory_node = static_cast<int>(home->os_index);
    if (home == own) continue;
    add_warning(result_, "domain " + std::to_string(domain.id) + ": node " + std::to_string(own->os_index) +
                             (own->attr->numanode.local_memory == 0 ? " has no memory" : "'s memory may not be used") +
                             "; node " + std::to_string(home->os_index) + "'s is taken");
  }
  const bool known = std::all_of(homes.begin(), homes.end(), [&](hwloc_obj_t home) {
    return home != nullptr && distance(domain_nodes_.front(), home) != 0;
  });
  if (!known && homes.size() > 1) {
    const std::string text = "distances between the domains are not known";
    result_.this_system_ ? add_warning(result_, text) : add_note(result_, text);
  }
  if (!known) return;
  for (hwloc_obj_t from : domain_nodes_) {
    auto& row = result_.distances_.emplace_back();
    for (hwloc_obj_t to : homes) row.push_back(distance(from, to));
  }
}

void TopologyReader::read_memory_only() {
  for (hwloc_obj_t node : memory_nodes_) {
    if (!usable(node)) continue;
    unsigned nearest = 0;
    std::pair<unsigned, bool> best{std::numeric_limits<unsigned>::max(), true};
    for (const Domain& domain : result_.domains_) {
      hwloc_obj_t own = domain_nodes_[domain.id];
      const std::pair<unsigned, bool> score{distance(own, node),
                                            hwloc_bitmap_intersects(own->cpuset, node->cpuset) == 0};
      if (score < best) {
        best = score;
        nearest = domain.id;
      }
    }
    result_.memory_only_.push_back(
        {synthetic_ ? -1 : static_cast<int>(node->os_index), node->attr->numanode.local_memory, nearest});
  }
}

}  // namespace orrery
