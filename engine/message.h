// What nodes say to each other (design section 7).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/types.h"
#include "engine/unit.h"

namespace orrery {

using Bytes = std::vector<std::byte>;

/// One message. Between two nodes messages arrive in the order in which they were sent, exactly once.
struct Message {
  enum class Kind : std::uint8_t {
    block,      ///< a block with the right to it: `block`, `group`, `clock`, `visit` name the visit that waits for it
    partial,    ///< Program::pack_partial of `clock`
    clock,      ///< all workers of the sender have finished the clocks below `clock`
    subscribe,  ///< the rows of `table` that the sender will read
    update,     ///< what the sender's workers added to the receiver's rows of `table` in `clock`
    pull,       ///< the sender needs the rows of `table` with all updates below `clock`
    rows,       ///< rows of `table` as they stand at their home, with all updates below `clock` in them
    offer,      ///< the sender has nothing to run: how far it is, and what a unit takes there
    lend,       ///< a unit of the sender's, with what it reads: `clock` and `visit` name it, in those that follow too
    ask_back,   ///< the sender wants back its unit, if the receiver has not begun it
    give_back,  ///< it has not, and will not
    result,     ///< what the receiver's unit wrote
    exchange,   ///< a piece of Executor::exchange; `clock` is its sequence number
    failed      ///< the sender's run failed; the payload is the text
  };
  Kind kind = Kind::clock;
  NodeId from = 0;
  Clock clock = 0;
  BlockId block = kNoBlock;
  std::uint32_t group = 0;
  std::uint32_t visit = 0;
  std::uint32_t table = 0;
  Bytes payload;
};

/// Takes the messages of a program away. Any thread; never waits for the receiver.
class Outbox {
 public:
  virtual ~Outbox() = default;
  virtual void send(NodeId to, Message message) = 0;
};

}  // namespace orrery
