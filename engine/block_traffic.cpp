#include "engine/block_traffic.h"

#include <utility>

namespace orrery {

void BlockTraffic::send_block(const Visit& visit) {
  Message message;
  message.kind = Message::Kind::block;
  message.clock = visit.clock;
  message.block = visit.block;
  message.group = visit.group;
  message.visit = visit.number;
  message.payload = program_.pack_block(visit.block, visit.group);
  send(visit.node, std::move(message));
}

void BlockTraffic::expect(Visit& visit, ReadyList& ready) {
  if (const auto payload = arrivals_.expect(visit)) arrive(visit, *payload, ready);
}

void BlockTraffic::receive(Message&& message, ReadyList& ready) {
  Bytes payload = std::move(message.payload);
  const ArrivalKey key{message.group, message.block, message.clock, message.visit};
  if (Visit* visit = arrivals_.arrived(key, payload)) arrive(*visit, payload, ready);
}

void BlockTraffic::arrive(Visit& visit, const Bytes& payload, ReadyList& ready) {
  program_.unpack_block(visit.block, visit.group, payload);
  satisfy(*visit.unit, ready);
}

void BlockTraffic::send(NodeId to, Message message) {
  bytes_sent_.fetch_add(message.payload.size(), std::memory_order_relaxed);  // relaxed: a counter, read between runs
  transport_.send(to, std::move(message));
}

void BlockTraffic::send_to_others(const Message& message) {
  for (NodeId n = 0; n < transport_.nodes(); ++n) {
    if (n != transport_.node()) send(n, message);
  }
}

}  // namespace orrery
