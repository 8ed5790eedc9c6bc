#include "engine/executor.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <limits>
#include <map>
#include <utility>

#include "engine/assert.h"
#include "engine/clock_frame.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/parallel.h"
#include "engine/ready_queue.h"

namespace orrery {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

double seconds_between(SteadyTime from, SteadyTime to) { return std::chrono::duration<double>(to - from).count(); }

constexpr Clock kFarAhead = std::numeric_limits<Clock>::max() / 4;

}  // namespace

/// Three kinds of shared state, each with one way to touch it:
///   * conditions of units and ends of block chains: atomics in the frames, touched by whoever finishes a unit;
///   * the ready queue of a lane: under that lane's mutex, for a few instructions;
///   * clocks, frames and partial results: only by the thread that holds the role of processor. Others leave it an
///   event
///     and go on; so a long commit() keeps nobody waiting.
struct Executor::Impl {
  struct alignas(64) LaneState {
    explicit LaneState(const Arenas::Lane& lane) : threads(lane.threads), queue(lane.domains.size()) {}
    std::mutex mutex;
    std::condition_variable wake;  ///< for the calling thread in run(), which serves lane 0
    const unsigned threads;
    unsigned active = 0;  ///< threads that drain; never above `threads`
    bool caller_waits = false;
    ReadyQueue queue;
    ExecutorStats stats;                 ///< handed in by drains when they end
    std::atomic<std::uint32_t> hint{0};  ///< queue size, for spinning without the lock
  };

  struct Event {
    enum class Kind { begin, tick, node_clock, partial } kind = Kind::begin;
    WorkerId worker = 0;
    NodeId node = 0;
    Clock clock = 0;  ///< begin: the clock to run to
    Bytes payload;
  };

  Impl(Engine& e, Schedule& s, Program& p, WorkerId workers, ExecutorOptions o)
      : engine(e),
        schedule(s),
        program(p),
        options(std::move(o)),
        transport(e.transport()),
        here(transport.node()),
        map(workers, transport.nodes(), here, e.domains()),
        tree(map, options.start),
        next_open(options.start),
        node_done(options.start),
        committed(options.start),
        limit(options.start) {
    for (const auto& lane : engine.arenas().lanes()) lanes.emplace_back(lane);
    place_in_lane.resize(engine.domains());
    for (const auto& lane : engine.arenas().lanes()) {
      for (std::size_t i = 0; i < lane.domains.size(); ++i) place_in_lane[lane.domains[i]] = i;
    }
    chain_ends.resize(std::size_t{schedule.blocks()} * groups_of_schedule());
    owners = std::vector<std::atomic<std::uint32_t>>(kAssertLevel >= 2 ? chain_ends.size() : 0);
    origin = std::chrono::steady_clock::now();
  }

  std::size_t groups_of_schedule() const { return schedule.groups(); }

  // --- ready units ---------------------------------------------------------------------------------------------------

  using ReadyList = std::vector<PendingUnit*>;

  static void satisfy(PendingUnit& pending, ReadyList& ready) {
    if (pending.missing.fetch_sub(1) == 1) ready.push_back(&pending);
  }

  ReadyQueue::Entry entry_of(PendingUnit* pending) const {
    return {pending->unit.clock, pending->unit.step, pending->unit.worker, pending};
  }

  std::size_t lane_of(const PendingUnit& pending) const { return engine.arenas().lane_of(pending.domain); }

