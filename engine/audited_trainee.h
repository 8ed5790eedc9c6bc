// A training watched by the contract checker: beside what the trainee does, every worker adds to and reads a small
// table whose values show what was seen (design section 7).
#pragma once

#include <vector>

#include "engine/contract_checker.h"
#include "engine/forwarding_trainee.h"
#include "engine/random.h"
#include "engine/table_store.h"

namespace orrery {

/// One node's part. The trainee and its own tables go on as without it; the checker is shared by all nodes.
class AuditedTrainee final : public ForwardingTrainee {
 public:
  /// Everything must outlive it. `inner` must be data parallel.
  AuditedTrainee(Trainee& inner, const Engine& engine, const WorkerMap& map, ContractEvents& checker,
                 std::uint64_t seed);

  /// Rows of the table that the checker must be made for.
  static constexpr std::uint32_t kRows = 3;

  /// After the last run: tells the checker what is left on this node.
  void ended();

  void run_unit(const WorkUnit& unit, UnitContext& context) override;
  void take_unit(const WorkUnit& unit, std::span<const std::byte> wrote) override;
  Clock clock_bound(Clock engines) const override;
  void connect(Outbox& outbox, Clock start) override;
  void worker_ended(WorkerId worker, Clock clock) override;
  void node_ended(Clock clock) override;
  void message_arrived(const Message& message, const ClockTree& clocks) override;
  void clocks_moved(const ClockTree& clocks) override;
  std::size_t settle_parts(Clock clock) override;
  void settle(Clock clock, std::size_t part) override;
  void commit(Clock clock, std::span<const Bytes> partials) override;
  bool may_begin(Clock clock) override;
  bool may_end(Clock clock) override;

 private:
  /// Marks the messages of the checker's table.
  class MarkingOutbox final : public Outbox {
   public:
    void send(NodeId to, Message message) override;
    Outbox* outbox = nullptr;
  };

  void read(const UnitContext& context, std::uint32_t row);
  template <class Body>
  void audited(const WorkUnit& unit, const UnitContext& context, Body&& body);

  ContractEvents& checker_;
  const Random random_;
  MarkingOutbox marking_;
  TableStore tables_;
  Table<std::int64_t>& rows_;
  const WorkerMap map_;
  std::size_t own_parts_ = 0;  ///< of the settlement under way
  Clock start_ = 0;            ///< the checker counts from here
  std::vector<Clock> begun_;   ///< by worker of the cluster: its clock under way
};

}  // namespace orrery
