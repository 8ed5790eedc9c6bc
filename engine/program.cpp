#include "engine/program.h"

#include "engine/error.h"

namespace orrery {

Bytes Program::pack_block(BlockId, std::uint32_t) {
  throw Error(ErrorKind::internal, "this program's blocks cannot travel between nodes: it has no pack_block");
}

void Program::unpack_block(BlockId, std::uint32_t, std::span<const std::byte>) {
  throw Error(ErrorKind::internal, "this program's blocks cannot travel between nodes: it has no unpack_block");
}

Bytes Program::pack_unit(const WorkUnit&, NodeId) {
  throw Error(ErrorKind::internal, "this program's units cannot run on other nodes: it has no pack_unit");
}

Bytes Program::run_guest(const WorkUnit&, std::span<const std::byte>, UnitContext&) {
  throw Error(ErrorKind::internal, "this program's units cannot run on other nodes: it has no run_guest");
}

void Program::take_unit(const WorkUnit&, std::span<const std::byte>) {
  throw Error(ErrorKind::internal, "this program's units cannot run on other nodes: it has no take_unit");
}

}  // namespace orrery
