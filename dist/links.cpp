#include "dist/links.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "dist/mpi_error.h"
#include "engine/assert.h"

namespace orrery::dist {
namespace {

constexpr int kHeaderTag = 1;
constexpr int kPieceTag = 2;
constexpr std::size_t kFramesInFlight = 16;  // on a link
constexpr std::size_t kPiecesInFlight = 4;   // on a link
// Open MPI looks at TCP connections in every eighth call only.
constexpr int kLooks = 9;

int count_of(std::size_t bytes) { return static_cast<int>(bytes); }

bool is_finished(MPI_Request& request, NodeId rank) {
  int done = 0;
  check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test", rank);
  return done != 0;
}

}  // namespace

Links::Links(MPI_Comm communicator, std::size_t inline_bytes, std::size_t piece_bytes)
    : communicator_(communicator),
      inline_bytes_(inline_bytes),
      piece_bytes_(std::min(piece_bytes, std::size_t{1} << 30)),
      header_(sizeof(FrameHeader) + inline_bytes) {
  int ranks = 0;
  check(MPI_Comm_size(communicator, &ranks), "MPI_Comm_size");
  links_.resize(static_cast<std::size_t>(ranks));
  receive_header();
}

Links::~Links() {
  // Errors have nowhere to go from here, and the communicator is about to end anyway.
  if (header_request_ == MPI_REQUEST_NULL) return;
  MPI_Cancel(&header_request_);
  MPI_Wait(&header_request_, MPI_STATUS_IGNORE);
}

void Links::post(NodeId to, Frame frame) {
  ORRERY_CHECK(to < links_.size());
  if (!links_[to].given_up) links_[to].queue.push_back(std::move(frame));
}

void Links::give_up(NodeId rank) {
  Link& link = links_[rank];
  link.given_up = true;
  link.queue.clear();
  // Requests under way keep their buffers: MPI may still look at them.
}

bool Links::progress(std::vector<Frame>& arrived) {
  bool moved = take_header(arrived);
  for (NodeId rank = 0; rank < links_.size(); ++rank) {
    Link& link = links_[rank];
    if (link.given_up) continue;
    if (!link.queue.empty() || !link.sending.empty()) moved |= send(rank, link);
    if (!link.arriving.empty()) moved |= receive(rank, link, arrived);
  }
  return moved;
}

// --- sending
// -----------------------------------------------------------------------------------------------------------

bool Links::send(NodeId to, Link& link) {
  bool moved = false;
  while (!link.queue.empty() && link.sending.size() < kFramesInFlight) {
    start(to, link);
    moved = true;
  }
  std::size_t in_flight = 0;
  for (Outgoing& out : link.sending) {
    moved |= take_finished(out.pieces, to);
    in_flight += out.pieces.size();
    while (out.posted < out.payload.size() && in_flight < kPiecesInFlight) {
      const std::size_t bytes = std::min(piece_bytes_, out.payload.size() - out.posted);
      out.pieces.emplace_back(MPI_REQUEST_NULL);
      check(MPI_Isend(out.payload.data() + out.posted, count_of(bytes), MPI_BYTE, static_cast<int>(to), kPieceTag,
                      communicator_, &out.pieces.back()),
            "MPI_Isend", to);
      out.posted += bytes;
      ++in_flight;
      ++pieces_sent_;
      moved = true;
    }
    if (out.posted < out.payload.size()) break;  // the pieces of later frames come after these
  }
  while (!link.sending.empty()) {
    Outgoing& first = link.sending.front();
    const bool all_posted = first.posted == first.payload.size() && first.pieces.empty();
    if (!all_posted || !is_finished(first.head_request, to)) break;
    link.sending.pop_front();
    moved = true;
  }
  return moved;
}

void Links::start(NodeId to, Link& link) {
  Frame frame = std::move(link.queue.front());
  link.queue.pop_front();
  const bool in_pieces = frame.message.payload.size() > inline_bytes_;
  const FrameHeader header = header_of(frame, in_pieces ? piece_bytes_ : 0);
  Outgoing& out = link.sending.emplace_back();
  const Bytes& payload = frame.message.payload;
  out.head.resize(sizeof header + (in_pieces ? 0 : payload.size()));
  std::memcpy(out.head.data(), &header, sizeof header);
  if (in_pieces) {
    out.payload = std::move(frame.message.payload);
  } else if (!payload.empty()) {
    std::memcpy(out.head.data() + sizeof header, payload.data(), payload.size());
  }
  check(MPI_Isend(out.head.data(), count_of(out.head.size()), MPI_BYTE, static_cast<int>(to), kHeaderTag, communicator_,
                  &out.head_request),
        "MPI_Isend", to);
}

// --- receiving
// ---------------------------------------------------------------------------------------------------------

void Links::receive_header() {
  check(MPI_Irecv(header_.data(), count_of(header_.size()), MPI_BYTE, MPI_ANY_SOURCE, kHeaderTag, communicator_,
                  &header_request_),
        "MPI_Irecv");
}

bool Links::take_header(std::vector<Frame>& arrived) {
  bool moved = false;
  for (;;) {
    int here = 0;
    MPI_Status status;
    for (int look = 0; look < kLooks && here == 0; ++look) {
      check(MPI_Test(&header_request_, &here, &status), "MPI_Test");
    }
    if (here == 0) return moved;
    moved = true;
    const auto from = static_cast<NodeId>(status.MPI_SOURCE);
    int bytes = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count", from);
    ORRERY_CHECK(static_cast<std::size_t>(bytes) >= sizeof(FrameHeader));
    FrameHeader header;
    std::memcpy(&header, header_.data(), sizeof header);
    Incoming in{.frame = frame_of(header, from), .piece_bytes = header.piece_bytes, .pieces = {}};
    Bytes& payload = in.frame.message.payload;
    payload.resize(header.payload_bytes);
    if (header.piece_bytes == 0) {
      ORRERY_CHECK(sizeof header + payload.size() == static_cast<std::size_t>(bytes));
      if (!payload.empty()) std::memcpy(payload.data(), header_.data() + sizeof header, payload.size());
      in.posted = payload.size();
    }
    receive_header();
    Link& link = links_[from];
    if (link.given_up) continue;
    if (link.arriving.empty() && in.posted == payload.size()) {
      arrived.push_back(std::move(in.frame));
    } else {
      link.arriving.push_back(std::move(in));
    }
  }
}

bool Links::receive(NodeId from, Link& link, std::vector<Frame>& arrived) {
  bool moved = false;
  std::size_t in_flight = 0;
  for (Incoming& in : link.arriving) {
    Bytes& payload = in.frame.message.payload;
    moved |= take_finished(in.pieces, from);
    in_flight += in.pieces.size();
    while (in.posted < payload.size() && in_flight < kPiecesInFlight) {
      const std::size_t bytes = std::min(in.piece_bytes, payload.size() - in.posted);
      in.pieces.emplace_back(MPI_REQUEST_NULL);
      check(MPI_Irecv(payload.data() + in.posted, count_of(bytes), MPI_BYTE, static_cast<int>(from), kPieceTag,
                      communicator_, &in.pieces.back()),
            "MPI_Irecv", from);
      in.posted += bytes;
      ++in_flight;
      moved = true;
    }
    if (in.posted < payload.size()) break;
  }
  while (!link.arriving.empty()) {
    Incoming& first = link.arriving.front();
    if (first.posted < first.frame.message.payload.size() || !first.pieces.empty()) break;
    arrived.push_back(std::move(first.frame));
    link.arriving.pop_front();
    moved = true;
  }
  return moved;
}

// Pieces finish in order, or nearly so: the first one that has not ends the look.
bool Links::take_finished(std::deque<MPI_Request>& requests, NodeId rank) {
  bool moved = false;
  while (!requests.empty() && is_finished(requests.front(), rank)) {
    requests.pop_front();
    moved = true;
  }
  return moved;
}

}  // namespace orrery::dist
