#include "engine/engine.h"

#include <algorithm>
#include <limits>

#include "engine/error.h"
#include "engine/parallel.h"

namespace orrery {
namespace {

EngineOptions checked(EngineOptions options) {
  if (options.staleness < 0) throw usage_error("staleness: " + std::to_string(options.staleness) + " is below 0");
  if (options.consistency == Consistency::bsp && options.staleness > 0) {
    throw usage_error("consistency bsp is staleness 0; got staleness " + std::to_string(options.staleness) +
                      " (use ssp or essp)");
  }
  constexpr unsigned kMostThreads = 4096;
  if (options.threads > kMostThreads) {
    throw usage_error("threads: " + std::to_string(options.threads) + " is above " + std::to_string(kMostThreads));
  }
  return options;
}

Topology topology_of(const EngineOptions& options) {
  if (options.topology.empty()) return Topology::detect();
  try {
    return Topology::synthetic(options.topology);
  } catch (const TopologyError& error) {
    throw usage_error("topology: " + std::string(error.what()));
  }
}

// On a described machine "all cores" are the real one's: a description adds domains, not processors.
unsigned threads_of(const EngineOptions& options) {
  return options.threads != 0 ? options.threads : std::max(1U, Topology::detect().allowed_pus());
}

}  // namespace

std::string to_string(Consistency consistency) {
  switch (consistency) {
    case Consistency::bsp:
      return "bsp";
    case Consistency::ssp:
      return "ssp";
    case Consistency::essp:
      return "essp";
    case Consistency::async:
      return "async";
  }
  return "unknown";
}

Engine::Engine(const EngineOptions& options, Transport* transport)
    : options_(checked(options)),
      topology_(topology_of(options_)),
      threads_(threads_of(options_)),
      simd_(options_.simd ? resolve_simd(to_string(*options_.simd)) : detect_simd()),
      transport_(transport != nullptr ? transport : &single_node_) {
  pins_ = plan_pins(topology_, threads_);
  for (const std::string& warning : topology_.warnings()) warn(warning);
  arenas_ = std::make_unique<Arenas>(topology_, pins_, [this](const std::string& text) { warn(text); });
}

Engine::~Engine() = default;

DomainId Engine::domains() const noexcept { return static_cast<DomainId>(topology_.domains().size()); }

Clock Engine::clock_bound() const noexcept {
  return options_.consistency == Consistency::async ? kNoBound : options_.staleness;
}

void Engine::parallel_for(std::size_t count, const std::function<void(std::size_t)>& body) {
  if (!options_.before_body) return arenas_->parallel_for(count, body);
  arenas_->parallel_for(count, [&](std::size_t i) {
    options_.before_body();
    body(i);
  });
}

std::function<void(std::size_t, const std::function<void(std::size_t)>&)> Engine::parallel_for_function() {
  return [this](std::size_t count, const std::function<void(std::size_t)>& body) { parallel_for(count, body); };
}

void Engine::warn(const std::string& text) {
  const std::lock_guard lock(warnings_mutex_);
  if (std::find(warnings_.begin(), warnings_.end(), text) == warnings_.end()) warnings_.push_back(text);
}

std::vector<std::string> Engine::warnings() const {
  const std::lock_guard lock(warnings_mutex_);
  return warnings_;
}

}  // namespace orrery
