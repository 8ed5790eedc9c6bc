#include "tests/algorithms/mf_oracle.h"

#include <cmath>

namespace orrery::mf::oracle {
namespace {

double inner(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t d = 0; d < a.size(); ++d) sum += a[d] * b[d];
  return sum;
}

double error_of(const Batch& batch, std::size_t i, const Rows& rows, const Rows& columns) {
  const std::uint32_t u = batch.row, c = batch.columns[i];
  return batch.values[i] - rows.bias[u] - columns.bias[c] - inner(rows.factors[u], columns.factors[c]);
}

}  // namespace

std::vector<Batch> batches_of(const Cell& cell) {
  std::vector<Batch> out;
  std::size_t rating = 0;
  for (std::size_t n = kMaxBatch; n > 0; --n) {
    for (std::uint32_t b = 0; b < cell.batches[n - 1]; ++b, rating += n) {
      Batch batch{cell.rows[out.size()], {}, {}};
      for (std::size_t i = rating; i < rating + n; ++i) {
        batch.columns.push_back(cell.columns[i]);
        batch.values.push_back(double{cell.values[i]});
      }
      out.push_back(batch);
    }
  }
  return out;
}

double batch_loss(const Batch& batch, const Rows& rows, const Rows& columns) {
  const std::uint32_t u = batch.row;
  double loss = 0.0;
  for (std::size_t i = 0; i < batch.columns.size(); ++i) {
    const std::uint32_t c = batch.columns[i];
    const double e = error_of(batch, i, rows, columns);
    loss += e * e + rows.decay[u] * inner(rows.factors[u], rows.factors[u]);
    loss += columns.decay[c] * inner(columns.factors[c], columns.factors[c]);
    loss += rows.bias_decay[u] * rows.bias[u] * rows.bias[u];
    loss += columns.bias_decay[c] * columns.bias[c] * columns.bias[c];
  }
  return loss / 2.0;
}

void train_batch(const Batch& batch, Rows& rows, Rows& columns, double rate, double gain) {
  const std::uint32_t u = batch.row;
  const double row_step = rate / std::sqrt(1.0 + rows.energy[u]);
  const auto n = static_cast<double>(batch.columns.size());
  std::vector<double> errors;
  for (std::size_t i = 0; i < batch.columns.size(); ++i) errors.push_back(error_of(batch, i, rows, columns));
  const std::vector<double> w = rows.factors[u];
  std::vector<double>& new_w = rows.factors[u];
  for (double& x : new_w) x -= row_step * n * rows.decay[u] * x;
  rows.bias[u] -= row_step * n * rows.bias_decay[u] * rows.bias[u];
  for (std::size_t i = 0; i < batch.columns.size(); ++i) {
    const std::uint32_t c = batch.columns[i];
    const double e = errors[i], column_step = rate / std::sqrt(1.0 + columns.energy[c]);
    std::vector<double>& h = columns.factors[c];
    for (std::size_t d = 0; d < h.size(); ++d) {
      new_w[d] += row_step * e * h[d];
      h[d] += column_step * (e * w[d] - columns.decay[c] * h[d]);
    }
    rows.bias[u] += row_step * e;
    columns.bias[c] += column_step * (e - columns.bias_decay[c] * columns.bias[c]);
    rows.energy[u] += gain * e * e;
    columns.energy[c] += gain * e * e;
  }
}

}  // namespace orrery::mf::oracle
