// A proof of how far a softmax regression is from its minimum, from the data and the weights alone, in double precision
// and with no code of the training.
//
// Every q that gives each row i probabilities q_i of the classes is a lower bound of the objective (Fenchel's dual):
// with v_jk = 1/n sum of (q_ik − [y_i = k]) x_ij and the entropy H(q_i) = − sum of q_ik log q_ik,
//
//   D(q) = 1/n sum of H(q_i) − sum over columns and classes of max(|v_jk| − l1, 0)² / (2 l2)    (|v| <= l1 where l2 =
//   0),
//
// provided that, if there are intercepts, which no penalty holds, q expects each class as often as it occurs. At the
// minimum q is what the model says, and the bound is tight. So with the model's p, whose mean is m, and the shares π of
// the classes, q = t p + (π − t m) is taken with the largest t <= 1 that leaves no class below 0; t = 1 without
// intercepts. Where l2 = 0 all rows are then moved towards their labels until |v| <= l1.
#pragma once

#include <cstdint>
#include <span>

#include "algorithms/certificate.h"
#include "algorithms/softmax_loss.h"

namespace orrery::softmax {

/// Two passes over the data, each with an exp, the second with a log, for every row and class; 16 bytes for a column
/// and class and as many pieces as the data is long for that, at most 16.
Certificate certify(const SparseRows& rows, std::span<const std::uint32_t> labels, const Fitted& fitted,
                    newton::Penalty penalty, const ParallelFor& parallel);

}  // namespace orrery::softmax
