// Picks the kernels of a level at run time; this file is compiled for the baseline processor.
#include "algorithms/lasso_kernels.h"

namespace orrery::lasso {

const Kernels& kernels(SimdLevel level) { return kernels_of(level, portable_kernels, avx2_kernels, avx512_kernels); }

}  // namespace orrery::lasso
