// What MPI tests share: the process as a rank of the job, and engines on it.
#pragma once

#include <functional>
#include <memory>

#include "dist/mpi_process.h"
#include "engine/engine.h"
#include "tests/engine/toy_programs.h"

namespace orrery::test {

/// The rank that this process is. Made by main().
MpiProcess& process();

/// Runs body(rank, engine) on an engine of this rank; all ranks call it.
inline void on_mpi(const EngineOptions& options, const std::function<void(NodeId, Engine&)>& body) {
  const std::unique_ptr<Transport> transport = process().open();
  Engine engine(options, transport.get());
  body(transport->node(), engine);
}

/// `mine` of all ranks, by rank.
template <class T>
std::vector<std::vector<T>> all_of(const std::vector<T>& mine) {
  std::vector<std::vector<T>> all;
  for (const Bytes& bytes : process().exchange(toy::bytes_of(mine))) all.push_back(toy::values_of<T>(bytes));
  return all;
}

}  // namespace orrery::test
