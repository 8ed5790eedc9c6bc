// What the nodes of a training tell each other at its cuts, beside clocks and units: pieces of a state of which every
// node has its part (design section 7). One node has all pieces, so nobody asks whether there are others.
#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "engine/message.h"
#include "engine/types.h"
#include "engine/wire.h"

namespace orrery {

/// Calls are collective: every node makes the same ones in the same order, between runs of the executor. Each waits for
/// all nodes. @throws Error (lost) when one of them is gone.
class Collective {
 public:
  /// Takes what goes to each node and returns what came, by node; a node's own passes through.
  using Exchange = std::function<std::vector<Bytes>(std::vector<Bytes> to)>;

  /// One node.
  Collective() = default;
  Collective(NodeId node, NodeId nodes, Exchange exchange)
      : node_(node), nodes_(nodes), exchange_(std::move(exchange)) {}

  NodeId node() const noexcept { return node_; }
  NodeId nodes() const noexcept { return nodes_; }
  bool is_first() const noexcept { return node_ == 0; }

  /// Everybody's bytes, by node.
  std::vector<Bytes> to_all(Bytes mine) const {
    if (nodes_ == 1) return one(std::move(mine));
    return exchange_(std::vector<Bytes>(nodes_, mine));
  }
  /// Everybody's bytes, by node, for the first; for the others only empty ones.
  std::vector<Bytes> to_first(Bytes mine) const {
    if (nodes_ == 1) return one(std::move(mine));
    std::vector<Bytes> to(nodes_);
    to.front() = std::move(mine);
    return exchange_(std::move(to));
  }
  /// The nodes' values one after the other: with workers dealt contiguously over nodes, those of all workers in order.
  template <class T>
  std::vector<T> joined(std::vector<T> mine) const {
    if (nodes_ == 1) return mine;
    Bytes bytes;
    put_all(bytes, std::span<const T>(mine));
    std::vector<T> all;
    for (const Bytes& piece : to_all(std::move(bytes))) {
      std::vector<T> values(piece.size() / sizeof(T));
      WireReader(piece).take_all(std::span<T>(values));
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

 private:
  static std::vector<Bytes> one(Bytes mine) {
    std::vector<Bytes> all;
    all.push_back(std::move(mine));
    return all;
  }

  NodeId node_ = 0, nodes_ = 1;
  Exchange exchange_;
};

}  // namespace orrery
