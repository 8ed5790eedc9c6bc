#include "engine/unit_lending.h"

#include <utility>

#include "engine/assert.h"
#include "engine/thread_seconds.h"
#include "engine/wire.h"

namespace orrery {
namespace {

template <class T>
void put_list(Bytes& out, std::span<const T> values) {
  put(out, static_cast<std::uint32_t>(values.size()));
  put_all(out, values);
}

template <class T>
std::vector<T> take_list(WireReader& in) {
  std::vector<T> values(in.take<std::uint32_t>());
  in.take_all(std::span(values));
  return values;
}

Message message_of(Message::Kind kind, const WorkUnit& unit) {
  Message message;
  message.kind = kind;
  message.clock = unit.clock;
  message.visit = unit.index;
  return message;
}

}  // namespace

UnitLending::UnitLending(Program& program, Outbox& outbox, ReadyLanes& lanes, const WorkerMap& map, Pacer* pacer,
                         unsigned threads, Reassign mode, Hooks hooks)
    : program_(program),
      outbox_(outbox),
      lanes_(lanes),
      map_(map),
      pacer_(pacer),
      hooks_(std::move(hooks)),
      policy_(map.this_node(), map.nodes(), threads, mode),
      is_on_(policy_.is_on() && program.lends()) {}

double UnitLending::now() const {
  if (pacer_ != nullptr) return pacer_->now();
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void UnitLending::lend() {
  while (is_on_) {
    PendingUnit* unit = nullptr;
    NodeId helper = 0;
    {
      const std::lock_guard lock(mutex_);
      const auto found = policy_.lend(hooks_.clock(), lanes_.waiting());
      if (!found) return;
      helper = *found;
      unit = lanes_.take_last();
      if (unit == nullptr) return policy_.came_back(helper, std::nullopt);
      loans_[{unit->unit.clock, unit->unit.index}] = {.unit = unit, .helper = helper, .lent_at = now()};
    }
    hand_over(*unit, helper);
  }
}

void UnitLending::hand_over(PendingUnit& pending, NodeId helper) {
  const WorkUnit& unit = pending.unit;
  hooks_.begin(pending);
  Message message = message_of(Message::Kind::lend, unit);
  put(message.payload, unit.worker);
  put(message.payload, unit.step);
  put(message.payload, unit.group);
  put_list(message.payload, unit.blocks);
  put_list(message.payload, unit.items);
  const Bytes packed = program_.pack_unit(unit, helper);
  put_all(message.payload, std::span<const std::byte>(packed));
  outbox_.send(helper, std::move(message));
  const std::lock_guard lock(mutex_);
  const auto loan = loans_.find({unit.clock, unit.index});
  if (loan != loans_.end()) loan->second.is_sent = true;  // else it is back already
}

Bytes UnitLending::progress() const {
  Bytes bytes;
  put(bytes, hooks_.clock());
  put(bytes, policy_.unit_seconds());
  return bytes;
}

void UnitLending::take_progress(NodeId from, WireReader& in) {
  const auto clock = in.take<Clock>();
  policy_.offered(from, clock, in.take<double>());
}

void UnitLending::idle() {
  if (!is_on_) return;
  ask_back();
  const Clock clock = hooks_.clock();
  {
    const std::lock_guard lock(mutex_);
    if (offered_ >= clock) return;
    offered_ = clock;
  }
  for (NodeId node = policy_.first_of_group(); node < policy_.last_of_group(); ++node) {
    if (node == map_.this_node()) continue;
    Message message;
    message.kind = Message::Kind::offer;
    message.payload = progress();
    outbox_.send(node, std::move(message));
  }
}

// What others have not begun would be done here at once: the last one that went, again and again.
void UnitLending::ask_back() {
  Message message;
  NodeId helper = 0;
  {
    const std::lock_guard lock(mutex_);
    Loan* last = nullptr;
    for (auto& [key, loan] : loans_) {
      if (loan.is_sent && !loan.is_asked_back && (last == nullptr || loan.lent_at > last->lent_at)) last = &loan;
    }
    if (last == nullptr) return;
    last->is_asked_back = true;
    helper = last->helper;
    message = message_of(Message::Kind::ask_back, last->unit->unit);
  }
  outbox_.send(helper, std::move(message));
}

void UnitLending::receive(Message&& message, ReadyList& ready) {
  WireReader in(message.payload);
  switch (message.kind) {
    case Message::Kind::offer:
      take_progress(message.from, in);
      return lend();
    case Message::Kind::lend:
      return accept(std::move(message), ready);
    case Message::Kind::ask_back:
      return give_back(message);
    case Message::Kind::give_back:
      return take_back(message, ready);
    default:
      ORRERY_CHECK(message.kind == Message::Kind::result);
      take_result(std::move(message), ready);
      return lend();
  }
}

void UnitLending::accept(Message&& message, ReadyList& ready) {
  auto guest = std::make_unique<Guest>();
  WireReader in(message.payload);
  WorkUnit& unit = guest->unit;
  unit.clock = message.clock;
  unit.index = message.visit;
  unit.worker = in.take<WorkerId>();
  unit.step = in.take<std::uint32_t>();
  unit.group = in.take<std::uint32_t>();
  guest->blocks = take_list<BlockId>(in);
  guest->items = take_list<std::uint32_t>(in);
  unit.blocks = guest->blocks;
  unit.items = guest->items;
  guest->payload.resize(in.bytes_left());
  in.take_all(std::span(guest->payload));
  guest->owner = message.from;
  guest->is_guest = true;
  guest->domain = static_cast<DomainId>(message.visit % map_.domains());
  ready.push_back(guest.get());
  const std::lock_guard lock(mutex_);
  guests_.emplace(std::pair{message.from, Key{message.clock, message.visit}}, std::move(guest));
}

void UnitLending::give_back(const Message& message) {
  Message answer = message_of(Message::Kind::give_back, {});
  answer.clock = message.clock;
  answer.visit = message.visit;
  {
    const std::lock_guard lock(mutex_);
    const auto found = guests_.find({message.from, {message.clock, message.visit}});
    if (found == guests_.end() || found->second->begun) return;  // the result is on its way or will be
    found->second->given_back = true;
    // It stays in its queue, whose turn it is to forget it, while the owner may send it again.
    given_back_.emplace(found->second.get(), std::move(found->second));
    guests_.erase(found);
  }
  outbox_.send(message.from, std::move(answer));
}

void UnitLending::run_guest(PendingUnit& pending) {
  const WorkUnit& unit = pending.unit;
  Guest& guest = static_cast<Guest&>(pending);
  const auto key = std::pair{guest.owner, Key{unit.clock, unit.index}};
  {
    const std::lock_guard lock(mutex_);
    if (guest.given_back) {
      given_back_.erase(&guest);
      return;
    }
    guest.begun = true;
  }
  UnitContext context{pending.domain, unit.worker, unit.clock};
  const double before = now(), thread_before = thread_seconds();
  const Bytes wrote = program_.run_guest(unit, guest.payload, context);
  policy_.unit_ran(pacer_ != nullptr ? pacer_->unit_ran(unit, thread_seconds() - thread_before) : now() - before);
  Message message = message_of(Message::Kind::result, unit);
  message.payload = progress();
  put_all(message.payload, std::span<const std::byte>(wrote));
  const NodeId owner = guest.owner;
  {
    const std::lock_guard lock(mutex_);
    guests_.erase(key);
  }
  outbox_.send(owner, std::move(message));
}

UnitLending::Loan UnitLending::end_of_loan(const Message& message) {
  const std::lock_guard lock(mutex_);
  const auto found = loans_.find({message.clock, message.visit});
  ORRERY_CHECK(found != loans_.end() && found->second.helper == message.from);
  const Loan loan = found->second;
  loans_.erase(found);
  return loan;
}

void UnitLending::take_back(const Message& message, ReadyList& ready) {
  const Loan loan = end_of_loan(message);
  policy_.came_back(loan.helper, std::nullopt);
  loan.unit->is_begun = true;
  ready.push_back(loan.unit);
}

void UnitLending::take_result(Message&& message, ReadyList& ready) {
  const Loan loan = end_of_loan(message);
  policy_.came_back(loan.helper, now() - loan.lent_at);
  WireReader in(message.payload);
  take_progress(message.from, in);
  program_.take_unit(loan.unit->unit, std::span(message.payload).last(in.bytes_left()));
  lent_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a counter, read between runs
  hooks_.end(*loan.unit, ready);
}

}  // namespace orrery
