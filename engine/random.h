// Random numbers that are a pure function of (seed, purpose, clock, item): nothing is drawn from a shared state, so the
// answer cannot depend on which thread draws first. This is the ground of the promise "bitwise the same for any number
// of threads and ranks" (design, section 5). Compile with -ffp-contract=off, as this project does, or normal() may
// differ in the last bit between machines.
//
// Method: Philox4x32-10 of J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), from Random123.
#pragma once

#include <Random123/philox.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "engine/types.h"

namespace orrery {

/// What a number is drawn for; two purposes never share a number. The values are part of the result of every run: never
/// change or reuse one, only add.
enum class Purpose : std::uint32_t {
  initial_model = 1,      ///< starting values of parameters
  block_order = 2,        ///< the order in which workers visit blocks
  data_order = 3,         ///< shuffling of data inside a block or shard
  data_split = 4,         ///< training and held-out parts
  generator = 5,          ///< synthetic data
  coordinate_choice = 6,  ///< scheduled model parallelism: which coordinates are candidates
  sampling = 7,           ///< Gibbs and Metropolis-Hastings draws
  simulated_network = 8,  ///< delays, reordering and losses of the simulated transport
  spot_check = 9,         ///< which entries a verifier looks at
  unit_order = 10,        ///< the order of units inside a clock
  id_map = 11,            ///< relabelling of rows or columns to balance blocks
  test = 1000             ///< tests only
};

/// Consecutive draws for one (seed, purpose, clock, item). Cheap to make (no set-up beyond copying a key), 2^34 words
/// long. Not shared between threads: each unit makes its own.
class RandomStream {
 public:
  using result_type = std::uint32_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }

  /// `key` and `counter` as Random makes them; counter[0] counts the blocks of four words drawn.
  RandomStream(std::array<std::uint32_t, 2> key, std::array<std::uint32_t, 4> counter) : key_(key), counter_(counter) {}

  /// The next 32 uniform bits. About 3 ns.
  std::uint32_t next() {
    if (used_ == 4) refill();
    return words_[used_++];
  }
  std::uint32_t operator()() { return next(); }
  /// The next 64 uniform bits.
  std::uint64_t next64() {
    const std::uint64_t low = next();
    return low | std::uint64_t{next()} << 32;
  }
  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(next64() >> 11) * 0x1p-53; }
  /// Uniform in [0, 1), a multiple of 2^-24.
  float uniform_float() { return static_cast<float>(next() >> 8) * 0x1p-24F; }
  /// Uniform in {0, …, n-1} without bias; n >= 1. Method: D. Lemire, "Fast random integer generation in an interval"
  /// (2019).
  std::uint64_t below(std::uint64_t n) {
    return n <= ~std::uint32_t{0} ? below32(static_cast<std::uint32_t>(n)) : below64(n);
  }
  /// Standard normal. Method: G. Marsaglia's polar method, with a logarithm of our own because the C library's picks
  /// its code by processor. About 20 ns.
  double normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    for (;;) {
      const double x = 2.0 * uniform() - 1.0;
      const double y = 2.0 * uniform() - 1.0;
      const double square = x * x + y * y;
      if (square >= 1.0 || square == 0.0) continue;
      const double scale = std::sqrt(-2.0 * log_of_unit(square) / square);
      spare_ = y * scale;
      has_spare_ = true;
      return x * scale;
    }
  }

 private:
  void refill() {
    const r123::Philox4x32::ctr_type in{{counter_[0], counter_[1], counter_[2], counter_[3]}};
    const r123::Philox4x32::key_type key{{key_[0], key_[1]}};
    const auto out = r123::Philox4x32{}(in, key);
    for (std::size_t i = 0; i < 4; ++i) words_[i] = out[i];
    ++counter_[0];
    used_ = 0;
  }
  std::uint32_t below32(std::uint32_t n) {
    std::uint64_t product = std::uint64_t{next()} * n;
    if (static_cast<std::uint32_t>(product) < n) {
      const std::uint32_t threshold = (0U - n) % n;
      while (static_cast<std::uint32_t>(product) < threshold) product = std::uint64_t{next()} * n;
    }
    return static_cast<std::uint32_t>(product >> 32);
  }
  std::uint64_t below64(std::uint64_t n) {
    const std::uint64_t threshold = (std::uint64_t{0} - n) % n;
    for (;;) {
      const std::uint64_t draw = next64();
      if (draw >= threshold) return draw % n;
    }
  }
  /// Natural logarithm of x in (0, 1], to about 1 ulp: x = 2^e m with m near 1, log m = 2 atanh((m-1)/(m+1)) by its
  /// series.
  static double log_of_unit(double x) {
    constexpr double kLog2 = 0.6931471805599453094;
    constexpr double kSqrt2 = 1.4142135623730950488;
    int exponent = 0;
    double m = 2.0 * std::frexp(x, &exponent);
    --exponent;
    if (m > kSqrt2) {
      m *= 0.5;
      ++exponent;
    }
    const double t = (m - 1.0) / (m + 1.0);
    const double square = t * t;
    double sum = 0.0;
    for (int k = 23; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
    return exponent * kLog2 + 2.0 * t * sum;
  }

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> words_{};
  std::uint32_t used_ = 4;
  bool has_spare_ = false;
  double spare_ = 0.0;
};

