#include "algorithms/lasso_gram.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace orrery::lasso {
namespace {

constexpr std::size_t kChunk = 16;   // slots whose products one fill works on at a time
constexpr std::size_t kPanel = 512;  // rows that are standardised at a time: a tile's operands stay in the first cache

}  // namespace

bool is_worth_products(const Design& design, std::span<const std::uint32_t> working) {
  constexpr std::uint64_t kLongAgainstNumber = 16;
  if (working.size() > Gram::kMostSlots) return false;
  if (design.is_dense()) return true;
  std::uint64_t entries = 0;
  for (const std::uint32_t j : working) entries += design.length(j);
  return entries >= kLongAgainstNumber * working.size() * working.size();
}

Gram::Gram(const Design& design) : design_(design), slot_(design.columns(), kNoSlot) {}

std::uint64_t Gram::admit(std::span<const std::uint32_t> columns) {
  const auto is_new = [&](std::uint32_t j) { return slot_[j] == kNoSlot; };
  std::size_t fresh = static_cast<std::size_t>(std::count_if(columns.begin(), columns.end(), is_new));
  if (size() + fresh > kMostSlots) {
    keep_only(columns);
    fresh = static_cast<std::size_t>(std::count_if(columns.begin(), columns.end(), is_new));
  }
  reserve(size() + fresh);
  for (const std::uint32_t j : columns) {
    if (!is_new(j)) continue;
    slot_[j] = static_cast<std::uint32_t>(columns_.size());
    columns_.push_back(j);
  }
  return fresh * columns_.size();
}

/// Moves rows and columns of the matrix together; places keep their order.
void Gram::keep_only(std::span<const std::uint32_t> columns) {
  std::vector<char> wanted(design_.columns(), 0);
  for (const std::uint32_t j : columns) wanted[j] = 1;
  std::vector<std::uint32_t> kept;
  for (std::uint32_t s = 0; s < size(); ++s) {
    if (wanted[columns_[s]] != 0) kept.push_back(s);
  }
  for (std::size_t a = 0; a < kept.size(); ++a) {
    const float* from = row(kept[a]);
    float* to = products_.data() + a * capacity_;
    for (std::size_t b = 0; b < kept.size(); ++b) to[b] = from[kept[b]];
  }
  std::vector<std::uint32_t> remaining;
  for (const std::uint32_t s : kept) remaining.push_back(columns_[s]);
  for (const std::uint32_t j : columns_) slot_[j] = kNoSlot;
  for (std::size_t s = 0; s < remaining.size(); ++s) slot_[remaining[s]] = static_cast<std::uint32_t>(s);
  columns_.swap(remaining);
  filled_ = columns_.size();
}

void Gram::reserve(std::size_t slots) {
  if (slots <= capacity_) return;
  const std::size_t capacity = std::min(kMostSlots, std::max<std::size_t>(64, std::max(slots, 2 * capacity_)));
  std::vector<float> larger(capacity * capacity, 0.0F);
  for (std::size_t s = 0; s < filled_; ++s) std::copy_n(row(s), filled_, larger.data() + s * capacity);
  products_.swap(larger);
  capacity_ = capacity;
}

void Gram::set(std::size_t a, std::size_t b, double product) {
  products_[a * capacity_ + b] = products_[b * capacity_ + a] = static_cast<float>(product);
}

/// Calls visit(first, last) for the chunks of new slots that are this part's.
template <class Visit>
void Gram::for_new_slots(std::uint32_t part, std::uint32_t parts, Visit&& visit) const {
  const std::size_t chunks = (size() - filled_ + kChunk - 1) / kChunk;
  for (std::size_t chunk = part; chunk < chunks; chunk += parts) {
    const std::size_t first = filled_ + chunk * kChunk;
    visit(first, std::min(size(), first + kChunk));
  }
}

void Gram::fill(std::uint32_t part, std::uint32_t parts) {
  std::vector<double> scratch(design_.is_dense() ? 0 : design_.rows(), 0.0);
  for_new_slots(part, parts, [&](std::size_t first, std::size_t last) {
    if (design_.is_dense()) {
      fill_dense(first, last);
    } else {
      fill_sparse(first, last, scratch);
    }
  });
}

void Gram::pack(std::uint32_t part, std::uint32_t parts, Bytes& out) const {
  for_new_slots(part, parts, [&](std::size_t first, std::size_t last) {
    for (std::size_t a = first; a < last; ++a) put_all(out, std::span(row(a), a + 1));
  });
}

void Gram::take(std::uint32_t part, std::uint32_t parts, WireReader& in) {
  for_new_slots(part, parts, [&](std::size_t first, std::size_t last) {
    for (std::size_t a = first; a < last; ++a) {
      in.take_all(std::span(products_).subspan(a * capacity_, a + 1));
      for (std::size_t b = 0; b < a; ++b) products_[b * capacity_ + a] = products_[a * capacity_ + b];
    }
  });
}

