#include "engine/group_exchange.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "engine/assert.h"
#include "engine/wire.h"

namespace orrery {

GroupExchange::GroupExchange(const WorkerMap& map, std::uint32_t groups, BlockId block_count, Clock staleness,
                             ReplicatedBlocks& blocks)
    : map_(map),
      groups_(groups),
      block_count_(block_count),
      staleness_(staleness),
      blocks_(blocks),
      rests_(std::size_t{groups} * block_count, 1) {
  ORRERY_CHECK(groups >= 1 && map.workers() % groups == 0);
}

std::uint32_t GroupExchange::group_of(WorkerId worker) const { return worker / (map_.workers() / groups_); }

bool GroupExchange::is_here(std::uint32_t group) const {
  return group_of(map_.first_worker(map_.this_node())) <= group &&
         group <= group_of(map_.first_worker(map_.this_node() + 1) - 1);
}

// Clock c takes in the gains of clock c - s - 1: those before it were taken in by the clocks before. All workers have
// finished that clock, so its commit is over, and it is the last one that touches them until this clock is finished.
void GroupExchange::block_begins(BlockId block, Clock clock, WorkerId worker, DomainId domain) {
  const std::uint32_t group = group_of(worker);
  rests_[place_of(group, block)] = 0;
  if (staleness_ == 0) return blocks_.copy_to_replica(group, block, domain);
  if (clock == start_) {
    blocks_.copy_to_replica(group, block, domain);
  } else if (const Clock news = clock - staleness_ - 1; news >= start_) {
    const std::vector<Gain>* gains = nullptr;
    {
      const std::lock_guard lock(mutex_);
      gains = &committed_.at(news);
    }
    auto at =
        std::lower_bound(gains->begin(), gains->end(), block, [](const Gain& g, BlockId b) { return g.block < b; });
    for (; at != gains->end() && at->block == block; ++at) {
      if (at->group != group) blocks_.add_to_replica(group, block, at->bytes);
    }
  }
  blocks_.keep_base(group, block);
}

void GroupExchange::block_ends(BlockId block, Clock clock, WorkerId worker) {
  const std::uint32_t group = group_of(worker);
  rests_[place_of(group, block)] = 1;
  Bytes bytes = blocks_.gain(group, block, clock);
  const std::lock_guard lock(mutex_);
  ended_[clock].push_back({block, group, std::move(bytes)});
}

Bytes GroupExchange::pack_block(BlockId block, std::uint32_t group) {
  const bool rests = rests_[place_of(group, block)] != 0;
  if (staleness_ == 0) return rests ? Bytes() : blocks_.pack_replica(group, block, ReplicatedBlocks::Part::replica);
  const Bytes replica = blocks_.pack_replica(group, block, ReplicatedBlocks::Part::replica);
  Bytes bytes;
  put(bytes, std::uint64_t{replica.size()});
  put_all(bytes, std::span<const std::byte>(replica));
  if (!rests) {
    const Bytes base = blocks_.pack_replica(group, block, ReplicatedBlocks::Part::base);
    put_all(bytes, std::span<const std::byte>(base));
  }
  return bytes;
}

void GroupExchange::unpack_block(BlockId block, std::uint32_t group, std::span<const std::byte> bytes) {
  rests_[place_of(group, block)] = 0;
  if (bytes.empty()) return;
  std::span<const std::byte> replica = bytes;
  if (staleness_ > 0) {
    const auto size = WireReader(bytes).take<std::uint64_t>();
    replica = bytes.subspan(sizeof size, size);
    const auto base = bytes.subspan(sizeof size + size);
    if (!base.empty()) blocks_.unpack_replica(group, block, ReplicatedBlocks::Part::base, base);
  }
  blocks_.unpack_replica(group, block, ReplicatedBlocks::Part::replica, replica);
}

Bytes GroupExchange::pack_partial(Clock clock) {
  std::vector<Gain> gains;
  {
    const std::lock_guard lock(mutex_);
    gains = std::move(ended_[clock]);
    ended_.erase(clock);
  }
  std::size_t size = 0;
  for (const Gain& gain : gains) size += gain.bytes.size() + 16;
  Bytes partial;
  partial.reserve(size);
  for (const Gain& gain : gains) {
    put(partial, gain.block);
    put(partial, gain.group);
    put(partial, std::uint64_t{gain.bytes.size()});
    put_all(partial, std::span<const std::byte>(gain.bytes));
  }
  return partial;
}

std::vector<GroupExchange::Gain> GroupExchange::parsed(std::span<const std::span<const std::byte>> partials) {
  std::vector<Gain> gains;
  for (const std::span<const std::byte> partial : partials) {
    for (WireReader in(partial); !in.empty();) {
      Gain& gain = gains.emplace_back();
      gain.block = in.take<BlockId>();
      gain.group = in.take<std::uint32_t>();
      gain.bytes.resize(in.take<std::uint64_t>());
      in.take_all(std::span(gain.bytes));
    }
  }
  std::sort(gains.begin(), gains.end(),
            [](const Gain& a, const Gain& b) { return std::tie(a.block, a.group) < std::tie(b.block, b.group); });
  return gains;
}

void GroupExchange::commit(Clock clock, std::span<const std::span<const std::byte>> partials) {
  std::vector<Gain> gains = parsed(partials);
  ORRERY_CHECK(gains.size() == rests_.size());
  for (const Gain& gain : gains) blocks_.add_to_model(gain.block, gain.bytes);
  if (staleness_ == 0) return;
  const std::lock_guard lock(mutex_);
  committed_.emplace(clock, std::move(gains));
  committed_.erase(clock - staleness_ - 1);  // every replica has begun `clock`, and so taken them in
}

}  // namespace orrery
