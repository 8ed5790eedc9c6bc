// A trainee around another one, which goes on as without it: everything is passed on. What wants to watch a training
// derives from it and overrides what it watches, so that a call which is added to Trainee is passed on in one place.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/training.h"

namespace orrery {

class ForwardingTrainee : public Trainee {
 public:
  /// `inner` must outlive it.
  explicit ForwardingTrainee(Trainee& inner) : inner_(inner) {}

  void run_unit(const WorkUnit& unit, UnitContext& context) override { inner_.run_unit(unit, context); }
  void block_begins(BlockId block, Clock clock, UnitContext& context) override {
    inner_.block_begins(block, clock, context);
  }
  void block_ends(BlockId block, Clock clock, UnitContext& context) override {
    inner_.block_ends(block, clock, context);
  }
  Bytes pack_block(BlockId block, std::uint32_t group) override { return inner_.pack_block(block, group); }
  void unpack_block(BlockId block, std::uint32_t group, std::span<const std::byte> bytes) override {
    inner_.unpack_block(block, group, bytes);
  }
  bool lends() const override { return inner_.lends(); }
  Bytes pack_unit(const WorkUnit& unit, NodeId helper) override { return inner_.pack_unit(unit, helper); }
  Bytes run_guest(const WorkUnit& unit, std::span<const std::byte> packed, UnitContext& context) override {
    return inner_.run_guest(unit, packed, context);
  }
  void take_unit(const WorkUnit& unit, std::span<const std::byte> wrote) override { inner_.take_unit(unit, wrote); }
  Clock clock_bound(Clock engines) const override { return inner_.clock_bound(engines); }
  void worker_ended(WorkerId worker, Clock clock) override { inner_.worker_ended(worker, clock); }
  void clocks_moved(const ClockTree& clocks) override { inner_.clocks_moved(clocks); }
  Bytes pack_partial(Clock clock) override { return inner_.pack_partial(clock); }
  std::size_t settle_parts(Clock clock) override { return inner_.settle_parts(clock); }
  void settle(Clock clock, std::size_t part) override { inner_.settle(clock, part); }
  void commit(Clock clock, std::span<const Bytes> partials) override { inner_.commit(clock, partials); }
  void connect(Outbox& outbox, Clock start) override { inner_.connect(outbox, start); }
  void node_ended(Clock clock) override { inner_.node_ended(clock); }
  void message_arrived(const Message& message, const ClockTree& clocks) override {
    inner_.message_arrived(message, clocks);
  }
  bool may_begin(Clock clock) override { return inner_.may_begin(clock); }
  bool may_end(Clock clock) override { return inner_.may_end(clock); }

  void take_stop_rules(const StopRules& rules) override { inner_.take_stop_rules(rules); }
  void join(const Collective& nodes) override { inner_.join(nodes); }
  Evaluation evaluate(Engine& engine, bool exact) override { return inner_.evaluate(engine, exact); }
  std::vector<StateSection> save_state() const override { return inner_.save_state(); }
  void load_state(const std::vector<StateSection>& sections) override { inner_.load_state(sections); }
  void keep_best() override { inner_.keep_best(); }
  void restore_best() override { inner_.restore_best(); }
  void collect_model(Engine& engine) override { inner_.collect_model(engine); }
  bool shares_state() const override { return inner_.shares_state(); }
  Bytes share_state() const override { return inner_.share_state(); }
  void take_share(NodeId from, std::span<const std::byte> share) override { inner_.take_share(from, share); }
  std::vector<std::pair<std::string, AccessCounts>> accesses() const override { return inner_.accesses(); }
  std::vector<StateSection> save_plans() const override { return inner_.save_plans(); }
  void follow_plans(const std::vector<StateSection>& plans) override { inner_.follow_plans(plans); }

 protected:
  Trainee& inner() noexcept { return inner_; }

 private:
  Trainee& inner_;
};

}  // namespace orrery
