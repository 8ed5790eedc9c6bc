// Matrix factorisation kernels in the instructions that every x86-64 has; see mf_kernels.inc. Written with the vector
// types of GCC and Clang, so they compile for any other processor too.
#include <cmath>

#include "algorithms/mf_kernels.h"

namespace orrery::mf {
namespace {

constexpr std::size_t kLanes = 4;
using Float4 = float __attribute__((vector_size(16)));

inline Float4 load4(const float* p) {
  Float4 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
inline void store4(float* p, Float4 v) { __builtin_memcpy(p, &v, sizeof v); }
inline Float4 splat4(float x) { return Float4{x, x, x, x}; }

struct Wide {
  Float4 v;
  static Wide zero() { return {splat4(0.0F)}; }
  static Wide splat(float x) { return {splat4(x)}; }
  static Wide load(const float* p) { return {load4(p)}; }
  void store(float* p) const { store4(p, v); }
  /// Two roundings: this level has no fused operation.
  static Wide fma(Wide a, Wide b, Wide c) { return {a.v * b.v + c.v}; }
  friend Wide operator*(Wide a, Wide b) { return {a.v * b.v}; }
};

/// Eight floats as two halves.
struct Eight {
  Float4 low, high;
  static Eight splat(float x) { return {splat4(x), splat4(x)}; }
  static Eight load(const float* p) { return {load4(p), load4(p + 4)}; }
  void store(float* p) const {
    store4(p, low);
    store4(p + 4, high);
  }
  friend Eight operator+(Eight a, Eight b) { return {a.low + b.low, a.high + b.high}; }
  friend Eight operator-(Eight a, Eight b) { return {a.low - b.low, a.high - b.high}; }
  friend Eight operator*(Eight a, Eight b) { return {a.low * b.low, a.high * b.high}; }
  friend Eight operator/(Eight a, Eight b) { return {a.low / b.low, a.high / b.high}; }
  Eight sqrt() const {
    Eight out = *this;
    for (int i = 0; i < 4; ++i) {
      out.low[i] = __builtin_sqrtf(low[i]);
      out.high[i] = __builtin_sqrtf(high[i]);
    }
    return out;
  }
  float lane0() const { return low[0]; }
  template <int N>
  Eight first() const {
    Eight out = *this;
    for (int i = 0; i < 4; ++i) {
      if (i >= N) out.low[i] = 0.0F;
      if (i + 4 >= N) out.high[i] = 0.0F;
    }
    return out;
  }
  float sum() const {
    const Float4 four = low + high;
    return (four[0] + four[2]) + (four[1] + four[3]);
  }
  static Float4 lane_sums(const Wide* x) {
    Float4 a = x[0].v, b = x[1].v, c = x[2].v, d = x[3].v;
    transpose(a, b, c, d);
    return (a + b) + (c + d);
  }
  static Eight dots(const Wide* sums) { return {lane_sums(sums), lane_sums(sums + 4)}; }

  static void transpose(Float4& a, Float4& b, Float4& c, Float4& d) {
    const Float4 ab0{a[0], b[0], a[1], b[1]}, ab1{a[2], b[2], a[3], b[3]};
    const Float4 cd0{c[0], d[0], c[1], d[1]}, cd1{c[2], d[2], c[3], d[3]};
    a = Float4{ab0[0], ab0[1], cd0[0], cd0[1]};
    b = Float4{ab0[2], ab0[3], cd0[2], cd0[3]};
    c = Float4{ab1[0], ab1[1], cd1[0], cd1[1]};
    d = Float4{ab1[2], ab1[3], cd1[2], cd1[3]};
  }
  template <int N, int From>
  static void load_half(Side* const* sides, Float4& a, Float4& b, Float4& c, Float4& d) {
    a = b = c = d = splat4(0.0F);
    if constexpr (From + 0 < N) a = load4(&sides[From + 0]->bias);
    if constexpr (From + 1 < N) b = load4(&sides[From + 1]->bias);
    if constexpr (From + 2 < N) c = load4(&sides[From + 2]->bias);
    if constexpr (From + 3 < N) d = load4(&sides[From + 3]->bias);
    transpose(a, b, c, d);
  }
  template <int N, int From>
  static void store_half(Side* const* sides, Float4 a, Float4 b, Float4 c, Float4 d) {
    transpose(a, b, c, d);
    if constexpr (From + 0 < N) store4(&sides[From + 0]->bias, a);
    if constexpr (From + 1 < N) store4(&sides[From + 1]->bias, b);
    if constexpr (From + 2 < N) store4(&sides[From + 2]->bias, c);
    if constexpr (From + 3 < N) store4(&sides[From + 3]->bias, d);
  }
  template <int N>
  static void load_sides(Side* const* sides, Eight& bias, Eight& energy, Eight& decay, Eight& bias_decay) {
    load_half<N, 0>(sides, bias.low, energy.low, decay.low, bias_decay.low);
    load_half<N, 4>(sides, bias.high, energy.high, decay.high, bias_decay.high);
  }
  template <int N>
  static void store_sides(Side* const* sides, Eight bias, Eight energy, Eight decay, Eight bias_decay) {
    store_half<N, 0>(sides, bias.low, energy.low, decay.low, bias_decay.low);
    store_half<N, 4>(sides, bias.high, energy.high, decay.high, bias_decay.high);
  }
};

#include "algorithms/mf_kernels.inc"
#include "algorithms/mf_solve.inc"

}  // namespace

const Kernels& portable_kernels() {
  static constexpr Kernels kTable{train_cell, measure, solve_row, dot};
  return kTable;
}

}  // namespace orrery::mf
