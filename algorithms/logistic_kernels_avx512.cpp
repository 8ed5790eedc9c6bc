// Logistic regression kernels for AVX-512; see logistic_kernels.inc.
#include "algorithms/logistic_kernels.h"

namespace orrery::logistic {
namespace {

#include "algorithms/logistic_kernels.inc"

}  // namespace

const Kernels& avx512_kernels() { return kTable; }

}  // namespace orrery::logistic
