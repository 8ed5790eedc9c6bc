// Gibbs sampling kernels in the instructions that every x86-64 has; see lda_kernels.inc. Written with the vector types
// of GCC and Clang, so they compile for any other processor too.
#include "algorithms/lda_kernels.h"

namespace orrery::lda {
namespace {

constexpr std::size_t kLanes = 4;
using Float4 = float __attribute__((vector_size(16)));
using Int4 = std::int32_t __attribute__((vector_size(16)));

struct Wide {
  Float4 v;
  static Wide zero() { return {Float4{0, 0, 0, 0}}; }
  static Wide splat(float x) { return {Float4{x, x, x, x}}; }
  static Wide load(const float* p) {
    Wide out;
    __builtin_memcpy(&out.v, p, sizeof out.v);
    return out;
  }
  static Wide load_counts(const std::int32_t* p) {
    Int4 counts;
    __builtin_memcpy(&counts, p, sizeof counts);
    return {__builtin_convertvector(counts, Float4)};
  }
  static Wide gather(const float* base, const std::uint32_t* at) {
    return {Float4{base[at[0]], base[at[1]], base[at[2]], base[at[3]]}};
  }
  void store(float* p) const { __builtin_memcpy(p, &v, sizeof v); }
  /// Two roundings: this level has no fused operation.
  static Wide fma(Wide a, Wide b, Wide c) { return {a.v * b.v + c.v}; }
  friend Wide operator+(Wide a, Wide b) { return {a.v + b.v}; }
  friend Wide operator*(Wide a, Wide b) { return {a.v * b.v}; }
  /// Lane l becomes the sum of the lanes up to it.
  Wide prefix() const {
    Wide out = *this;
    for (int l = 1; l < 4; ++l) out.v[l] += out.v[l - 1];
    return out;
  }
  float last() const { return v[3]; }
  /// The lane becomes smaller by x.
  Wide less_at(std::size_t lane, float x) const {
    Wide out = *this;
    out.v[lane] -= x;
    return out;
  }
  /// The first lane above x, kLanes if there is none. Lanes ascend.
  std::size_t first_above(float x) const {
    std::size_t lane = 0;
    while (lane < kLanes && !(v[lane] > x)) ++lane;
    return lane;
  }
};

/// The first i = first, first + step, … < count with running[i * kLanes + lane] - (i < from ? 0 : less) > x, else
/// count; these values ascend.
inline std::size_t first_above_by_steps(const float* running, std::size_t lane, const Steps& steps, float x,
                                        std::size_t from, float less) {
  std::size_t i = steps.first;
  while (i < steps.count && !(running[i * kLanes + lane] > (i < from ? x : x + less))) i += steps.step;
  return i < steps.count ? i : steps.count;
}

#include "algorithms/lda_list.inc"

#include "algorithms/lda_kernels.inc"

}  // namespace

const Kernels& portable_kernels() {
  static constexpr Kernels kTable{sample_dense, sample_sparse};
  return kTable;
}

}  // namespace orrery::lda