// Slots [first, last) against all before `last`, in panels of rows that are standardised as they are packed.
void Gram::fill_dense(std::size_t first, std::size_t last) {
  const Kernels& kernels = design_.kernels();
  const auto n = static_cast<std::size_t>(design_.rows());
  const std::size_t width = (last + 3) / 4 * 4;
  std::vector<float> left(kChunk * kPanel, 0.0F), right(4 * kPanel, 0.0F);
  std::vector<double> sums(kChunk * width, 0.0);
  const auto pack = [&](std::size_t slot, std::size_t row, std::size_t rows, float* to) {
    const std::uint32_t j = columns_[slot];
    kernels.standardise(design_.view(j).values + row, design_.mean(j), design_.inverse_scale(j), to, rows);
  };
  for (std::size_t row = 0; row < n; row += kPanel) {
    const std::size_t rows = std::min(kPanel, n - row);
    for (std::size_t a = first; a < last; ++a) pack(a, row, rows, left.data() + (a - first) * kPanel);
    for (std::size_t b = 0; b < width; b += 4) {
      for (std::size_t i = 0; i < 4 && b + i < last; ++i) pack(b + i, row, rows, right.data() + i * kPanel);
      for (std::size_t a = 0; a < kChunk; a += 4) {
        std::array<float, 16> tile{};
        kernels.tile(left.data() + a * kPanel, kPanel, right.data(), kPanel, rows, tile.data());
        for (std::size_t i = 0; i < 16; ++i) sums[(a + i / 4) * width + b + i % 4] += double{tile[i]};
      }
    }
  }
  const double per_row = 1.0 / static_cast<double>(n);
  for (std::size_t a = first; a < last; ++a) {
    for (std::size_t b = 0; b <= a; ++b) set(a, b, sums[(a - first) * width + b] * per_row);
  }
}

void Gram::fill_sparse(std::size_t first, std::size_t last, std::span<double> scratch) {
  const double per_row = 1.0 / static_cast<double>(design_.rows());
  for (std::size_t a = first; a < last; ++a) {
    const std::uint32_t j = columns_[a];
    const ColumnView x = design_.view(j);
    design_.kernels().add(x, 1.0, scratch.data());
    for (std::size_t b = 0; b <= a; ++b) {
      const std::uint32_t k = columns_[b];
      const double raw = design_.kernels().dot(design_.view(k), scratch.data());
      set(a, b, (raw * per_row - design_.product_of_means(j, k)) * design_.inverse_scale(j) * design_.inverse_scale(k));
    }
    for (std::size_t i = 0; i < x.count; ++i) scratch[x.rows[i]] = 0;
  }
}

void GramDescent::move(std::uint32_t slot, double step) {
  square -= step * (2 * gradient[slot] - step * design_.curvature(gram_.column(slot)));
  coefficients[slot] += step;
  design_.kernels().add_row(gram_.row(slot), -step, gradient.data(), gradient.size());
}

/// @return half the sum of curvature times squared step: at most what the objective fell by
double GramDescent::sweep(Penalty penalty) {
  double fall = 0;
  for (const std::uint32_t s : working) {
    const double curvature = design_.curvature(gram_.column(s));
    const double to = best_coefficient(coefficients[s], gradient[s], curvature, penalty);
    const double step = to - coefficients[s];
    if (step == 0) continue;
    move(s, step);
    coefficients[s] = to;
    fall += 0.5 * (curvature + penalty.l2) * step * step;
  }
  return fall;
}

double GramDescent::gap(Penalty penalty) const {
  GapSums sums;
  sums.square = square;
  for (const std::uint32_t s : working) sums.add(coefficients[s], gradient[s], penalty);
  return primal_value(sums, penalty) - dual_value(sums, penalty);
}

double GramDescent::objective(Penalty penalty) const {
  GapSums sums;
  sums.square = square;
  for (const std::uint32_t s : working) sums.add(coefficients[s], 0, penalty);
  return primal_value(sums, penalty);
}

void GramDescent::solve(Penalty penalty, double enough) {
  constexpr int kMostRounds = 100, kMostSweeps = 20;
  for (int round = 0; round < kMostRounds; ++round) {
    // As much descent as a factorisation costs: s³/6 against slots for each of s that move.
    const double support = static_cast<double>(support_.size()), slots = static_cast<double>(gram_.size());
    const int sweeps = std::clamp(static_cast<int>(support * support / (6 * slots)), 1, kMostSweeps);
    double fall = 0;
    for (int k = 0; k < sweeps; ++k) {
      fall = sweep(penalty);
      if (fall < 0.1 * enough) break;
    }
    if (gap(penalty) <= enough) return;
    if (!newton(penalty) && !(fall > 1e-15 * square)) return;
  }
}