  // Queues units and sees to it that enough threads of their lanes are awake. `own` is the lane that the caller drains
  // (it will look at the queue itself next), or none. A unit is not touched any more once the queue that holds it is
  // unlocked: it may have run by then, and its whole frame may be gone.
  void publish(ReadyList& ready, std::size_t own) {
    for (std::size_t l = 0; l < lanes.size() && !ready.empty(); ++l) {
      const auto of_lane =
          std::partition(ready.begin(), ready.end(), [&](const PendingUnit* unit) { return lane_of(*unit) != l; });
      if (of_lane == ready.end()) continue;
      unsigned wake = 0;
      {
        LaneState& lane = lanes[l];
        const std::lock_guard lock(lane.mutex);
        if (failed.load()) break;  // run() may be on its way out: no new thread may start
        for (auto unit = of_lane; unit != ready.end(); ++unit) {
          lane.queue.push(place_in_lane[(*unit)->domain], entry_of(*unit));
        }
        wake = wake_for(l, l == own ? 1 : 0);
      }
      ready.erase(of_lane, ready.end());
      for (unsigned i = 0; i < wake; ++i) engine.arenas().enqueue(l, [this, l] { drain_as_task(l); });
    }
    ready.clear();
  }

  // Under the lane's mutex: how many more threads the queue can feed, `busy_soon` of which is the caller. The calling
  // thread of run() is preferred: it is there already.
  unsigned wake_for(std::size_t l, std::size_t busy_soon) {
    LaneState& lane = lanes[l];
    lane.hint.store(static_cast<std::uint32_t>(lane.queue.size()));
    std::size_t want = lane.queue.size() - std::min(lane.queue.size(), busy_soon);
    if (l == 0 && lane.caller_waits && want > 0) {
      lane.caller_waits = false;
      caller_is_active = true;
      ++lane.active;
      lane.wake.notify_all();
      --want;
    }
    const auto spare = lane.threads - lane.active - ((l == 0 && !caller_is_active) ? 1U : 0U);
    const auto wake = static_cast<unsigned>(std::min<std::size_t>(want, spare));
    lane.active += wake;
    return wake;
  }

  PendingUnit* take(LaneState& lane) {
    const std::lock_guard lock(lane.mutex);
    PendingUnit* pending = failed.load() ? nullptr : lane.queue.pop();
    lane.hint.store(static_cast<std::uint32_t>(lane.queue.size()));
    return pending;
  }

  // --- running units -------------------------------------------------------------------------------------------------

  // A thread of a lane other than the calling one: works while there is work and goes.
  void drain_as_task(std::size_t l) {
    LaneState& lane = lanes[l];
    ExecutorStats stats;
    ReadyList ready;
    for (;;) {
      while (PendingUnit* pending = take(lane)) run_and_finish(*pending, l, stats, ready);
      const std::lock_guard lock(lane.mutex);
      if (lane.queue.size() != 0 && !failed.load()) continue;  // came between the last look and now
      add(lane.stats, stats);
      --lane.active;
      if (lane.active == 0) lane.wake.notify_all();
      return;
    }
  }

  static void add(ExecutorStats& into, const ExecutorStats& from) {
    into.units += from.units;
    into.busy_seconds += from.busy_seconds;
    into.staleness_sum += from.staleness_sum;
    into.staleness_max = std::max(into.staleness_max, from.staleness_max);
  }

  void run_and_finish(PendingUnit& pending, std::size_t lane, ExecutorStats& stats, ReadyList& ready) {
    try {
      run_unit(pending, stats);
      finish(pending, ready);
    } catch (...) {
      // Every exception of an algorithm comes here and is rethrown by run(): nothing is swallowed.
      fail(std::current_exception());
      ready.clear();
    }
    publish(ready, lane);
  }

