// Lasso kernels for AVX2 and FMA; see lasso_kernels.inc.
#include "algorithms/lasso_kernels.h"

namespace orrery::lasso {
namespace {

constexpr std::size_t kVectorBytes = 32, kDoubleBytes = 32;

#include "algorithms/lasso_kernels.inc"

}  // namespace

const Kernels& avx2_kernels() { return kTable; }

}  // namespace orrery::lasso
