// Matrix factorisation written a second time, slowly and in double, straight from the formulas in mf_kernels.h. The
// kernels are compared with it; it shares no code with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithms/mf_kernels.h"
#include "algorithms/mf_layout.h"

namespace orrery::mf::oracle {

/// A side of the model in double, without padding.
struct Rows {
  std::size_t rank = 0;
  std::vector<std::vector<double>> factors;
  std::vector<double> bias, energy, decay, bias_decay;
};

/// One batch: a row and the columns that it rates.
struct Batch {
  std::uint32_t row;
  std::vector<std::uint32_t> columns;
  std::vector<double> values;
};
std::vector<Batch> batches_of(const Cell& cell);

/// Half the sum over the batch of e² + decay_u |w|² + decay_i |h_i|² and the same for biases: what one step descends.
double batch_loss(const Batch& batch, const Rows& rows, const Rows& columns);
/// The update of Kernels::train_cell for one batch.
void train_batch(const Batch& batch, Rows& rows, Rows& columns, double rate, double gain);

}  // namespace orrery::mf::oracle