  void run_unit(PendingUnit& pending, ExecutorStats& stats) {
    const WorkUnit& unit = pending.unit;
    UnitContext context{pending.domain};
    const Clock slowest = tree.cluster();
    ORRERY_CHECK(unit.clock - slowest <= engine.clock_bound());
    const auto start = std::chrono::steady_clock::now();
    claim(unit);
    for (std::size_t b = 0; b < unit.blocks.size(); ++b) {
      if (pending.visits[b].first) program.block_begins(unit.blocks[b], unit.clock, context);
    }
    program.run_unit(unit, context);
    for (std::size_t b = 0; b < unit.blocks.size(); ++b) {
      if (pending.visits[b].last) program.block_ends(unit.blocks[b], unit.clock, context);
    }
    release(unit);
    const auto end = std::chrono::steady_clock::now();
    ++stats.units;
    stats.busy_seconds += seconds_between(start, end);
    stats.staleness_sum += static_cast<double>(unit.clock - slowest);
    stats.staleness_max = std::max(stats.staleness_max, unit.clock - slowest);
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
      if (Visit* next = pending.visits[b].next.exchange(Visit::done())) hand_over(*next, ready);
    }
    if (pending.next_of_worker != nullptr) satisfy(*pending.next_of_worker, ready);
    // The frame may be gone as soon as the last unit of the clock has ticked: nothing of it is touched after this.
    if (turn.remaining.fetch_sub(1) == 1) {
      Event event;
      event.kind = Event::Kind::tick;
      event.worker = worker;
      event.clock = clock;
      post(std::move(event), ready);
    }
  }

  // The block lies here and nobody owns it: give it to the next visitor, here or on another node.
  void hand_over(Visit& visit, ReadyList& ready) {
    if (visit.unit != nullptr) {
      satisfy(*visit.unit, ready);
      return;
    }
    Message message;
    message.kind = Message::Kind::block;
    message.clock = visit.clock;
    message.block = visit.block;
    message.group = visit.group;
    message.visit = visit.number;
    message.payload = program.pack_block(visit.block);
    send(visit.node, std::move(message));
  }

  void send(NodeId to, Message message) {
    bytes_sent.fetch_add(message.payload.size(), std::memory_order_relaxed);  // relaxed: a counter, read between runs
    transport.send(to, std::move(message));
  }

  void send_to_others(const Message& message) {
    for (NodeId n = 0; n < map.nodes(); ++n) {
      if (n != here) send(n, message);
    }
  }

  // --- clocks: the processor role ------------------------------------------------------------------------------------

  void post(Event event, ReadyList& ready) {
    {
      const std::lock_guard lock(events_mutex);
      events.push_back(std::move(event));
      if (processing) return;  // whoever processes now will see it
      processing = true;
    }
    for (;;) {
      Event next;
      {
        const std::lock_guard lock(events_mutex);
        if (events.empty()) {
          processing = false;
          return;
        }
        next = std::move(events.front());
        events.pop_front();
      }
      try {
        process(next, ready);
      } catch (...) {
        // commit() or plan() threw. The role is given back before the exception goes on, or nobody could take it again.
        const std::lock_guard lock(events_mutex);
        processing = false;
        throw;
      }
    }
  }

  void process(Event& event, ReadyList& ready) {
    switch (event.kind) {
      case Event::Kind::begin:
        ++run_number;
        run_start = limit;
        limit = event.clock;
        break;
      case Event::Kind::tick:
        tree.tick(event.worker);
        start_next_turn(event.worker, ready);
        hand_in_partials();
        break;
      case Event::Kind::node_clock:
        tree.node_reached(event.node, event.clock);
        break;
      case Event::Kind::partial:
        partials_of(event.clock)[event.node] = std::move(event.payload);
        break;
    }
    commit_finished_clocks();
    open_clocks(ready);
    if (tree.cluster() >= limit && committed >= limit) finish_run();
  }

  // The worker has finished a clock: its units of the next one, if that is open, need not wait for it any more.
  void start_next_turn(WorkerId worker, ReadyList& ready) {
    ClockFrame* frame = frame_of(tree.worker(worker));
    if (frame == nullptr) return;
    for (PendingUnit* pending : frame->turn(worker).waiting) satisfy(*pending, ready);
  }

  // What this node tells the others of every clock that all its workers have finished: the partial, then the clock. On
  // one link they arrive in this order, so who knows the clock has the partial.
  void hand_in_partials() {
    for (; node_done < tree.node(here); ++node_done) {
      Bytes mine = program.pack_partial(node_done);
      Message message;
      message.clock = node_done;
      if (map.nodes() > 1) {
        message.kind = Message::Kind::partial;
        message.payload = mine;
        send_to_others(message);
        message.kind = Message::Kind::clock;
        message.clock = node_done + 1;
        message.payload.clear();
        send_to_others(message);
      }
      partials_of(node_done)[here] = std::move(mine);
    }
  }

  std::vector<Bytes>& partials_of(Clock clock) {
    auto& of_nodes = partials[clock];
    of_nodes.resize(map.nodes());
    return of_nodes;
  }

  void commit_finished_clocks() {
    for (; committed < std::min(tree.cluster(), node_done); ++committed) {
      program.commit(committed, partials_of(committed));
      partials.erase(committed);
      // All units of the clock are over here, so nobody but the ends of chains points into its frame.
      const auto frame = frames.find(committed);
      frame->second->retire(chain_ends);
      frames.erase(frame);
    }
  }

  // Opens every clock that some worker of this node has reached and that the bound allows.
  void open_clocks(ReadyList& ready) {
    while (next_open < limit && next_open <= tree.fastest() && next_open - committed <= engine.clock_bound()) {
      if (options.should_stop && next_open > run_start && options.should_stop()) {
        limit = next_open;
        return;
      }
      open(next_open++, ready);
    }
  }

  void open(Clock clock, ReadyList& ready) {
    ClockPlan plan;
    schedule.plan(clock, plan);
    std::vector<Visit*> handovers, expected;
    auto made = std::make_unique<ClockFrame>(clock, std::move(plan), map, schedule.chained(), chain_ends,
                                             schedule.blocks(), handovers, expected);
    ClockFrame& frame = *made;
    frames.emplace(clock, std::move(made));
    for (WorkerId w = map.first_worker(here); w < map.first_worker(here + 1); ++w) {
      if (tree.worker(w) >= clock) continue;  // the worker is free for this clock
      for (PendingUnit* pending : frame.turn(w).waiting) pending->missing.fetch_add(1);
    }
    for (Visit* visit : handovers) hand_over(*visit, ready);
    for (Visit* visit : expected) {
      if (const auto payload = arrivals.expect(*visit)) arrive(*visit, *payload, ready);
    }
    for (std::size_t i = 0; i < frame.size(); ++i) satisfy(frame.unit(i), ready);
  }

  void arrive(Visit& visit, const Bytes& payload, ReadyList& ready) {
    program.unpack_block(visit.block, payload);
    satisfy(*visit.unit, ready);
  }

  ClockFrame* frame_of(Clock clock) {
    const auto found = frames.find(clock);
    return found == frames.end() ? nullptr : found->second.get();
  }

  void finish_run() {
    finished_run.store(run_number);
    const std::lock_guard lock(lanes[0].mutex);
    lanes[0].wake.notify_all();
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
    {
      const std::lock_guard lock(lanes[0].mutex);
      lanes[0].wake.notify_all();
    }
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
    send_to_others(message);
  }

  // --- the calling thread --------------------------------------------------------------------------------------------

  // Works like any thread of lane 0, but waits when there is nothing to do: it is no task.
  void drain_as_caller() {
    LaneState& lane = lanes[0];
    ExecutorStats stats;
    ReadyList ready;
    for (;;) {
      while (PendingUnit* pending = take(lane)) run_and_finish(*pending, 0, stats, ready);
      if (is_over()) break;
      spin(lane);
      std::unique_lock lock(lane.mutex);
      if (lane.queue.size() != 0 || is_over()) continue;
      lane.caller_waits = true;
      --lane.active;
      caller_is_active = false;
      lane.wake.wait(lock, [&] { return !lane.caller_waits || is_over(); });
      if (lane.caller_waits) {  // woken by the end, not by a unit
        lane.caller_waits = false;
        caller_is_active = true;
        ++lane.active;
      }
    }
    const std::lock_guard lock(lane.mutex);
    add(lane.stats, stats);
  }

  bool is_over() const { return finished_run.load() == begun_runs || failed.load(); }

  // A short look before the expensive sleep: a unit usually becomes ready within microseconds.
  void spin(const LaneState& lane) const {
    constexpr int kLooks = 2000;
    for (int i = 0; i < kLooks && lane.hint.load() == 0 && !is_over(); ++i) __builtin_ia32_pause();
  }

  // Nothing may run on when run() returns.
  void wait_until_idle() {
    for (std::size_t l = 0; l < lanes.size(); ++l) {
      LaneState& lane = lanes[l];
      std::unique_lock lock(lane.mutex);
      if (l == 0) {
        --lane.active;
        caller_is_active = false;
      }
      lane.wake.wait(lock, [&] { return lane.active == 0; });
      if (failed.load()) lane.queue.clear();
    }
  }

  Clock run(Clock until) {
    rethrow_failure();
    begin_run(until);
    const auto start = std::chrono::steady_clock::now();
    engine.arenas().join([&] {
      begin_on_caller(until);
      drain_as_caller();
      wait_until_idle();
    });
    thread_seconds += seconds_between(start, std::chrono::steady_clock::now()) * engine.threads();
    rethrow_failure();
    return tree.cluster();
  }

  void begin_run(Clock until) {  // the rest happens when the processor comes to the event
    ORRERY_CHECK(until >= tree.cluster() && until < kFarAhead);
    ++begun_runs;
    const std::lock_guard lock(lanes[0].mutex);
    ++lanes[0].active;
    caller_is_active = true;
  }

  void begin_on_caller(Clock until) {
    ReadyList ready;
    try {
      post(begin_event(until), ready);
    } catch (...) {
      fail(std::current_exception());  // rethrown by run()
      ready.clear();
    }
    publish(ready, 0);
  }

  static Event begin_event(Clock until) {
    Event event;
    event.kind = Event::Kind::begin;
    event.clock = until;
    return event;
  }

  void rethrow_failure() {
    const std::lock_guard lock(failure_mutex);
    if (first_failure != nullptr) std::rethrow_exception(first_failure);
  }

  // --- replay --------------------------------------------------------------------------------------------------------

  void replay(Clock until, std::span<const UnitRecord> records) {
    ORRERY_CHECK(map.nodes() == 1);
    ++begun_runs;
    ReadyList ready;
    ExecutorStats stats;
    post(begin_event(until), ready);
    for (const UnitRecord& record : records) {
      ClockFrame* frame = frame_of(record.clock);
      PendingUnit* pending = frame == nullptr ? nullptr : frame->find(record.index);
      const auto place = std::find(ready.begin(), ready.end(), pending);
      if (pending == nullptr || place == ready.end()) {
        throw Error(ErrorKind::internal, "replay: unit " + std::to_string(record.index) + " of clock " +
                                             std::to_string(record.clock) + " is not ready at its turn");
      }
      ready.erase(place);
      run_unit(*pending, stats);
      finish(*pending, ready);
    }
    if (!is_over()) throw Error(ErrorKind::internal, "replay: the trace ends before the run does");
  }

  Engine& engine;
  Schedule& schedule;
  Program& program;
  const ExecutorOptions options;
  Transport& transport;
  const NodeId here;
  const WorkerMap map;

  std::deque<LaneState> lanes;
  std::vector<std::size_t> place_in_lane;      ///< by domain
  bool caller_is_active = false;               ///< under lane 0's mutex
  std::uint64_t begun_runs = 0;                ///< the calling thread's own
  std::atomic<std::uint64_t> finished_run{0};  ///< number of the run that is over
  std::atomic<bool> failed{false};
  std::mutex failure_mutex;
  std::exception_ptr first_failure;

  std::mutex events_mutex;
  std::deque<Event> events;
  bool processing = false;

  // The processor's own.
  ClockTree tree;
  std::map<Clock, std::unique_ptr<ClockFrame>> frames;
  std::map<Clock, std::vector<Bytes>> partials;
  std::vector<ChainEnd> chain_ends;
  Clock next_open, node_done, committed, limit;
  Clock run_start = 0;
  std::uint64_t run_number = 0;

  Arrivals arrivals;
  std::vector<std::atomic<std::uint32_t>> owners;
  std::atomic<std::uint64_t> bytes_sent{0};
  double thread_seconds = 0;
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
  impl_->transport.attach(*this);
}

