// From MPI's return codes to the project's one exception. Included by the sources of dist/ only.
#pragma once

#include <mpi.h>

#include <string>

#include "engine/error.h"
#include "engine/types.h"

namespace orrery::dist {

/// "MPI_Isend: MPI's own text".
inline std::string mpi_text(int code, const char* call) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  return std::string(call) + ": " + std::string(text, static_cast<std::size_t>(length));
}

/// A failed call whose fault nobody in particular is.
inline void check(int code, const char* call) {
  if (code != MPI_SUCCESS) throw Error(ErrorKind::internal, mpi_text(code, call));
}

/// A failed call that has to do with one rank.
class RankError : public Error {
 public:
  RankError(NodeId rank, const std::string& what) : Error(ErrorKind::lost, what), rank_(rank) {}
  NodeId rank() const noexcept { return rank_; }

 private:
  NodeId rank_;
};
inline void check(int code, const char* call, NodeId rank) {
  if (code != MPI_SUCCESS) throw RankError(rank, mpi_text(code, call));
}

}  // namespace orrery::dist
