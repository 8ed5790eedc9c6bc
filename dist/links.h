// Frames over MPI, in order on every link, exactly once: the part of dist/ that sends and receives. Non-blocking
// throughout; one thread (the communication thread) calls everything.
//
// A frame is a header, with a small payload in the same MPI message. A larger payload follows in pieces, straight from
// and into the vector that holds it, a few pieces in flight at a time on each link: MPI counts have 32 bits, and a sign
// of life must get through between two pieces. Headers have a tag of their own and overtake pieces, so that the
// receiver has its memory ready before a piece comes; frames are handed on in the order of their headers.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "dist/frame.h"
#include "engine/types.h"

namespace orrery::dist {

class Links {
 public:
  /// `communicator` stays the caller's and must return errors.
  Links(MPI_Comm communicator, std::size_t inline_bytes, std::size_t piece_bytes);
  /// Nothing is received any more. What has not left yet does not leave.
  ~Links();
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  void post(NodeId to, Frame frame);
  /// Sends what can be sent and appends the frames that are here. Never waits. True when anything has moved.
  /// @throws RankError, Error
  bool progress(std::vector<Frame>& arrived);
  /// Everything posted to the rank has left.
  bool has_sent_all_to(NodeId rank) const { return links_[rank].queue.empty() && links_[rank].sending.empty(); }
  /// Pieces of a frame whose header is here are on their way, so that it pays to look often.
  bool awaits_pieces_of(NodeId rank) const { return !links_[rank].given_up && !links_[rank].arriving.empty(); }
  /// Something has not left yet, for which MPI may want to be looked at.
  bool is_sending_to(NodeId rank) const { return !links_[rank].given_up && !links_[rank].sending.empty(); }
  /// The rank will not answer any more: what was on its way to or from it is forgotten.
  void give_up(NodeId rank);
  std::uint64_t pieces_sent() const noexcept { return pieces_sent_; }

 private:
  struct Outgoing {
    std::vector<std::byte> head;
    Bytes payload;  ///< when it goes in pieces
    std::size_t posted = 0;
    MPI_Request head_request = MPI_REQUEST_NULL;
    std::deque<MPI_Request> pieces;
  };
  struct Incoming {
    Frame frame;
    std::size_t piece_bytes = 0;
    std::size_t posted = 0;
    std::deque<MPI_Request> pieces;
  };
  struct Link {
    std::deque<Frame> queue;
    std::deque<Outgoing> sending;
    std::deque<Incoming> arriving;
    bool given_up = false;
  };

  void receive_header();
  bool take_header(std::vector<Frame>& arrived);
  bool send(NodeId to, Link& link);
  void start(NodeId to, Link& link);
  bool receive(NodeId from, Link& link, std::vector<Frame>& arrived);
  bool take_finished(std::deque<MPI_Request>& requests, NodeId rank);

  const MPI_Comm communicator_;
  const std::size_t inline_bytes_, piece_bytes_;
  std::vector<Link> links_;
  std::vector<std::byte> header_;  ///< of the next frame of any rank
  MPI_Request header_request_ = MPI_REQUEST_NULL;
  std::uint64_t pieces_sent_ = 0;
};

}  // namespace orrery::dist
