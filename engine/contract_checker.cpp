#include "engine/contract_checker.h"

#include <algorithm>

namespace orrery {
namespace {

std::string kind_name(Message::Kind kind) {
  switch (kind) {
    case Message::Kind::block:
      return "block";
    case Message::Kind::partial:
      return "partial result";
    case Message::Kind::subscribe:
      return "subscription";
    case Message::Kind::update:
      return "update";
    case Message::Kind::pull:
      return "pull";
    case Message::Kind::rows:
      return "rows";
    case Message::Kind::clock:
      return "clock";
    case Message::Kind::offer:
      return "offer";
    case Message::Kind::lend:
      return "unit";
    case Message::Kind::ask_back:
      return "question for a unit";
    case Message::Kind::give_back:
      return "unit that was not begun";
    case Message::Kind::result:
      return "result of a unit";
    case Message::Kind::exchange:
      return "exchange";
    case Message::Kind::failed:
      return "failure";
  }
  return "message";
}

std::string worker_name(WorkerId worker) { return "worker " + std::to_string(worker); }

}  // namespace

ContractChecker::ContractChecker(WorkerId workers, std::uint32_t rows, std::optional<Clock> staleness,
                                 std::uint64_t seed)
    : workers_(workers),
      rows_(rows),
      staleness_(staleness),
      seed_(seed),
      columns_(std::size_t{workers} * rows),
      finished_(workers, 0) {}

void ContractChecker::clock_begins(WorkerId worker, Clock clock) {
  note(worker, "begins clock " + std::to_string(clock));
  const auto slowest = std::min_element(finished_.begin(), finished_.end());
  if (clock != finished_[worker]) fail("a worker runs its clocks one after the other", worker, worker);
  if (staleness_ && *slowest < clock - *staleness_) {
    fail("rule 1: clocks are at most " + std::to_string(*staleness_) + " apart", worker,
         static_cast<WorkerId>(slowest - finished_.begin()));
  }
}

void ContractChecker::added(WorkerId worker, Clock clock, std::uint32_t row, std::int64_t delta) {
  column(worker, row).now += delta;
  note(worker,
       "adds " + std::to_string(delta) + " to row " + std::to_string(row) + " in clock " + std::to_string(clock));
}

void ContractChecker::clock_ends(WorkerId worker, Clock clock) {
  finished_[worker] = clock + 1;
  for (std::uint32_t row = 0; row < rows_; ++row) {
    Column& sums = column(worker, row);
    sums.after.push_back(sums.now);
  }
  note(worker, "ends clock " + std::to_string(clock));
}

void ContractChecker::read(WorkerId worker, Clock clock, std::uint32_t row, std::span<const std::int64_t> values) {
  ++reads_;
  for (WorkerId writer = 0; writer < workers_ && !broken_; ++writer) {
    if (writer == worker) {
      check_own(worker, clock, row, values[writer]);
    } else {
      check_other(worker, clock, row, writer, values[writer]);
    }
  }
}

void ContractChecker::check_own(WorkerId reader, Clock clock, std::uint32_t row, std::int64_t value) {
  const std::int64_t expected = column(reader, row).now;
  if (value == expected) return;
  note(reader, "reads row " + std::to_string(row) + " in clock " + std::to_string(clock) + ": " +
                   std::to_string(value) + " of its own, not " + std::to_string(expected));
  fail("rule 4: a worker sees all of its own updates, once", reader, reader);
}

void ContractChecker::check_other(WorkerId reader, Clock clock, std::uint32_t row, WorkerId writer,
                                  std::int64_t value) {
  const Column& sums = column(writer, row);
  // The latest k with that sum, and the earliest: clocks without an addition to the row leave it as it was.
  const auto [first, last] = std::equal_range(sums.after.begin(), sums.after.end(), value);
  const auto say = [&] {
    note(reader, "reads row " + std::to_string(row) + " in clock " + std::to_string(clock) + ": " +
                     std::to_string(value) + " of " + worker_name(writer));
  };
  if (first == last) {
    say();
    fail("rule 6: no update is lost, applied twice or in part", reader, writer);
    return;
  }
  const auto least = static_cast<Clock>(first - sums.after.begin());
  const auto most = static_cast<Clock>(last - sums.after.begin()) - 1;
  if (staleness_ && most < clock - *staleness_) {
    say();
    fail("rule 2: a read sees every update up to clock c - s - 1", reader, writer);
  }
  if (staleness_ && least > clock + *staleness_) {
    say();
    fail("rule 3: a read sees no update beyond clock c + s - 1", reader, writer);
  }
  std::size_t& before = seen_[{reader, std::size_t{writer} * rows_ + row}];
  if (static_cast<std::size_t>(most) < before) {
    say();
    fail("a row never goes back", reader, writer);
  }
  before = std::max(before, static_cast<std::size_t>(least));
}

void ContractChecker::ended(NodeId node, std::uint32_t row, std::span<const std::int64_t> values) {
  for (WorkerId writer = 0; writer < workers_ && !broken_; ++writer) {
    const std::int64_t expected = column(writer, row).now;
    if (values[writer] == expected) continue;
    note(writer, "has added " + std::to_string(expected) + " to row " + std::to_string(row) + ", node " +
                     std::to_string(node) + " holds " + std::to_string(values[writer]));
    fail("rule 6: at the end every node holds the sum of all updates", writer, writer);
  }
}

void ContractChecker::sent(VirtualTime time, NodeId to, const Message& message) {
  now_ = time;
  remember({time, kNoWorker, message.from, to,
            "node " + std::to_string(message.from) + " sends " + kind_name(message.kind) + " " +
                std::to_string(message.clock) + " to node " + std::to_string(to)});
}

void ContractChecker::delivered(VirtualTime time, NodeId to, const Message& message) {
  now_ = time;
  remember({time, kNoWorker, message.from, to,
            "node " + std::to_string(to) + " gets " + kind_name(message.kind) + " " + std::to_string(message.clock) +
                " of node " + std::to_string(message.from)});
}

void ContractChecker::unit_ran(VirtualTime, VirtualTime end, NodeId, const WorkUnit&) { now_ = end; }

void ContractChecker::remember(Event event) {
  constexpr std::size_t kMostRemembered = 100'000;
  if (events_.size() == kMostRemembered) events_.pop_front();
  events_.push_back(std::move(event));
}

void ContractChecker::note(WorkerId worker, std::string text) {
  remember({now_, worker, 0, 0, worker_name(worker) + " " + std::move(text)});
}

void ContractChecker::fail(const std::string& rule, WorkerId reader, WorkerId writer) {
  if (broken_) return;
  constexpr std::size_t kMostEvents = 24;
  std::vector<const Event*> relevant;
  for (auto at = events_.rbegin(); at != events_.rend() && relevant.size() < kMostEvents; ++at) {
    if (at->worker == reader || at->worker == writer || at->worker == kNoWorker) relevant.push_back(&*at);
  }
  std::string text =
      "seed " + std::to_string(seed_) + ": " + rule + "; " + worker_name(reader) + " of " + worker_name(writer) + "\n";
  for (auto at = relevant.rbegin(); at != relevant.rend(); ++at) {
    text += "  " + std::to_string((*at)->time) + " s  " + (*at)->text + "\n";
  }
  broken_ = std::move(text);
}

}  // namespace orrery
