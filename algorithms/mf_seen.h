// Who rated what, for a model that recommends what its user has not seen. Of several nodes each knows it of its own
// rows; the first one collects the lists of the others when the training is over.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/mf_layout.h"
#include "engine/collective.h"

namespace orrery::mf {

/// By stripe that is on another node: the items (external ids) of its rows, one row after the other, ascending in each.
/// 4 bytes a rating.
using FarSeen = std::vector<std::vector<std::int32_t>>;

/// What the first node gets; empty at the others. Collective.
FarSeen collect_seen(const CellGrid& grid, const Collective& nodes);

/// The items of each user, both by external ids, one user after the other as `begin` says (users + 1 entries),
/// ascending in each. Scratch: 8 bytes a rating of one stripe a thread.
std::vector<std::int32_t> seen_items(const CellGrid& grid, const FarSeen& far, std::span<const std::int64_t> begin,
                                     const ParallelFor& parallel);

}  // namespace orrery::mf
