#include "engine/simulated_cluster.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <queue>
#include <thread>
#include <tuple>
#include <utility>

#include "engine/assert.h"
#include "engine/error.h"
#include "engine/random.h"

namespace orrery {
namespace {

constexpr std::size_t kHeaderBytes = 64;  // of a message, beside its payload
constexpr NodeId kNoNode = ~NodeId{0};

/// How long units take.
class CostModel {
 public:
  explicit CostModel(const SimulationSpec& spec) : spec_(spec), random_(spec.seed, Purpose::simulated_network) {}

  VirtualTime of(const WorkUnit& unit, double seconds, NodeId node, VirtualTime begin) const {
    RandomStream draws = random_.stream(unit.clock, (std::uint64_t{unit.worker} << 24) + unit.step);
    const double spread = 1 + spec_.spread * (2 * draws.uniform() - 1);
    return (spec_.measured ? seconds : spec_.compute) * spread * slowness(unit, node, begin, draws);
  }

 private:
  double slowness(const WorkUnit& unit, NodeId node, VirtualTime begin, RandomStream& draws) const {
    switch (spec_.straggler) {
      case SimulationSpec::Straggler::none:
        return 1;
      case SimulationSpec::Straggler::slow:
        return unit.worker == 0 ? spec_.factor : 1;
      case SimulationSpec::Straggler::node:
        return node == 0 ? spec_.factor : 1;
      case SimulationSpec::Straggler::burst: {
        const VirtualTime length = spec_.burst > 0 ? spec_.burst : 10 * spec_.compute;
        const auto number = static_cast<Clock>(begin / std::max(length, 1e-9));
        return random_.stream(number, ~std::uint64_t{0}).below(spec_.nodes) == node ? spec_.factor : 1;
      }
      case SimulationSpec::Straggler::powerlaw:
        return std::pow(1 - draws.uniform(), -1 / spec_.exponent);
    }
    return 1;
  }

  const SimulationSpec& spec_;
  const Random random_;
};

struct Delivery {
  VirtualTime time = 0;
  std::uint64_t number = 0;  ///< ties go to what was sent first
  NodeId to = 0;
  Message message;
  bool is_loss = false;  ///< no message: the node stops here
  bool operator>(const Delivery& other) const { return std::tie(time, number) > std::tie(other.time, other.number); }
};

}  // namespace

/// One thread at a time has the turn; who gives it up looks for the earliest event of all, does what is to be done
/// between two turns (deliveries), and wakes the node whose turn it is.
class SimulatedCluster::Impl {
 public:
  Impl(const SimulationSpec& spec, SimulationObserver* observer)
      : spec_(spec), observer_(observer), cost_(spec_), random_(spec.seed, Purpose::simulated_network) {
    for (NodeId n = 0; n < spec.nodes; ++n) nodes_.push_back(std::make_unique<Node>(*this, n));
    links_.resize(std::size_t{spec.nodes} * spec.nodes);
    if (spec.lost) {
      Delivery loss;
      loss.time = spec.lost_at;
      loss.to = *spec.lost;
      loss.is_loss = true;
      push(std::move(loss));
    }
  }

  void run(const std::function<void(NodeId, Transport&)>& body) {
    {
      std::vector<std::jthread> threads;
      for (NodeId n = 0; n < spec_.nodes; ++n) {
        threads.emplace_back([this, n, &body] { run_node(n, body); });
      }
      std::unique_lock lock(mutex_);
      started_.wait(lock, [this] { return waiting_to_start_ == spec_.nodes; });
      give_turn(lock);
    }
    if (first_error_) std::rethrow_exception(first_error_);
  }

  Transport& node(NodeId n) { return *nodes_.at(n); }

  VirtualTime time() const {
    VirtualTime latest = 0;
    for (const auto& node : nodes_) latest = std::max(latest, node->time);
    return latest;
  }

  VirtualTime busiest() const {
    VirtualTime most = 0;
    for (const auto& node : nodes_) most = std::max(most, node->busy);
    return most;
  }

  std::uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  enum class State { runnable, waiting, gone };

  struct Link {
    VirtualTime free_at = 0, last_arrival = 0;
    Clock messages = 0;
  };

