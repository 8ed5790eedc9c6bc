// How the readers get their threads without knowing any thread library. Design section 3: TBB stands in one place of
// the engine, and the readers stand beside it; so whoever calls a reader hands the loop in.
#pragma once

#include <cstddef>
#include <functional>

namespace orrery {

/// Runs body(0) … body(count − 1), each exactly once, in any order and on any threads, and returns when all are done.
/// The first exception of a body is rethrown after every started body has ended.
using ParallelFor = std::function<void(std::size_t count, const std::function<void(std::size_t)>& body)>;

/// The loop of a caller that has no threads.
inline void serial_for(std::size_t count, const std::function<void(std::size_t)>& body) {
  for (std::size_t i = 0; i < count; ++i) body(i);
}

/// How a file is read. Nothing here changes what comes out: it is the same for every piece size and every loop.
struct ReadOptions {
  ParallelFor parallel = serial_for;
  std::size_t piece_bytes = std::size_t{128} << 10;  ///< text that one body parses; small enough for a core's cache
  std::size_t wave_pieces = 64;  ///< pieces in flight: the memory beside the result; a few for each thread
};

}  // namespace orrery
