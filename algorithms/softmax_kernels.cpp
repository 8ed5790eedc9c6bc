// Picks the kernels of a level at run time; this file is compiled for the baseline processor.
#include "algorithms/softmax_kernels.h"

namespace orrery::softmax {

const Kernels& kernels(SimdLevel level) { return kernels_of(level, portable_kernels, avx2_kernels, avx512_kernels); }

}  // namespace orrery::softmax
