#include "engine/profiled_trainee.h"

#include <type_traits>

namespace orrery {
namespace {

// Clocks move after every unit; most of those calls have nothing to do.
constexpr double kShortest = 1e-6;

TableStore* tables_of(Trainee& trainee) {
  auto* source = dynamic_cast<ShowsTables*>(&trainee);
  return source == nullptr ? nullptr : &source->shown_tables();
}

}  // namespace

ProfiledTrainee::ProfiledTrainee(Trainee& inner, const ProfileLimits& limits)
    : ForwardingTrainee(inner),
      tables_(tables_of(inner)),
      blocks_(dynamic_cast<const ShowsBlocks*>(&inner)),
      limits_(limits),
      origin_(std::chrono::steady_clock::now()) {}

double ProfiledTrainee::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - origin_).count();
}

template <class Body>
auto ProfiledTrainee::timed(PhaseRecord record, std::span<const BlockId> blocks, Body&& body) {
  record.start = now();
  const auto ended = [&] {
    record.end = now();
    keep(record, blocks);
  };
  if constexpr (std::is_void_v<decltype(body())>) {
    body();
    ended();
  } else {
    auto result = body();
    ended();
    return result;
  }
}

void ProfiledTrainee::keep(PhaseRecord record, std::span<const BlockId> blocks) {
  if (record.phase == Phase::commit && record.end - record.start < kShortest) return;
  const std::lock_guard lock(mutex_);
  if (trace_.records.size() == limits_.phases) {
    ++trace_.dropped;
    return;
  }
  record.first_block = trace_.blocks.size();
  record.blocks = blocks.size();
  trace_.blocks.insert(trace_.blocks.end(), blocks.begin(), blocks.end());
  trace_.records.push_back(record);
}

void ProfiledTrainee::count(Clock clock) {
  if (tables_ == nullptr) return;
  TableCounts counts{.clock = clock, .accesses = {}, .staleness = {}};
  for (const auto& table : tables_->all()) {
    counts.accesses.push_back(table->accesses());
    counts.staleness.push_back(table->observed());
  }
  trace_.counts.push_back(std::move(counts));
}

void ProfiledTrainee::run_unit(const WorkUnit& unit, UnitContext& context) {
  const PhaseRecord record{.phase = Phase::compute,
                           .worker = unit.worker,
                           .domain = context.domain,
                           .clock = unit.clock,
                           .group = unit.group};
  timed(record, unit.blocks, [&] { inner().run_unit(unit, context); });
}

void ProfiledTrainee::worker_ended(WorkerId worker, Clock clock) {
  timed({.phase = Phase::flush, .worker = worker, .clock = clock}, {}, [&] { inner().worker_ended(worker, clock); });
}

void ProfiledTrainee::clocks_moved(const ClockTree& clocks) {
  timed({.phase = Phase::commit, .clock = clocks.cluster()}, {}, [&] { inner().clocks_moved(clocks); });
}

Bytes ProfiledTrainee::pack_partial(Clock clock) {
  return timed({.phase = Phase::commit, .clock = clock}, {}, [&] { return inner().pack_partial(clock); });
}

std::size_t ProfiledTrainee::settle_parts(Clock clock) {
  return timed({.phase = Phase::settle, .clock = clock}, {}, [&] { return inner().settle_parts(clock); });
}

void ProfiledTrainee::settle(Clock clock, std::size_t part) {
  timed({.phase = Phase::settle, .clock = clock}, {}, [&] { inner().settle(clock, part); });
}

void ProfiledTrainee::commit(Clock clock, std::span<const Bytes> partials) {
  timed({.phase = Phase::commit, .clock = clock}, {}, [&] { inner().commit(clock, partials); });
  committed_ = clock + 1;
}

void ProfiledTrainee::connect(Outbox& outbox, Clock start) {
  start_ = start;
  committed_ = start;
  inner().connect(outbox, start);
  if (tables_ != nullptr) tables_->record({start, start + limits_.recorded_clocks, limits_.recorded_bytes});
  count(start);
}

Evaluation ProfiledTrainee::evaluate(Engine& engine, bool exact) {
  if (trace_.counts.empty() || trace_.counts.back().clock != committed_) count(committed_);
  return timed({.phase = Phase::evaluate, .clock = committed_}, {}, [&] { return inner().evaluate(engine, exact); });
}

}  // namespace orrery
