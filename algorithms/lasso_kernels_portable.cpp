// Lasso kernels for the baseline processor; see lasso_kernels.inc.
#include "algorithms/lasso_kernels.h"

namespace orrery::lasso {
namespace {

constexpr std::size_t kVectorBytes = 16, kDoubleBytes = 64;

#include "algorithms/lasso_kernels.inc"

}  // namespace

const Kernels& portable_kernels() { return kTable; }

}  // namespace orrery::lasso