Executor::~Executor() { impl_->transport.detach(); }

Clock Executor::run(Clock until) { return impl_->run(until); }

void Executor::replay(Clock until, std::span<const UnitRecord> trace) { impl_->replay(until, trace); }

std::vector<Bytes> Executor::exchange(Bytes mine) {
  Impl& impl = *impl_;
  Message message;
  message.kind = Message::Kind::exchange;
  message.clock = impl.exchange_number++;
  message.payload = mine;
  impl.send_to_others(message);
  std::unique_lock lock(impl.exchange_mutex);
  auto& pieces = impl.exchanged[message.clock];
  pieces[impl.here] = std::move(mine);
  impl.exchange_arrived.wait(lock, [&] { return pieces.size() == impl.map.nodes() || impl.failed.load(); });
  if (impl.failed.load()) {
    lock.unlock();
    impl.rethrow_failure();
  }
  std::vector<Bytes> all;
  for (auto& [node, bytes] : pieces) all.push_back(std::move(bytes));
  impl.exchanged.erase(message.clock);
  return all;
}

Clock Executor::clock() const noexcept { return impl_->tree.cluster(); }

const WorkerMap& Executor::map() const noexcept { return impl_->map; }

ExecutorStats Executor::stats() const {
  ExecutorStats all;
  for (auto& lane : impl_->lanes) {
    const std::lock_guard lock(lane.mutex);
    Impl::add(all, lane.stats);
  }
  all.thread_seconds = impl_->thread_seconds;
  all.bytes_sent = impl_->bytes_sent.load();
  return all;
}