  class Node final : public Transport, public Pacer {
   public:
    Node(Impl& c, NodeId n) : cluster(c), number(n) {}
    NodeId node() const override { return number; }
    NodeId nodes() const override { return cluster.spec_.nodes; }
    Pacer* pacer() override { return this; }
    void attach(Receiver& r) override { cluster.attach(*this, r); }
    void detach() override { receiver = nullptr; }
    void send(NodeId to, Message message) override { cluster.send(*this, to, std::move(message)); }
    double unit_ran(const WorkUnit& unit, double seconds) override { return cluster.unit_ran(*this, unit, seconds); }
    double now() const override { return cluster.receiving_at_.value_or(time); }
    void wait(const std::function<bool()>& is_ready) override { cluster.wait(*this, is_ready); }

    Impl& cluster;
    const NodeId number;
    VirtualTime time = 0, busy = 0;
    State state = State::runnable;
    bool lost = false;
    Receiver* receiver = nullptr;
    std::deque<Message> early;  ///< came before somebody was attached
    const std::function<bool()>* ready = nullptr;
    std::condition_variable turn;
  };

  void run_node(NodeId n, const std::function<void(NodeId, Transport&)>& body) {
    Node& node = *nodes_[n];
    {
      std::unique_lock lock(mutex_);
      ++waiting_to_start_;
      started_.notify_one();
      node.turn.wait(lock, [&] { return turn_ == n; });
    }
    try {
      body(n, node);
    } catch (...) {
      // Kept for run(), which rethrows the earliest: nothing is swallowed.
      if (!first_error_) first_error_ = std::current_exception();
    }
    std::unique_lock lock(mutex_);
    node.state = State::gone;
    node.receiver = nullptr;
    give_turn(lock);
  }

  VirtualTime unit_ran(Node& node, const WorkUnit& unit, double seconds) {
    const VirtualTime begin = node.time;
    const VirtualTime cost = cost_.of(unit, seconds, node.number, begin);
    node.busy += cost;
    node.time += cost;
    if (observer_ != nullptr) observer_->unit_ran(begin, node.time, node.number, unit);
    std::unique_lock lock(mutex_);
    wait_for_turn(lock, node);
    return cost;
  }

  void wait(Node& node, const std::function<bool()>& ready) {
    if (ready()) return;
    node.ready = &ready;
    std::unique_lock lock(mutex_);
    node.state = State::waiting;
    wait_for_turn(lock, node);
    node.ready = nullptr;
  }

  void wait_for_turn(std::unique_lock<std::mutex>& lock, Node& node) {
    give_turn(lock);
    node.turn.wait(lock, [&] { return turn_ == node.number; });
    if (node.lost) {
      throw Error(ErrorKind::lost, "node " + std::to_string(node.number) + " was lost (simulated, at " +
                                       std::to_string(spec_.lost_at) + " s)");
    }
    if (stuck_) {
      throw Error(ErrorKind::internal, "the simulated cluster is stuck: every node waits and no message is under way");
    }
  }

  // Does all deliveries that come before the earliest node, then gives that node the turn.
  void give_turn(std::unique_lock<std::mutex>& lock) {
    for (;;) {
      Node* next = earliest_runnable();
      if (!deliveries_.empty() && (next == nullptr || deliveries_.top().time <= next->time)) {
        Delivery delivery = std::move(const_cast<Delivery&>(deliveries_.top()));
        deliveries_.pop();
        lock.unlock();  // whoever has the turn is alone; receiving sends, which takes the mutex
        deliver(std::move(delivery));
        lock.lock();
        continue;
      }
      if (next == nullptr) {
        next = any_waiting();
        if (next == nullptr) return;  // all are gone
        stuck_ = true;
        next->state = State::runnable;
      }
      turn_ = next->number;
      next->turn.notify_one();
      return;
    }
  }

  Node* earliest_runnable() {
    Node* earliest = nullptr;
    for (const auto& node : nodes_) {
      if (node->state == State::runnable && (earliest == nullptr || node->time < earliest->time)) earliest = node.get();
    }
    return earliest;
  }

  Node* any_waiting() {
    for (const auto& node : nodes_) {
      if (node->state == State::waiting) return node.get();
    }
    return nullptr;
  }

