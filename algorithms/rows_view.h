// Sparse rows as kernels take them. A header of its own, free of code, because kernels are compiled with it for more
// than the baseline processor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace orrery {

/// Consecutive rows of a table. Row r has the entries [starts[r], starts[r + 1]) of the arrays below it.
struct RowsView {
  const std::uint64_t* starts;
  const std::uint32_t* columns;
  const float* values;  ///< null: every entry is 1, and only the columns are read
  std::size_t rows;
};

}  // namespace orrery
