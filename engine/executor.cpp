#include "engine/executor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <map>
#include <utility>

#include "engine/assert.h"
#include "engine/block_traffic.h"
#include "engine/clock_frame.h"
#include "engine/clock_keeper.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/parallel.h"
#include "engine/ready_lanes.h"
#include "engine/thread_seconds.h"
#include "engine/unit_lending.h"

namespace orrery {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

double seconds_between(SteadyTime from, SteadyTime to) { return std::chrono::duration<double>(to - from).count(); }

constexpr Clock kFarAhead = std::numeric_limits<Clock>::max() / 4;

ClockEvent event_of(ClockEvent::Kind kind) {
  ClockEvent event;
  event.kind = kind;
  return event;
}

}  // namespace

/// Three kinds of shared state, each with one way to touch it:
///   * conditions of units and ends of block chains: atomics in the frames, touched by whoever finishes a unit;
///   * ready units: ReadyLanes, under the mutex of a lane, for a few instructions;
///   * clocks, frames and partial results: ClockKeeper, by the thread that holds the role of processor.
struct Executor::Impl {
  Impl(Engine& e, Schedule& s, Program& p, WorkerId workers, ExecutorOptions o)
      : engine(e),
        schedule(s),
        program(p),
        options(std::move(o)),
        transport(e.transport()),
        here(transport.node()),
        map(workers, transport.nodes(), here, e.domains()),
        bound(p.clock_bound(e.clock_bound())),
        blocks(p, transport),
        lanes(
            e.arenas(), e.domains(), transport.pacer(),
            [this](PendingUnit& unit, UnitCounts& counts, ReadyList& ready) { run_and_finish(unit, counts, ready); },
            [this] { lending.idle(); }),
        clocks(map, s, p, blocks,
               {options.start, bound, options.should_stop, [this](std::uint64_t run) { lanes.finish(run); }}),
        lending(p, blocks, lanes, map, transport.pacer(), e.threads(), e.options().reassign,
                {[this](PendingUnit& unit) { begin(unit); },
                 [this](PendingUnit& unit, ReadyList& ready) {
                   end(unit);
                   finish(unit, ready);
                 },
                 [this] { return clocks.tree().node(here); }}),
        owners(kAssertLevel >= 2 ? std::size_t{s.blocks()} * s.groups() : 0),
        origin(std::chrono::steady_clock::now()) {}

  // --- units ---------------------------------------------------------------------------------------------------------

  void run_and_finish(PendingUnit& pending, UnitCounts& counts, ReadyList& ready) {
    try {
      if (pending.is_settlement) {
        settle(pending, counts, ready);
      } else if (pending.is_guest) {
        lending.run_guest(pending);
      } else {
        lending.lend();  // what waits behind this one
        run_unit(pending, counts);
        finish(pending, ready);
      }
    } catch (...) {
      // Every exception of an algorithm comes here and is rethrown by run(): nothing is swallowed.
      fail(std::current_exception());
      ready.clear();
    }
  }

  void settle(PendingUnit& part, UnitCounts& counts, ReadyList& ready) {
    const auto start = std::chrono::steady_clock::now();
    program.settle(part.unit.clock, part.unit.index);
    counts.busy_seconds += seconds_between(start, std::chrono::steady_clock::now());
    if (clocks.settled_part()) clocks.post(event_of(ClockEvent::Kind::settled), ready);
  }

  // What comes before a unit, wherever it runs, and after it.
  void begin(const PendingUnit& pending) {
    const WorkUnit& unit = pending.unit;
    ORRERY_CHECK(unit.clock - clocks.tree().cluster() <= bound);
    claim(unit);
    UnitContext context{pending.domain, unit.worker, unit.clock};
    for (std::size_t b = 0; b < unit.blocks.size(); ++b) {
      if (pending.visits[b].first) program.block_begins(unit.blocks[b], unit.clock, context);
    }
  }

  void end(const PendingUnit& pending) {
    const WorkUnit& unit = pending.unit;
    UnitContext context{pending.domain, unit.worker, unit.clock};
    for (std::size_t b = 0; b < unit.blocks.size(); ++b) {
      if (pending.visits[b].last) program.block_ends(unit.blocks[b], unit.clock, context);
    }
    release(unit);
  }

