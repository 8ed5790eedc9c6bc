// The processor time of a thread.
#pragma once

#include <time.h>

#include "engine/assert.h"

namespace orrery {

/// What the processor has spent on this thread: not what others have taken from it.
inline double thread_seconds() {
  timespec now{};
  [[maybe_unused]] const int failed = clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  ORRERY_CHECK(failed == 0);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace orrery
