// Logistic regression kernels for AVX2 and FMA; see logistic_kernels.inc.
#include "algorithms/logistic_kernels.h"

namespace orrery::logistic {
namespace {

#include "algorithms/logistic_kernels.inc"

}  // namespace

const Kernels& avx2_kernels() { return kTable; }

}  // namespace orrery::logistic