  void run_unit(PendingUnit& pending, UnitCounts& counts) {
    const WorkUnit& unit = pending.unit;
    UnitContext context{pending.domain, unit.worker, unit.clock};
    const Clock slowest = clocks.tree().cluster();
    Pacer* const pacer = transport.pacer();
    const double before = pacer == nullptr ? 0 : thread_seconds();
    const auto start = std::chrono::steady_clock::now();
    if (!pending.is_begun) begin(pending);
    program.run_unit(unit, context);
    end(pending);
    const auto end = std::chrono::steady_clock::now();
    const double busy = seconds_between(start, end);
    lending.unit_ran(pacer != nullptr ? pacer->unit_ran(unit, thread_seconds() - before) : busy);
    ++counts.units;
    counts.busy_seconds += busy;
    counts.staleness_sum += static_cast<double>(unit.clock - slowest);
    counts.staleness_max = std::max(counts.staleness_max, unit.clock - slowest);
    if (options.record_trace) {
      const std::lock_guard lock(trace_mutex);
      trace.push_back({unit.clock, unit.index, unit.worker, pending.domain, seconds_between(origin, start),
                       seconds_between(origin, end)});
    }
  }

  // Owner tags, on heavy assertions only: no two units in flight own the same block.
  void claim(const WorkUnit& unit) {
    if constexpr (kAssertLevel >= 2) {
      for (const BlockId block : unit.blocks) ORRERY_CHECK(owner(unit, block).exchange(unit.worker + 1) == 0);
    }
  }
  void release(const WorkUnit& unit) {
    if constexpr (kAssertLevel >= 2) {
      for (const BlockId block : unit.blocks) ORRERY_CHECK(owner(unit, block).exchange(0) == unit.worker + 1);
    }
  }
  std::atomic<std::uint32_t>& owner(const WorkUnit& unit, BlockId block) {
    return owners[std::size_t{unit.group} * schedule.blocks() + block];
  }

  void finish(PendingUnit& pending, ReadyList& ready) {
    WorkerTurn& turn = *pending.turn;
    const WorkerId worker = turn.worker;
    const Clock clock = pending.unit.clock;
    for (std::size_t b = 0; b < pending.unit.blocks.size(); ++b) {
      if (Visit* next = pending.visits[b].next.exchange(Visit::done())) blocks.hand_over(*next, ready);
    }
    if (pending.next_of_worker != nullptr) satisfy(*pending.next_of_worker, ready);
    // The frame may be gone as soon as the last unit of the clock has ticked: nothing of it is touched after this.
    if (turn.remaining.fetch_sub(1) != 1) return;
    program.worker_ended(worker, clock);
    ClockEvent event = event_of(ClockEvent::Kind::tick);
    event.worker = worker;
    event.clock = clock;
    clocks.post(std::move(event), ready);
  }

  // --- failure -------------------------------------------------------------------------------------------------------

  void fail(std::exception_ptr error) {
    bool is_first = false;
    {
      const std::lock_guard lock(failure_mutex);
      if (first_failure == nullptr) {
        first_failure = error;
        is_first = true;
      }
    }
    failed.store(true);
    lanes.cancel();
    {
      const std::lock_guard lock(exchange_mutex);
      exchange_arrived.notify_all();
    }
    if (is_first && map.nodes() > 1) tell_failure(error);
  }