  void deliver(Delivery delivery) {
    Node& node = *nodes_[delivery.to];
    if (delivery.is_loss) {
      lose(node);
      return;
    }
    if (node.lost || node.state == State::gone) return;
    if (observer_ != nullptr) observer_->delivered(delivery.time, delivery.to, delivery.message);
    if (node.receiver == nullptr) {
      node.early.push_back(std::move(delivery.message));
      return;
    }
    receiving_at_ = delivery.time;
    node.receiver->receive(std::move(delivery.message));
    receiving_at_.reset();
    wake_if_ready(node, delivery.time);
  }

  void wake_if_ready(Node& node, VirtualTime time) {
    if (node.state != State::waiting || !(*node.ready)()) return;
    node.time = std::max(node.time, time);
    node.state = State::runnable;
  }

  void lose(Node& node) {
    if (node.state == State::gone) return;
    node.lost = true;
    for (const auto& other : nodes_) {
      if (other->number == node.number) continue;
      Delivery news;
      news.time = spec_.lost_at + spec_.detected_after;
      news.to = other->number;
      news.message.kind = Message::Kind::failed;
      news.message.from = node.number;
      const std::string text = "it did not answer any more (simulated loss)";
      news.message.payload.resize(text.size());
      std::transform(text.begin(), text.end(), news.message.payload.begin(),
                     [](char c) { return static_cast<std::byte>(c); });
      push(std::move(news));
    }
    node.time = std::max(node.time, spec_.lost_at);
    if (node.state == State::waiting) node.state = State::runnable;
  }

  void attach(Node& node, Receiver& receiver) {
    node.receiver = &receiver;
    while (!node.early.empty()) {
      Message message = std::move(node.early.front());
      node.early.pop_front();
      receiver.receive(std::move(message));
    }
  }

  void send(Node& from, NodeId to, Message message) {
    ORRERY_CHECK(to < spec_.nodes && to != from.number);
    if (from.lost) return;
    message.from = from.number;
    const VirtualTime now = receiving_at_.value_or(from.time);
    if (observer_ != nullptr) observer_->sent(now, to, message);
    Link& link = links_[std::size_t{from.number} * spec_.nodes + to];
    const std::size_t bytes = message.payload.size() + kHeaderBytes;
    bytes_sent_ += bytes;
    link.free_at = std::max(link.free_at, now) + static_cast<double>(bytes) / spec_.bytes_per_second;
    const double draw = random_.stream(link.messages++, (std::uint64_t{from.number} << 32) + to + 1).uniform();
    // Links overtake each other, messages on one link do not.
    link.last_arrival = std::max(link.last_arrival, link.free_at + spec_.delay + spec_.jitter * draw);
    Delivery delivery;
    delivery.time = link.last_arrival;
    delivery.to = to;
    delivery.message = std::move(message);
    push(std::move(delivery));
  }

  void push(Delivery delivery) {
    delivery.number = next_delivery_++;
    deliveries_.push(std::move(delivery));
  }

  const SimulationSpec spec_;
  SimulationObserver* const observer_;
  const CostModel cost_;
  const Random random_;
  std::vector<std::unique_ptr<Node>> nodes_;

  // The mutex only passes the turn on; everything below and in the nodes belongs to whoever has it.
  std::mutex mutex_;
  std::condition_variable started_;
  NodeId waiting_to_start_ = 0;
  NodeId turn_ = kNoNode;
  std::vector<Link> links_;
  std::priority_queue<Delivery, std::vector<Delivery>, std::greater<>> deliveries_;
  std::uint64_t next_delivery_ = 0;
  std::optional<VirtualTime> receiving_at_;  ///< while a message is received: the time of what that sends
  std::uint64_t bytes_sent_ = 0;
  bool stuck_ = false;
  std::exception_ptr first_error_;
};

SimulatedCluster::SimulatedCluster(const SimulationSpec& spec, SimulationObserver* observer)
    : impl_(std::make_unique<Impl>(spec, observer)) {}
SimulatedCluster::~SimulatedCluster() = default;

void SimulatedCluster::run(const std::function<void(NodeId, Transport&)>& body) { impl_->run(body); }
Transport& SimulatedCluster::node(NodeId node) { return impl_->node(node); }
VirtualTime SimulatedCluster::time() const { return impl_->time(); }
VirtualTime SimulatedCluster::busiest() const { return impl_->busiest(); }
std::uint64_t SimulatedCluster::bytes_sent() const { return impl_->bytes_sent(); }

}  // namespace orrery
