// The data that micro-benchmarks and instruction counts work on: made from seeds, of the shape that the macro case of
// ten million ratings gives to one worker, so that a kernel meets the caches as it does in a real run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "algorithms/mf_kernels.h"
#include "algorithms/mf_layout.h"
#include "engine/data/rating_store.h"

namespace orrery::bench {

/// Zeroed memory, aligned to 2 MiB and advised for huge pages like the engine's own, touched when it is made.
class HugeArray {
 public:
  explicit HugeArray(std::size_t bytes);
  std::size_t bytes() const noexcept { return bytes_; }
  template <class T>
  T* as() const noexcept {
    return reinterpret_cast<T*>(memory_.get());
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

/// The size of a factorisation problem, whole or cut down.
struct RatingsShape {
  std::size_t rows = 6250;         ///< users of one of 16 stripes of 100,000
  std::size_t columns = 20000;     ///< items
  std::uint64_t ratings = 562500;  ///< a sixteenth of nine million
};

/// Ratings with uniform users, p(item) ~ 1/(item + 1) and standard normal values.
RatingStore make_ratings(const RatingsShape& shape, std::uint64_t seed);

/// The same as text, `user item rating` a line.
std::string ratings_text(const RatingsShape& shape, std::uint64_t seed);

/// One stripe of a grid with its factors: what one worker does in one clock.
class FactorWorkload {
 public:
  /// Cut into the blocks that mf::choose_grid gives the macro case at this rank.
  FactorWorkload(const RatingsShape& shape, std::size_t rank);

  /// Trains all cells of the stripe once.
  void train(const mf::Kernels& kernels);
  /// Squared error over all ratings in their order of storage, as an evaluation does it.
  double measure(const mf::Kernels& kernels) const;

  std::uint64_t ratings() const noexcept { return grid_.ratings(); }
  /// Bytes that training one rating reads and, where it also writes them, reads and writes, counted once: the column's
  /// row and its share of the batch's row, ids and value.
  double bytes_per_update() const;

 private:
  std::size_t stride_;
  mf::CellGrid grid_;
  HugeArray row_factors_, column_factors_, row_sides_, column_sides_;
  std::vector<std::uint32_t> test_rows_, test_columns_;
  std::vector<float> test_values_;
};

}  // namespace orrery::bench
