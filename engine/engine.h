// The object that owns everything: topology, pins, arenas, options, warnings. No globals: two engines live in one
// process. Construct = ready, destruct = stopped and freed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/access_costs.h"
#include "engine/lending_policy.h"
#include "engine/simd.h"
#include "engine/transport.h"
#include "engine/types.h"
#include "numa/pinning.h"
#include "numa/topology.h"

namespace orrery {

class Arenas;

/// The consistency of tables and the bound on clocks (design section 5).
enum class Consistency { bsp, ssp, essp, async };
std::string to_string(Consistency consistency);

struct EngineOptions {
  unsigned threads = 0;  ///< 0: the cores this process may use
  Consistency consistency = Consistency::bsp;
  Clock staleness = 0;  ///< with bsp it must be 0
  std::uint64_t seed = 1;
  bool plan = true;  ///< learn what table programs access, and serve it by slot (design section 6)
  /// On several nodes: whether units may run on others than their owner's (lending_policy.h); decides no bit.
  Reassign reassign = Reassign::when_it_pays;
  std::string topology;                     ///< synthetic description ("numa:2 core:4 pu:1"); empty: the machine
  std::optional<AccessCosts> access_costs;  ///< what plans decide by; empty: measured
  std::optional<SimdLevel> simd;            ///< empty: the best this processor has
  /// Asked before each body of a parallel_for(), on its thread; what it throws ends the loop. How reading and laying
  /// out, which are such loops and may take minutes, are interrupted. Empty: nothing is asked.
  std::function<void()> before_body;
};

class Engine {
 public:
  /// @throws Error (usage) for options that cannot be had, with the reason. `transport` must outlive the engine; none:
  /// one node.
  explicit Engine(const EngineOptions& options, Transport* transport = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const EngineOptions& options() const noexcept { return options_; }
  const Topology& topology() const noexcept { return topology_; }
  const PinPlan& pins() const noexcept { return pins_; }
  unsigned threads() const noexcept { return threads_; }
  DomainId domains() const noexcept;
  /// See access_costs.h. Cost: the first call in a process measures.
  const AccessCosts& access_costs() const {
    return options_.access_costs ? *options_.access_costs : orrery::access_costs();
  }
  SimdLevel simd() const noexcept { return simd_; }
  /// How far apart clocks may be: the staleness, or no bound for async.
  Clock clock_bound() const noexcept;
  Transport& transport() noexcept { return *transport_; }
  Arenas& arenas() noexcept { return *arenas_; }

  /// Calls body(i) for every i in [0, count), on all threads, in no order. The first exception, of a body or of
  /// EngineOptions::before_body, is rethrown. Not to be called from a unit.
  void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body);
  /// The same as an object, for readers, which know nothing of engines.
  std::function<void(std::size_t, const std::function<void(std::size_t)>&)> parallel_for_function();

  /// Degraded environment or accepted oddity: kept once for each text, for run.json and one line on stderr by whoever
  /// owns the terminal. Any thread.
  void warn(const std::string& text);
  std::vector<std::string> warnings() const;

 private:
  EngineOptions options_;
  Topology topology_;
  PinPlan pins_;
  unsigned threads_;
  SimdLevel simd_;
  SingleNode single_node_;
  Transport* transport_;
  mutable std::mutex warnings_mutex_;
  std::vector<std::string> warnings_;
  std::unique_ptr<Arenas> arenas_;
};

}  // namespace orrery
