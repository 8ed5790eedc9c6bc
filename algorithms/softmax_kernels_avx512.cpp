// Softmax regression kernels for AVX-512; see softmax_kernels.inc.
#include "algorithms/softmax_kernels.h"

namespace orrery::softmax {
namespace {

#include "algorithms/softmax_kernels.inc"

}  // namespace

const Kernels& avx512_kernels() { return kTable; }

}  // namespace orrery::softmax
