// Picks the kernels of a level at run time; this file is compiled for the baseline processor.
#include "algorithms/lda_kernels.h"

namespace orrery::lda {

const Kernels& kernels(SimdLevel level) {
  switch (level) {
    case SimdLevel::avx512:
      return avx512_kernels();
    case SimdLevel::avx2:
      return avx2_kernels();
    case SimdLevel::portable:
      break;
  }
  return portable_kernels();
}

}  // namespace orrery::lda
