// Softmax regression kernels for the baseline processor; see softmax_kernels.inc.
#include "algorithms/softmax_kernels.h"

namespace orrery::softmax {
namespace {

#include "algorithms/softmax_kernels.inc"

}  // namespace

const Kernels& portable_kernels() { return kTable; }

}  // namespace orrery::softmax
