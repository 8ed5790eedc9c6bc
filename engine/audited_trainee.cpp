#include "engine/audited_trainee.h"

#include <algorithm>

namespace orrery {
namespace {

constexpr std::uint32_t kMark = 1U << 31;  // in Message::table

}  // namespace

void AuditedTrainee::MarkingOutbox::send(NodeId to, Message message) {
  message.table |= kMark;
  outbox->send(to, std::move(message));
}

AuditedTrainee::AuditedTrainee(Trainee& inner, const Engine& engine, const WorkerMap& map, ContractEvents& checker,
                               std::uint64_t seed)
    : ForwardingTrainee(inner),
      checker_(checker),
      random_(seed, Purpose::simulated_network),
      tables_(engine, map),
      rows_(tables_.add<std::int64_t>({.name = "audit", .rows = kRows, .width = map.workers()})),
      map_(map),
      begun_(map.workers(), -1) {}

Clock AuditedTrainee::clock_bound(Clock engines) const {
  return std::min(ForwardingTrainee::clock_bound(engines), tables_.bound());
}

void AuditedTrainee::connect(Outbox& outbox, Clock start) {
  start_ = start;
  marking_.outbox = &outbox;
  tables_.connect(marking_, start);
  inner().connect(outbox, start);
}

// A unit's part in the checker's table, with body() amid it.
template <class Body>
void AuditedTrainee::audited(const WorkUnit& unit, const UnitContext& context, Body&& body) {
  if (begun_[unit.worker] < unit.clock) {
    begun_[unit.worker] = unit.clock;
    checker_.clock_begins(unit.worker, unit.clock - start_);
  }
  RandomStream draws = random_.stream(unit.clock, (std::uint64_t{unit.step} << 32) + unit.worker);
  for (std::uint32_t row = 0; row < kRows; ++row) read(context, row);
  const auto row = static_cast<std::uint32_t>(draws.below(kRows));
  const auto delta = 1 + static_cast<std::int64_t>(draws.below(100));
  checker_.added(unit.worker, unit.clock - start_, row, delta);
  rows_.add(context, row, unit.worker, delta);
  body();
  read(context, row);
}

void AuditedTrainee::run_unit(const WorkUnit& unit, UnitContext& context) {
  audited(unit, context, [&] { inner().run_unit(unit, context); });
}

// Run elsewhere, its part in the table is had here.
void AuditedTrainee::take_unit(const WorkUnit& unit, std::span<const std::byte> wrote) {
  audited(unit, {.domain = map_.domain_of(unit.worker), .worker = unit.worker, .clock = unit.clock},
          [&] { inner().take_unit(unit, wrote); });
}

void AuditedTrainee::read(const UnitContext& context, std::uint32_t row) {
  checker_.read(context.worker, context.clock - start_, row, rows_.read(context, row));
}

void AuditedTrainee::ended() {
  for (std::uint32_t row = 0; row < kRows; ++row) {
    checker_.ended(map_.this_node(), row, rows_.row(row));
  }
}

void AuditedTrainee::worker_ended(WorkerId worker, Clock clock) {
  checker_.clock_ends(worker, clock - start_);
  tables_.worker_ended(worker, clock);
  inner().worker_ended(worker, clock);
}

void AuditedTrainee::node_ended(Clock clock) {
  tables_.node_ended(clock);
  inner().node_ended(clock);
}

void AuditedTrainee::message_arrived(const Message& message, const ClockTree& clocks) {
  if ((message.table & kMark) == 0) return inner().message_arrived(message, clocks);
  Message unmarked = message;
  unmarked.table &= ~kMark;
  tables_.message_arrived(unmarked, clocks);
}

void AuditedTrainee::clocks_moved(const ClockTree& clocks) {
  tables_.clocks_moved(clocks);
  inner().clocks_moved(clocks);
}

std::size_t AuditedTrainee::settle_parts(Clock clock) {
  own_parts_ = tables_.settle_parts(clock);
  return own_parts_ + inner().settle_parts(clock);
}

void AuditedTrainee::settle(Clock clock, std::size_t part) {
  if (part < own_parts_) return tables_.settle(clock, part);
  inner().settle(clock, part - own_parts_);
}

void AuditedTrainee::commit(Clock clock, std::span<const Bytes> partials) {
  tables_.commit(clock);
  inner().commit(clock, partials);
}

// Both are asked, so that both ask for what they lack at the same time.
bool AuditedTrainee::may_begin(Clock clock) {
  const bool mine = tables_.may_begin(clock);
  return inner().may_begin(clock) && mine;
}

bool AuditedTrainee::may_end(Clock clock) {
  const bool mine = tables_.may_end(clock);
  return inner().may_end(clock) && mine;
}

}  // namespace orrery
