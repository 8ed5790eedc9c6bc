// Logistic regression kernels for the baseline processor; see logistic_kernels.inc.
#include "algorithms/logistic_kernels.h"

namespace orrery::logistic {
namespace {

#include "algorithms/logistic_kernels.inc"

}  // namespace

const Kernels& portable_kernels() { return kTable; }

}  // namespace orrery::logistic
