#include "engine/table_peers.h"

#include <algorithm>

namespace orrery {

TablePeers::TablePeers(std::uint32_t rows, NodeId here, NodeId nodes) : here_(here), rows_(rows), peers_(nodes) {
  for (Peer& peer : peers_) {
    if (nodes > 1) peer.is_changed.resize(rows_);
  }
}

void TablePeers::subscribe(NodeId peer, std::span<const std::uint32_t> rows) {
  std::vector<bool>& reads = peers_[peer].reads;
  reads.assign(rows_, false);
  for (const std::uint32_t row : rows) reads[row] = true;
}

void TablePeers::changed(std::uint32_t row) {
  for (NodeId n = 0; n < peers_.size(); ++n) {
    Peer& peer = peers_[n];
    if (n == here_ || peer.is_changed[row]) continue;
    peer.is_changed[row] = true;
    peer.changed.push_back(row);
    peer.has_news = peer.has_news || reads(peer, row);
  }
}

void TablePeers::pull(NodeId peer, Pull pull) {
  std::optional<Pull>& asked = peers_[peer].asked;
  if (asked) pull = {std::max(pull.needed, asked->needed), pull.whole || asked->whole};
  asked = pull;
}

std::vector<std::uint32_t> TablePeers::tell(NodeId number, Clock frontier, bool whole) {
  Peer& peer = peers_[number];
  peer.told = frontier;
  peer.has_news = false;
  if (peer.asked && peer.asked->needed <= frontier && (whole || !peer.asked->whole)) peer.asked.reset();
  std::vector<std::uint32_t> sent, kept;
  for (const std::uint32_t row : peer.changed) {
    const bool wanted = whole || reads(peer, row);
    (wanted ? sent : kept).push_back(row);
    if (wanted) peer.is_changed[row] = false;
  }
  peer.changed = std::move(kept);
  return sent;
}

}  // namespace orrery
