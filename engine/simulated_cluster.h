// A cluster in one process and in virtual time (design section 7): N nodes, each an engine of its own on a thread of
// its own, of which one runs at a time: the one whose clock is the earliest. Messages take as long as their link says;
// units take as long as the cost model says; both are functions of the seed. So a run is repeatable event by event, and
// says how long it would have taken on such a cluster. Or units cost what they take here, which nobody can repeat but
// foretells what a cluster of such machines would do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/transport.h"
#include "engine/types.h"
#include "engine/unit.h"

namespace orrery {

/// Virtual time in seconds.
using VirtualTime = double;

struct SimulationSpec {
  enum class Straggler {
    none,
    slow,     ///< worker 0 is slower all the time
    node,     ///< whatever runs on node 0 is
    burst,    ///< bursts, each of a random worker, one after the other
    powerlaw  ///< every unit is slower by a factor with a power-law tail
  };
  NodeId nodes = 1;
  VirtualTime delay = 1e-3;         ///< of a message, beside its transfer
  VirtualTime jitter = 0;           ///< added to the delay, uniform in [0, jitter): links overtake each other
  double bytes_per_second = 125e6;  ///< of each link
  VirtualTime compute = 10e-3;      ///< of a unit without a straggler
  bool measured = false;            ///< instead: the time that its thread took here
  double spread = 0;                ///< units take compute · (1 ± spread), uniform
  Straggler straggler = Straggler::none;
  double factor = 2;               ///< slow, node, burst: how much slower
  double exponent = 2;             ///< powerlaw: P(factor > x) = x^-exponent
  VirtualTime burst = 0;           ///< length of a burst; 0: ten units
  std::optional<NodeId> lost;      ///< a node that stops answering …
  VirtualTime lost_at = 0;         ///< … at this time
  VirtualTime detected_after = 1;  ///< until the others notice
  std::uint64_t seed = 1;

  /// Reads "nodes:8 delay:1ms jitter:2ms rate:1Gb compute:10ms spread:0.1 straggler:slow:2x lost:3@2s seed:7". Every
  /// word but nodes may be missing; compute:measured takes what units cost here. Times take us, ms, s; rates kb, Mb, Gb
  /// (bits) and KB, MB, GB (bytes) a second.
  /// @throws Error (usage) naming the word.
  static SimulationSpec parse(std::string_view text);
};

/// Who sees what the cluster does: every call with the virtual time, in order of time, never two at once.
class SimulationObserver {
 public:
  virtual ~SimulationObserver() = default;
  virtual void sent(VirtualTime /*time*/, NodeId /*to*/, const Message& /*message*/) {}
  virtual void delivered(VirtualTime /*time*/, NodeId /*to*/, const Message& /*message*/) {}
  virtual void unit_ran(VirtualTime /*begin*/, VirtualTime /*end*/, NodeId /*node*/, const WorkUnit& /*unit*/) {}
};

class SimulatedCluster {
 public:
  explicit SimulatedCluster(const SimulationSpec& spec, SimulationObserver* observer = nullptr);
  ~SimulatedCluster();

  /// The transport of one node; lives as long as the cluster. Engines may be made with it before run().
  Transport& node(NodeId node);

  /// Runs body(node, transport) for every node, each on its own thread, until all have returned. Engines in there must
  /// use the transport and one thread. The first exception, by virtual time, is rethrown.
  void run(const std::function<void(NodeId, Transport&)>& body);
  /// The latest time of any node.
  VirtualTime time() const;
  /// The most that units have cost a node: what is left of time() it has waited.
  VirtualTime busiest() const;
  std::uint64_t bytes_sent() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace orrery
