#include "engine/program.h"

#include "engine/error.h"

namespace orrery {

Bytes Program::pack_block(BlockId, std::uint32_t) {
  throw Error(ErrorKind::internal, "this program's blocks cannot travel between nodes: it has no pack_block");
}

void Program::unpack_block(BlockId, std::uint32_t, std::span<const std::byte>) {
  throw Error(ErrorKind::internal, "this program's blocks cannot travel between nodes: it has no unpack_block");
}

}  // namespace orrery