  void tell_failure(const std::exception_ptr& error) {
    Message message;
    message.kind = Message::Kind::failed;
    std::string text = "unknown exception";
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      text = e.what();
    } catch (...) {
      text = "an exception that is no std::exception";
    }
    message.payload.resize(text.size());
    std::transform(text.begin(), text.end(), message.payload.begin(), [](char c) { return static_cast<std::byte>(c); });
    blocks.send_to_others(message);
  }

  void rethrow_failure() {
    const std::lock_guard lock(failure_mutex);
    if (first_failure != nullptr) std::rethrow_exception(first_failure);
  }

  // --- the calling thread --------------------------------------------------------------------------------------------

  Clock run(Clock until) {
    rethrow_failure();
    ORRERY_CHECK(until >= clocks.tree().cluster() && until < kFarAhead);
    // Nobody begins before all have ended the run before: what one reads between runs nobody changes.
    if (map.nodes() > 1) exchange(std::vector<Bytes>(map.nodes()));
    const std::uint64_t number = lanes.begin();
    const auto start = std::chrono::steady_clock::now();
    engine.arenas().join([&] {
      begin_on_caller(until, number);
      try {
        lanes.drain();
      } catch (...) {
        fail(std::current_exception());  // waiting ended in an error (Pacer); rethrown below, the executor is spent
      }
    });
    wall_thread_seconds += seconds_between(start, std::chrono::steady_clock::now()) * engine.threads();
    rethrow_failure();
    // Nobody leaves before all have what they need of it: the executor may be gone after this.
    if (map.nodes() > 1) exchange(std::vector<Bytes>(map.nodes()));
    return clocks.tree().cluster();
  }

  void begin_on_caller(Clock until, std::uint64_t number) {
    ReadyList ready;
    try {
      post_begin(until, number, ready);
    } catch (...) {
      fail(std::current_exception());  // rethrown by run()
      ready.clear();
    }
    lanes.publish(ready, 0);
  }

  void post_begin(Clock until, std::uint64_t number, ReadyList& ready) {
    ClockEvent event = event_of(ClockEvent::Kind::begin);
    event.clock = until;
    event.run = number;
    clocks.post(std::move(event), ready);
  }

  void replay(Clock until, std::span<const UnitRecord> records) {
    ORRERY_CHECK(map.nodes() == 1);
    ReadyList ready;
    UnitCounts counts;
    post_begin(until, 0, ready);
    for (const UnitRecord& record : records) {
      ClockFrame* frame = clocks.frame_of(record.clock);
      PendingUnit* pending = frame == nullptr ? nullptr : frame->find(record.index);
      const auto place = std::find(ready.begin(), ready.end(), pending);
      if (pending == nullptr || place == ready.end()) {
        throw Error(ErrorKind::internal, "replay: unit " + std::to_string(record.index) + " of clock " +
                                             std::to_string(record.clock) + " is not ready at its turn");
      }
      ready.erase(place);
      run_unit(*pending, counts);
      finish(*pending, ready);
      settle_now(counts, ready);
    }
    if (!clocks.run_is_over()) throw Error(ErrorKind::internal, "replay: the trace ends before the run does");
  }

  void settle_now(UnitCounts& counts, ReadyList& ready) {
    for (;;) {
      const auto part = std::find_if(ready.begin(), ready.end(), [](const PendingUnit* p) { return p->is_settlement; });
      if (part == ready.end()) return;
      PendingUnit& found = **part;
      ready.erase(part);
      settle(found, counts, ready);
    }
  }

  std::vector<Bytes> exchange(std::vector<Bytes> to) {
    const Clock number = exchange_number++;
    for (NodeId node = 0; node < map.nodes(); ++node) {
      if (node == here) continue;
      Message message;
      message.kind = Message::Kind::exchange;
      message.clock = number;
      message.payload = std::move(to[node]);
      blocks.send(node, std::move(message));
    }
    std::unique_lock lock(exchange_mutex);
    auto& pieces = exchanged[number];
    pieces[here] = std::move(to[here]);
    const auto all_are_here = [&] { return pieces.size() == map.nodes() || failed.load(); };
    if (Pacer* pacer = transport.pacer()) {
      lock.unlock();  // nobody else runs while `ready` is asked
      pacer->wait(all_are_here);
      lock.lock();
    }
    exchange_arrived.wait(lock, all_are_here);
    if (failed.load()) {
      lock.unlock();
      rethrow_failure();
    }
    std::vector<Bytes> all;
    for (auto& [node, bytes] : pieces) all.push_back(std::move(bytes));
    exchanged.erase(number);
    return all;
  }

  // --- messages ------------------------------------------------------------------------------------------------------

  void receive(Message&& message, ReadyList& ready) {
    switch (message.kind) {
      case Message::Kind::block:
        blocks.receive(std::move(message), ready);
        return;
      case Message::Kind::clock: {
        ClockEvent event = event_of(ClockEvent::Kind::node_clock);
        event.node = message.from;
        event.clock = message.clock;
        clocks.post(std::move(event), ready);
        return;
      }
      case Message::Kind::partial:
      case Message::Kind::subscribe:
      case Message::Kind::update:
      case Message::Kind::pull:
      case Message::Kind::rows: {
        ClockEvent event = event_of(ClockEvent::Kind::message);
        event.message = std::move(message);
        clocks.post(std::move(event), ready);
        return;
      }
      case Message::Kind::offer:
      case Message::Kind::lend:
      case Message::Kind::ask_back:
      case Message::Kind::give_back:
      case Message::Kind::result:
        lending.receive(std::move(message), ready);
        return;
      case Message::Kind::exchange: {
        const std::lock_guard lock(exchange_mutex);
        exchanged[message.clock][message.from] = std::move(message.payload);
        exchange_arrived.notify_all();
        return;
      }
      case Message::Kind::failed: {
        std::string text = "node " + std::to_string(message.from) + " failed: ";
        for (const std::byte byte : message.payload) text += static_cast<char>(byte);
        throw Error(ErrorKind::lost, text);
      }
    }
  }

  Engine& engine;
  Schedule& schedule;
  Program& program;
  const ExecutorOptions options;
  Transport& transport;
  const NodeId here;
  const WorkerMap map;
  const Clock bound;  ///< how far apart clocks may be
  BlockTraffic blocks;
  ReadyLanes lanes;
  ClockKeeper clocks;
  UnitLending lending;
  std::vector<std::atomic<std::uint32_t>> owners;

  std::atomic<bool> failed{false};
  std::mutex failure_mutex;
  std::exception_ptr first_failure;

  double wall_thread_seconds = 0;
  SteadyTime origin;
  std::mutex trace_mutex;
  std::vector<UnitRecord> trace;

  std::mutex exchange_mutex;
  std::condition_variable exchange_arrived;
  std::map<Clock, std::map<NodeId, Bytes>> exchanged;
  Clock exchange_number = 0;
};

