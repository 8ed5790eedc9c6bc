// What travels between two ranks: messages of engines, and what ranks say to each other about themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/message.h"
#include "engine/types.h"

namespace orrery::dist {

struct Frame {
  enum class Type : std::uint8_t {
    message,   ///< of an engine
    alive,     ///< a sign of life
    lost,      ///< the sender gives up the rank `about`; the payload says why
    farewell,  ///< the sender leaves the job
  };
  Type type = Type::message;
  std::uint32_t session = 0;  ///< message: which transport
  NodeId about = 0;
  Message message;  ///< the payload of every type is in it
};

/// The first bytes of every frame. Both ends are the same program: the mark refuses another one.
struct FrameHeader {
  static constexpr std::uint64_t kMark = 0x0331'7972'6572'726fU;  // "orrery1" and the layout's number
  std::uint64_t mark = kMark;
  std::uint64_t payload_bytes = 0;
  std::uint64_t piece_bytes = 0;  ///< 0: the payload follows the header in the same MPI message
  std::int64_t clock = 0;
  std::uint32_t session = 0;
  std::uint32_t about = 0;
  std::uint32_t block = 0;
  std::uint32_t group = 0;
  std::uint32_t visit = 0;
  std::uint32_t table = 0;
  Frame::Type type = Frame::Type::message;
  Message::Kind kind = Message::Kind::clock;
  std::uint16_t unused = 0;
  std::uint32_t unused_too = 0;  ///< no padding: every byte that is sent is defined
};
static_assert(sizeof(FrameHeader) == 64);

/// The header of a frame; `piece_bytes` as above.
FrameHeader header_of(const Frame& frame, std::size_t piece_bytes);
/// The frame without its payload, as it came from a rank. @throws Error (internal) when it is none.
Frame frame_of(const FrameHeader& header, NodeId from);

}  // namespace orrery::dist