/// The random numbers of one seed and one purpose. Immutable, so any number of threads may use one object; 8 bytes.
class Random {
 public:
  Random(std::uint64_t seed, Purpose purpose) : Random(seed, static_cast<std::uint32_t>(purpose)) {}
  /// For purposes that an algorithm numbers itself; take values from 2000 up.
  Random(std::uint64_t seed, std::uint32_t purpose) {
    // One Philox call folds seed and purpose into a key, so that neighbouring seeds and purposes are unrelated.
    const r123::Philox4x32::ctr_type in{{purpose, 0, 0, 0x6f727279U}};
    const r123::Philox4x32::key_type key{{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
    const auto out = r123::Philox4x32{}(in, key);
    key_ = {out[0], out[1]};
  }

  /// The draws of (clock, item), from the beginning.
  RandomStream stream(Clock clock, std::uint64_t item) const {
    const auto bits = static_cast<std::uint64_t>(clock);
    return {{key_[0], key_[1] ^ static_cast<std::uint32_t>(bits >> 32)},
            {0, static_cast<std::uint32_t>(item), static_cast<std::uint32_t>(item >> 32),
             static_cast<std::uint32_t>(bits)}};
  }
  /// The first four words of stream(clock, item): one Philox call, about 8 ns.
  std::array<std::uint32_t, 4> at(Clock clock, std::uint64_t item) const {
    RandomStream draws = stream(clock, item);
    return {draws.next(), draws.next(), draws.next(), draws.next()};
  }
  /// The first draw of stream(clock, item), in [0, 1).
  double uniform(Clock clock, std::uint64_t item) const { return stream(clock, item).uniform(); }
  float uniform_float(Clock clock, std::uint64_t item) const { return stream(clock, item).uniform_float(); }
  /// The first draw of stream(clock, item), in {0, …, n-1}; n >= 1.
  std::uint64_t below(std::uint64_t n, Clock clock, std::uint64_t item) const { return stream(clock, item).below(n); }
  /// The first normal draw of stream(clock, item).
  double normal(Clock clock, std::uint64_t item) const { return stream(clock, item).normal(); }

  /// Puts `values` into an order that depends on (seed, purpose, clock, item) and the length only (Fisher-Yates).
  template <class T>
  void shuffle(std::span<T> values, Clock clock, std::uint64_t item) const {
    RandomStream draws = stream(clock, item);
    for (std::size_t left = values.size(); left > 1; --left) {
      using std::swap;
      swap(values[left - 1], values[static_cast<std::size_t>(draws.below(left))]);
    }
  }
  /// A permutation of 0, …, n-1: shuffle() of the identity.
  std::vector<std::uint32_t> permutation(std::uint32_t n, Clock clock, std::uint64_t item) const {
    std::vector<std::uint32_t> order(n);
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    shuffle(std::span<std::uint32_t>{order}, clock, item);
    return order;
  }

 private:
  std::array<std::uint32_t, 2> key_{};
};

}  // namespace orrery
