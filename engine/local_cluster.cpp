#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "engine/assert.h"
#include "engine/error.h"
#include "engine/transport.h"

namespace orrery {

void SingleNode::send(NodeId to, Message) {
  throw Error(ErrorKind::internal, "a run on one node has no node " + std::to_string(to) + " to send to");
}

/// A mailbox. The sending thread delivers, unless somebody is delivering already or nobody is attached: then the
/// message waits in the box and whoever delivers takes it too. So order is kept and no thread waits for another's
/// receive().
class LocalCluster::Node final : public Transport {
 public:
  Node(LocalCluster& cluster, NodeId node) : cluster_(cluster), node_(node) {}
  NodeId node() const override { return node_; }
  NodeId nodes() const override { return static_cast<NodeId>(cluster_.nodes_.size()); }

  void attach(Receiver& receiver) override {
    {
      const std::lock_guard lock(mutex_);
      receiver_ = &receiver;
    }
    deliver();
  }

  void detach() override {
    std::unique_lock lock(mutex_);
    receiver_ = nullptr;
    idle_.wait(lock, [&] { return !delivering_; });
  }

  void send(NodeId to, Message message) override {
    ORRERY_CHECK(to < cluster_.nodes_.size());
    message.from = node_;
    Node& peer = *cluster_.nodes_[to];
    {
      const std::lock_guard lock(peer.mutex_);
      peer.box_.push_back(std::move(message));
    }
    peer.deliver();
  }

 private:
  void deliver() {
    std::unique_lock lock(mutex_);
    if (delivering_) return;
    delivering_ = true;
    while (receiver_ != nullptr && !box_.empty()) {
      Message message = std::move(box_.front());
      box_.pop_front();
      Receiver& receiver = *receiver_;
      lock.unlock();
      receiver.receive(std::move(message));
      lock.lock();
    }
    delivering_ = false;
    idle_.notify_all();
  }

  LocalCluster& cluster_;
  const NodeId node_;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::deque<Message> box_;
  Receiver* receiver_ = nullptr;
  bool delivering_ = false;
};

LocalCluster::LocalCluster(NodeId nodes) {
  for (NodeId n = 0; n < nodes; ++n) nodes_.push_back(std::make_unique<Node>(*this, n));
}

LocalCluster::~LocalCluster() = default;

Transport& LocalCluster::node(NodeId node) { return *nodes_.at(node); }

}  // namespace orrery
