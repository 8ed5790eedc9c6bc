// How nodes talk (design section 7). The engine knows this interface only; one node needs none of it, several engines
// in one process are joined by LocalCluster, and dist/ joins processes over MPI.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/message.h"
#include "engine/types.h"
#include "engine/unit.h"

namespace orrery {

/// Takes messages. receive() may be called by any thread of the transport, for one sender one at a time; it never waits
/// for another message.
class Receiver {
 public:
  virtual ~Receiver() = default;
  virtual void receive(Message&& message) = 0;
};

/// Keeps the time of a node whose time is not the machine's (SimulatedCluster). Called on the node's own thread.
class Pacer {
 public:
  virtual ~Pacer() = default;
  /// A unit has run, in `seconds` of its thread: the node's time moves on by what it costs, and others whose time is
  /// earlier go first. Returns when the unit is over, what it cost.
  virtual double unit_ran(const WorkUnit& unit, double seconds) = 0;
  /// The node's time, in seconds; while a message is received, that of its arrival.
  virtual double now() const = 0;
  /// The node has nothing to do until a message makes `ready` true.
  virtual void wait(const std::function<bool()>& ready) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual NodeId node() const = 0;
  virtual NodeId nodes() const = 0;
  /// Messages that came before attach() are kept and handed over then. One receiver at a time.
  virtual void attach(Receiver& receiver) = 0;
  /// After it returned receive() is not called any more.
  virtual void detach() = 0;
  /// Queues a message; never waits for the receiver. May be called from any thread.
  virtual void send(NodeId to, Message message) = 0;
  /// Null where time is the machine's.
  virtual Pacer* pacer() { return nullptr; }
};

/// The transport of a run on one node: nobody to talk to.
class SingleNode final : public Transport {
 public:
  NodeId node() const override { return 0; }
  NodeId nodes() const override { return 1; }
  void attach(Receiver&) override {}
  void detach() override {}
  void send(NodeId to, Message message) override;
};

/// N nodes in one process that hand messages over by a call: what the engine's own tests run clusters on.
class LocalCluster {
 public:
  explicit LocalCluster(NodeId nodes);
  ~LocalCluster();
  /// The transport of one node; lives as long as the cluster.
  Transport& node(NodeId node);

 private:
  class Node;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace orrery