Executor::Executor(Engine& engine, Schedule& schedule, Program& program, WorkerId workers, ExecutorOptions options)
    : impl_(std::make_unique<Impl>(engine, schedule, program, workers, std::move(options))) {
  impl_->program.connect(impl_->blocks, impl_->options.start);
  impl_->transport.attach(*this);
}

Executor::~Executor() { impl_->transport.detach(); }

Clock Executor::run(Clock until) { return impl_->run(until); }

void Executor::replay(Clock until, std::span<const UnitRecord> trace) { impl_->replay(until, trace); }

std::vector<Bytes> Executor::exchange(Bytes mine) {
  return exchange_each(std::vector<Bytes>(impl_->map.nodes(), mine));
}

std::vector<Bytes> Executor::exchange_each(std::vector<Bytes> to) {
  ORRERY_CHECK(to.size() == impl_->map.nodes());
  return impl_->exchange(std::move(to));
}

Clock Executor::clock() const noexcept { return impl_->clocks.tree().cluster(); }

const WorkerMap& Executor::map() const noexcept { return impl_->map; }

ExecutorStats Executor::stats() const {
  const UnitCounts counts = impl_->lanes.counts();
  ExecutorStats all;
  all.units = counts.units;
  all.busy_seconds = counts.busy_seconds;
  all.staleness_sum = counts.staleness_sum;
  all.staleness_max = counts.staleness_max;
  all.thread_seconds = impl_->wall_thread_seconds;
  all.bytes_sent = impl_->blocks.bytes_sent();
  all.units_lent = impl_->lending.lent();
  return all;
}

std::vector<UnitRecord> Executor::trace() const {
  const std::lock_guard lock(impl_->trace_mutex);
  return impl_->trace;
}

bool Executor::holds_block(std::uint32_t group, BlockId block) const {
  const ChainEnd& end = impl_->clocks.chain_end(group, block);
  return end.visited && end.node == impl_->here;
}

void Executor::receive(Message&& message) {
  ReadyList ready;
  try {
    impl_->receive(std::move(message), ready);
  } catch (...) {
    impl_->fail(std::current_exception());  // rethrown by run() or exchange()
    ready.clear();
  }
  impl_->lanes.publish(ready, ReadyLanes::kNoLane);
}

}  // namespace orrery
