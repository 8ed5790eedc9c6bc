// Softmax regression kernels for AVX2 and FMA; see softmax_kernels.inc.
#include "algorithms/softmax_kernels.h"

namespace orrery::softmax {
namespace {

#include "algorithms/softmax_kernels.inc"

}  // namespace

const Kernels& avx2_kernels() { return kTable; }

}  // namespace orrery::softmax
