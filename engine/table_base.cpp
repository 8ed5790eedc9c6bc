#include "engine/table_base.h"

#include <algorithm>
#include <utility>

#include "engine/assert.h"

namespace orrery {

TableBase::TableBase(TableSpec spec, Clock bound, RowDelivery delivery, const WorkerMap& map)
    : spec_(std::move(spec)),
      bound_(bound),
      map_(map),
      homes_(spec_.rows, map.nodes()),
      delivery_(versioned() ? delivery : RowDelivery::push),
      peers_(spec_.rows, map.this_node(), map.nodes()),
      frontiers_(map.nodes(), 0),
      whole_(map.nodes(), 0),
      asked_(map.nodes()) {}

Message TableBase::message_of(Message::Kind kind, Clock clock) const {
  Message message;
  message.kind = kind;
  message.clock = clock;
  message.table = number_;
  return message;
}

void TableBase::will_read(std::span<const std::uint32_t> rows) {
  ORRERY_CHECK(outbox_ == nullptr);
  if (is_alone()) return;
  if (is_read_.empty()) {
    is_read_.resize(spec_.rows, false);
  }
  for (const std::uint32_t row : rows) is_read_[row] = true;
}

void TableBase::place(std::span<const RowStream> streams) {
  ORRERY_CHECK(outbox_ == nullptr && streams.size() == map_.workers());
  if (is_alone()) return;
  std::vector<std::vector<std::uint32_t>> counts(map_.nodes(), std::vector<std::uint32_t>(spec_.rows, 0));
  for (WorkerId w = 0; w < map_.workers(); ++w) {
    for (const std::uint32_t row : streams[w].rows()) ++counts[map_.node_of(w)][row];
  }
  homes_ = RowHomes(home_by_use(counts), map_.nodes());
}

void TableBase::connect(Outbox& outbox, std::uint32_t number, Clock start) {
  outbox_ = &outbox;
  number_ = number;
  for (std::uint32_t row = 0; row < is_read_.size(); ++row) is_read_[row] = is_read_[row] || is_home_of(row);
  connected();
  for (NodeId home = 0; home < map_.nodes(); ++home) {
    raise_frontier(home, start);
    peers_.tell(home, start, false);
    whole_[home] = start;
    if (is_read_.empty() || home == here() || !homes_.has_rows(home)) continue;
    std::vector<std::uint32_t> rows;
    for (std::uint32_t row = 0; row < spec_.rows; ++row) {
      if (is_read_[row] && homes_.is_home(home, row)) rows.push_back(row);
    }
    Message message = message_of(Message::Kind::subscribe, start);
    put(message.payload, static_cast<std::uint32_t>(rows.size()));
    put_all(message.payload, std::span<const std::uint32_t>(rows));
    outbox.send(home, std::move(message));
  }
}

void TableBase::node_ended(Clock clock) {
  for (NodeId home = 0; home < map_.nodes(); ++home) {
    if (home == here() || !homes_.has_rows(home)) continue;
    Message message = message_of(Message::Kind::update, clock);
    pack_updates(clock, home, message.payload);
    outbox_->send(home, std::move(message));
  }
  updates_packed(clock);
}

void TableBase::message_arrived(const Message& message, const ClockTree& clocks) {
  WireReader in(message.payload);
  switch (message.kind) {
    case Message::Kind::subscribe: {
      std::vector<std::uint32_t> rows(in.take<std::uint32_t>());
      in.take_all(std::span(rows));
      peers_.subscribe(message.from, rows);
      return;
    }
    case Message::Kind::update:
      unpack_updates(message.from, message.clock, in);
      return;
    case Message::Kind::pull:
      peers_.pull(message.from, {message.clock, in.take<std::uint8_t>() != 0});
      tell_peers();
      return;
    case Message::Kind::rows:
      rows_arrived(message, clocks);
      return;
    default:
      ORRERY_CHECK(false);
  }
}

void TableBase::rows_arrived(const Message& message, const ClockTree& clocks) {
  WireReader in(message.payload);
  const bool whole = in.take<std::uint8_t>() != 0;
  unpack_rows(message.from, whole, clocks, in);
  // Only now: who sees the frontier must see the rows.
  raise_frontier(message.from, message.clock);
  if (whole) whole_[message.from] = message.clock;
  std::optional<TablePeers::Pull>& asked = asked_[message.from];
  if (asked && asked->needed <= message.clock && (whole || !asked->whole)) asked.reset();
}

void TableBase::clocks_moved(const ClockTree& clocks) {
  if (!versioned()) return;
  raise_frontier(here(), apply_visible(clocks));
  tell_peers();
}

void TableBase::commit(Clock clock) {
  if (versioned()) return;
  apply_settled(clock);
  raise_frontier(here(), clock + 1);
  tell_peers();
}

void TableBase::raise_frontier(NodeId home, Clock frontier) {
  if (frontier <= frontiers_[home]) return;
  frontiers_[home] = frontier;
  frontier_rose(home, frontier);
}

// Pushes what is new and answers who has asked, as far as this home's rows have come.
void TableBase::tell_peers() {
  if (is_alone() || !homes_.has_rows(here())) return;
  const Clock reached = frontiers_[here()];
  const bool has_bound = bound_ < kNoBound;
  for (NodeId peer = 0; peer < map_.nodes(); ++peer) {
    if (peer == here()) continue;
    const std::optional<TablePeers::Pull>& asked = peers_.asked(peer);
    const bool answers = asked && asked->needed <= reached;
    // Without a bound nobody ever asks, and no clock says when to tell: everything new is told.
    const bool pushes =
        delivery_ == RowDelivery::push && (reached > peers_.told(peer) || (!has_bound && peers_.has_news(peer)));
    if (answers || pushes) send_rows(peer, answers && asked->whole);
  }
}

void TableBase::send_rows(NodeId peer, bool whole) {
  const std::vector<std::uint32_t> rows = peers_.tell(peer, frontiers_[here()], whole);
  Message message = message_of(Message::Kind::rows, frontiers_[here()]);
  put(message.payload, static_cast<std::uint8_t>(whole));
  pack_rows(peer, whole, rows, message.payload);
  outbox_->send(peer, std::move(message));
}

void TableBase::ask(NodeId home, TablePeers::Pull pull) {
  std::optional<TablePeers::Pull>& asked = asked_[home];
  if (asked && asked->needed >= pull.needed && (asked->whole || !pull.whole)) return;
  asked = pull;
  Message message = message_of(Message::Kind::pull, pull.needed);
  put(message.payload, static_cast<std::uint8_t>(pull.whole));
  outbox_->send(home, std::move(message));
}

bool TableBase::may_begin(Clock clock) {
  bool is_fresh = true;
  for (NodeId home = 0; home < map_.nodes(); ++home) {
    if (home == here() || !homes_.has_rows(home) || frontiers_[home] >= clock - bound_) continue;
    is_fresh = false;
    if (delivery_ == RowDelivery::pull) ask(home, {clock - bound_, false});
  }
  return is_fresh;
}

bool TableBase::may_end(Clock clock) {
  const bool is_told_all = is_read_.empty();
  bool is_whole = true;
  for (NodeId home = 0; home < map_.nodes(); ++home) {
    if (home == here() || !homes_.has_rows(home) || (is_told_all ? frontiers_[home] : whole_[home]) >= clock) continue;
    is_whole = false;
    if (delivery_ == RowDelivery::pull || !is_told_all) ask(home, {clock, true});
  }
  return is_whole;
}

}  // namespace orrery
