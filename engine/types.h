// The words of the design as types: who works (worker, domain, node), how far (clock), and on what (block).
#pragma once

#include <cstdint>
#include <limits>

namespace orrery {

/// How many iterations a worker has finished; updates made in iteration c have timestamp c. Clocks start at 0.
using Clock = std::int64_t;
/// A logical worker, in [0, workers). Results depend on the number of workers, never on threads, domains or nodes.
using WorkerId = std::uint32_t;
/// A column block of the model that is owned by exactly one worker at a time.
using BlockId = std::uint32_t;
/// A NUMA domain of this node, in [0, domains).
using DomainId = std::uint32_t;
/// A rank of the cluster, in [0, nodes).
using NodeId = std::uint32_t;

/// How far apart clocks may be where there is no bound (async).
inline constexpr Clock kNoBound = std::numeric_limits<Clock>::max() / 2;
inline constexpr BlockId kNoBlock = ~BlockId{0};
inline constexpr DomainId kNoDomain = ~DomainId{0};

}  // namespace orrery