bool GramDescent::factorise(Penalty penalty) {
  constexpr float kLift = 1e-6F;  // of the curvature: above the rounding of the products
  const std::size_t n = support_.size();
  factor_.assign((n + 3) / 4 * 4 * n, 0.0F);
  for (std::size_t i = 0; i < n; ++i) {
    const float* row = gram_.row(support_[i]);
    for (std::size_t j = 0; j <= i; ++j) factor_[i * n + j] = row[support_[j]];
    factor_[i * n + i] += static_cast<float>(penalty.l2) + kLift * row[support_[i]];
  }
  constexpr std::size_t kBlock = 32;
  for (std::size_t first = 0; first < n; first += kBlock) {
    const std::size_t last = std::min(n, first + kBlock);
    // Rows from `first` on lose what the columns before it account for; then the block itself, row by row.
    for (std::size_t j = first; j < last; j += 4) {
      for (std::size_t i = j; i < n && first > 0; i += 4) {
        std::array<float, 16> sums{};
        const std::size_t rows = std::min<std::size_t>(4, n - i), columns = std::min<std::size_t>(4, n - j);
        const std::size_t a = std::min(i, n < 4 ? 0 : n - 4), b = std::min(j, n < 4 ? 0 : n - 4);
        design_.kernels().tile(factor_.data() + a * n, n, factor_.data() + b * n, n, first, sums.data());
        for (std::size_t r = 0; r < rows; ++r) {
          for (std::size_t c = 0; c < columns && j + c < last && j + c <= i + r; ++c) {
            factor_[(i + r) * n + j + c] -= sums[(i + r - a) * 4 + (j + c - b)];
          }
        }
      }
    }
    for (std::size_t i = first; i < n; ++i) {
      float* row = factor_.data() + i * n;
      for (std::size_t j = first; j < std::min(last, i + 1); ++j) {
        const float* other = factor_.data() + j * n;
        float sum = row[j];
        for (std::size_t k = first; k < j; ++k) sum -= row[k] * other[k];
        if (j < i) {
          row[j] = sum / other[j];
        } else if (sum > 0) {
          row[j] = std::sqrt(sum);
        } else {
          return false;
        }
      }
    }
  }
  return true;
}

void GramDescent::solve_factored(std::span<double> vector) const {
  const std::size_t n = support_.size();
  for (std::size_t i = 0; i < n; ++i) {
    const float* row = factor_.data() + i * n;
    double sum = vector[i];
    for (std::size_t k = 0; k < i; ++k) sum -= double{row[k]} * vector[k];
    vector[i] = sum / double{row[i]};
  }
  for (std::size_t i = n; i-- > 0;) {
    const float* row = factor_.data() + i * n;
    vector[i] /= double{row[i]};
    design_.kernels().add_row(row, -vector[i], vector.data(), i);
  }
}

/// One step to the minimum of the support's smooth problem, and once more from there with the same factor.
/// @return false when nothing was gained
bool GramDescent::newton(Penalty penalty) {
  support_.clear();
  for (const std::uint32_t s : working) {
    if (coefficients[s] != 0) support_.push_back(s);
  }
  if (support_.empty() || !factorise(penalty)) return false;
  bool gained = false;
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<double> target(support_.size());
    for (std::size_t i = 0; i < support_.size(); ++i) {
      const std::uint32_t s = support_[i];
      target[i] = gradient[s] - penalty.l2 * coefficients[s] - std::copysign(penalty.l1, coefficients[s]);
    }
    solve_factored(target);
    bool is_inside = true;
    for (std::size_t i = 0; i < support_.size(); ++i) {
      const double now = coefficients[support_[i]];
      target[i] += now;
      is_inside = is_inside && target[i] * now > 0;
    }
    if (!take(target, objective(penalty), penalty)) break;
    gained = true;
    if (!is_inside) break;
  }
  return gained;
}

bool GramDescent::take(std::span<const double> target, double before, Penalty penalty) {
  const std::vector<double> old_coefficients = coefficients, old_gradient = gradient;
  const double old_square = square;
  const auto go = [&](auto&& to) {
    for (std::size_t i = 0; i < support_.size(); ++i) {
      const double value = to(i), step = value - old_coefficients[support_[i]];
      if (step == 0) continue;
      move(support_[i], step);
      coefficients[support_[i]] = value;
    }
    if (objective(penalty) < before) return true;
    coefficients = old_coefficients;
    gradient = old_gradient;
    square = old_square;
    return false;
  };
  const auto now = [&](std::size_t i) { return old_coefficients[support_[i]]; };
  if (go([&](std::size_t i) { return target[i] * now(i) > 0 ? target[i] : 0.0; })) return true;
  double length = 1;
  std::size_t first = support_.size();
  for (std::size_t i = 0; i < support_.size(); ++i) {
    if (target[i] * now(i) > 0) continue;
    const double until = now(i) / (now(i) - target[i]);
    if (until < length) {
      length = until;
      first = i;
    }
  }
  if (first == support_.size()) return false;
  return go([&](std::size_t i) { return i == first ? 0.0 : now(i) + length * (target[i] - now(i)); });
}

}  // namespace orrery::lasso
