// What the home of some rows knows of the nodes that read them: who wants which rows, which of those have changed since
// a node was last told, and who has asked.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/types.h"

namespace orrery {

/// For one table on one node. Not thread-safe.
class TablePeers {
 public:
  struct Pull {
    Clock needed = 0;    ///< all updates below it must be in the answer
    bool whole = false;  ///< all rows that have changed, not only those that the peer reads
  };

  /// For a table of `rows`. Memory: two bits a row and peer.
  TablePeers(std::uint32_t rows, NodeId here, NodeId nodes);

  /// The peer will read these rows while units run, and no others. Without this call: all.
  void subscribe(NodeId peer, std::span<const std::uint32_t> rows);
  /// The row has changed. Cost: a look at a bit for each peer.
  void changed(std::uint32_t row);
  /// A row that the peer reads has changed since it was told.
  bool has_news(NodeId peer) const { return peers_[peer].has_news; }

  void pull(NodeId peer, Pull pull);
  const std::optional<Pull>& asked(NodeId peer) const { return peers_[peer].asked; }
  /// How far the peer was told already.
  Clock told(NodeId peer) const { return peers_[peer].told; }

  /// The rows to send to the peer for a state with all updates below `frontier`: those that have changed since it was
  /// told, of those that it reads or, when `whole`, of all; the others stay noted.
  std::vector<std::uint32_t> tell(NodeId peer, Clock frontier, bool whole);

 private:
  struct Peer {
    std::vector<bool> reads;             ///< by row; empty: all
    std::vector<std::uint32_t> changed;  ///< since it was told
    std::vector<bool> is_changed;        ///< by row
    bool has_news = false;
    std::optional<Pull> asked;
    Clock told = 0;
  };

  bool reads(const Peer& peer, std::uint32_t row) const { return peer.reads.empty() || peer.reads[row]; }

  NodeId here_;
  std::uint32_t rows_;
  std::vector<Peer> peers_;  ///< by node; this node's is not used
};

}  // namespace orrery
