// How the right to a block passes from one visit to the next, inside a node and over the wire (design section 4); and
// the way out for all other messages.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/clock_frame.h"
#include "engine/program.h"
#include "engine/ready_lanes.h"
#include "engine/transport.h"

namespace orrery {

/// One condition of the unit is met; with the last one it is ready.
inline void satisfy(PendingUnit& unit, ReadyList& ready) {
  if (unit.missing.fetch_sub(1) == 1) ready.push_back(&unit);
}

/// Any thread may call any of these.
class BlockTraffic final : public Outbox {
 public:
  BlockTraffic(Program& program, Transport& transport) : program_(program), transport_(transport) {}

  /// The block of this visit lies here and nobody owns it: gives it to the visitor, here or on another node.
  void hand_over(Visit& visit, ReadyList& ready) {
    if (visit.unit != nullptr) {
      satisfy(*visit.unit, ready);
    } else {
      send_block(visit);
    }
  }
  /// A visitor of this node waits for a block from another one, which may be here already.
  void expect(Visit& visit, ReadyList& ready);
  /// A block has come.
  void receive(Message&& message, ReadyList& ready);

  void send(NodeId to, Message message) override;
  void send_to_others(const Message& message);
  std::uint64_t bytes_sent() const { return bytes_sent_.load(); }

 private:
  void send_block(const Visit& visit);
  void arrive(Visit& visit, const Bytes& payload, ReadyList& ready);

  Program& program_;
  Transport& transport_;
  Arrivals arrivals_;
  std::atomic<std::uint64_t> bytes_sent_{0};
};

}  // namespace orrery
