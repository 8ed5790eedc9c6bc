// A proof of how far a logistic regression is from its minimum, from the data and the weights alone, in double
// precision and with no code of the training.
//
// Every b in [0, 1]^n gives a lower bound of the objective (Fenchel's dual): with v = 1/n sum of b_i y_i x_i and
// H(b) = -b log b - (1-b) log(1-b),
//
//   D(b) = 1/n sum of H(b_i) - sum over columns of max(|v_j| - l1, 0)² / (2 l2)      (|v_j| <= l1 where l2 = 0),
//
// provided that sum of b_i y_i = 0 if there is an intercept, which no penalty holds. At the minimum b_i is the
// probability that the model gives to the wrong class, and the bound is tight. So these are taken, the class with the
// larger sum is scaled down to the other's, and where l2 = 0 all are, until |v_j| <= l1.
#pragma once

#include <span>

#include "algorithms/certificate.h"
#include "algorithms/newton.h"
#include "engine/data/parallel_for.h"
#include "engine/data/sparse_rows.h"

namespace orrery::logistic {

/// A trained point as it is written and judged.
struct Fitted {
  std::span<const float> weights;  ///< by column; columns beyond count for nothing
  float intercept = 0;
  bool has_intercept = true;
};

/// Two passes over the data and an exp and two log a row; 16 bytes a column for each of 16 pieces.
Certificate certify(const SparseRows& rows, std::span<const float> signs, const Fitted& fitted, newton::Penalty penalty,
                    const ParallelFor& parallel);

}  // namespace orrery::logistic
