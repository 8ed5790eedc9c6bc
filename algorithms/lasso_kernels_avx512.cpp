// Lasso kernels for AVX-512; see lasso_kernels.inc.
#include "algorithms/lasso_kernels.h"

namespace orrery::lasso {
namespace {

constexpr std::size_t kVectorBytes = 64, kDoubleBytes = 64;

#include "algorithms/lasso_kernels.inc"

}  // namespace

const Kernels& avx512_kernels() { return kTable; }

}  // namespace orrery::lasso