std::vector<UnitRecord> Executor::trace() const {
  const std::lock_guard lock(impl_->trace_mutex);
  return impl_->trace;
}

bool Executor::holds_block(std::uint32_t group, BlockId block) const {
  const ChainEnd& end = impl_->chain_ends[std::size_t{group} * impl_->schedule.blocks() + block];
  return end.visited && end.node == impl_->here;
}

void Executor::receive(Message&& message) {
  Impl& impl = *impl_;
  Impl::ReadyList ready;
  try {
    switch (message.kind) {
      case Message::Kind::block: {
        Bytes payload = std::move(message.payload);
        const ArrivalKey key{message.group, message.block, message.clock, message.visit};
        if (Visit* visit = impl.arrivals.arrived(key, payload)) impl.arrive(*visit, payload, ready);
        break;
      }
      case Message::Kind::partial:
      case Message::Kind::clock: {
        Impl::Event event;
        event.kind = message.kind == Message::Kind::clock ? Impl::Event::Kind::node_clock : Impl::Event::Kind::partial;
        event.node = message.from;
        event.clock = message.clock;
        event.payload = std::move(message.payload);
        impl.post(std::move(event), ready);
        break;
      }
      case Message::Kind::exchange: {
        const std::lock_guard lock(impl.exchange_mutex);
        impl.exchanged[message.clock][message.from] = std::move(message.payload);
        impl.exchange_arrived.notify_all();
        break;
      }
      case Message::Kind::failed: {
        std::string text = "node " + std::to_string(message.from) + " failed: ";
        for (const std::byte byte : message.payload) text += static_cast<char>(byte);
        throw Error(ErrorKind::lost, text);
      }
    }
  } catch (...) {
    impl.fail(std::current_exception());  // rethrown by run() or exchange()
    ready.clear();
  }
  impl.publish(ready, impl.lanes.size());
}

}  // namespace orrery
