#include "numa/cpu_mask.h"

#include <sched.h>

#include <cerrno>

namespace orrery::detail {

CpuMask thread_mask(int thread) {
  // The kernel refuses a mask that is shorter than its own and does not tell how long that is.
  for (std::size_t words = 1024 / kMaskBits; words <= (std::size_t{1} << 20) / kMaskBits; words *= 2) {
    CpuMask mask(words);
    if (sched_getaffinity(thread, words * sizeof(unsigned long), reinterpret_cast<cpu_set_t*>(mask.data())) == 0) {
      return mask;
    }
    if (errno != EINVAL) break;
  }
  return {};
}

bool set_thread_mask(int thread, const CpuMask& mask) noexcept {
  return sched_setaffinity(thread, mask.size() * sizeof(unsigned long),
                           reinterpret_cast<const cpu_set_t*>(mask.data())) == 0;
}

CpuMask mask_of(const std::vector<unsigned>& cpus) {
  CpuMask mask(1024 / kMaskBits);
  for (const unsigned cpu : cpus) {
    if (cpu / kMaskBits >= mask.size()) mask.resize(cpu / kMaskBits + 1);
    mask[cpu / kMaskBits] |= 1UL << (cpu % kMaskBits);
  }
  return mask;
}

std::vector<unsigned> cpus_of(const CpuMask& mask) {
  std::vector<unsigned> cpus;
  for (std::size_t bit = 0; bit < mask.size() * kMaskBits; ++bit) {
    if ((mask[bit / kMaskBits] >> (bit % kMaskBits) & 1) != 0) cpus.push_back(static_cast<unsigned>(bit));
  }
  return cpus;
}

}  // namespace orrery::detail
