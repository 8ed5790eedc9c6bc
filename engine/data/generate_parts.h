// Inner steps that the generators share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/data/draws.h"
#include "engine/data/parallel_for.h"
#include "engine/data/text_writer.h"
#include "engine/error.h"

namespace orrery {

/// What a draw is for; the clock of the random stream, so that no two kinds of draw share numbers.
enum class Draw : Clock { popularity, activity, user, item, ratings, order, weights, rows, topics, documents, edges };

inline RandomStream draws_of(std::uint64_t seed, Draw draw, std::uint64_t item) {
  return Random(seed, Purpose::generator).stream(static_cast<Clock>(draw), item);
}

inline void require(bool good, const std::string& what) {
  if (!good) throw usage_error("cannot generate: " + what);
}

/// Makes parts 0 … parts − 1 of a text in parallel and writes them in order. `fill(part, buffer)`.
template <class Fill>
void write_parts(TextWriter& out, std::size_t parts, const ParallelFor& parallel, const Fill& fill) {
  constexpr std::size_t kWave = 64;
  std::vector<TextBuffer> buffers(std::min(parts, kWave));
  for (std::size_t first = 0; first < parts; first += kWave) {
    const std::size_t count = std::min(kWave, parts - first);
    parallel(count, [&](std::size_t i) {
      buffers[i].clear();
      fill(first + i, buffers[i]);
    });
    for (std::size_t i = 0; i < count; ++i) out.append(buffers[i].text());
  }
}

/// `nonzero` of `size` weights at random places, normal; the others 0.
inline std::vector<double> draw_sparse_weights(std::size_t size, std::uint32_t nonzero, RandomStream& random) {
  std::vector<double> weights(size, 0.0);
  for (std::uint32_t left = nonzero; left > 0;) {
    double& weight = weights[static_cast<std::size_t>(random.below(size))];
    if (weight != 0) continue;
    weight = random.normal();
    --left;
  }
  return weights;
}

/// Sums over parts of rows in a fixed order, whatever threads made them.
inline double sum_in_order(const std::vector<double>& parts) {
  double sum = 0;
  for (const double part : parts) sum += part;
  return sum;
}

}  // namespace orrery
