#include "dist/frame.h"

#include <string>

#include "engine/error.h"

namespace orrery::dist {

FrameHeader header_of(const Frame& frame, std::size_t piece_bytes) {
  // All fields by name: a field that Message gains must be sent too, and does not compile until it is.
  const auto& [kind, from, clock, block, group, visit, table, payload] = frame.message;
  static_cast<void>(from);  // MPI says who the sender is
  FrameHeader header;
  header.payload_bytes = payload.size();
  header.piece_bytes = piece_bytes;
  header.clock = clock;
  header.session = frame.session;
  header.about = frame.about;
  header.block = block;
  header.group = group;
  header.visit = visit;
  header.table = table;
  header.type = frame.type;
  header.kind = kind;
  return header;
}

Frame frame_of(const FrameHeader& header, NodeId from) {
  if (header.mark != FrameHeader::kMark) {
    throw Error(ErrorKind::internal,
                "rank " + std::to_string(from) + " speaks another protocol: it is not the same version of orrery");
  }
  Frame frame;
  frame.type = header.type;
  frame.session = header.session;
  frame.about = header.about;
  frame.message.kind = header.kind;
  frame.message.from = from;
  frame.message.clock = header.clock;
  frame.message.block = header.block;
  frame.message.group = header.group;
  frame.message.visit = header.visit;
  frame.message.table = header.table;
  return frame;
}

}  // namespace orrery::dist
