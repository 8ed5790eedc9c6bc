// The header of a MatrixMarket file. The entries are read by the reader of what the matrix stands for (ratings, edges,
// sparse rows). Source of the format: https://math.nist.gov/MatrixMarket/formats.html
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/data/input_file.h"

namespace orrery {

inline constexpr std::string_view kMatrixMarketBanner = "%%MatrixMarket";

struct MatrixMarketHeader {
  enum class Field { real, integer, pattern };
  enum class Symmetry { general, symmetric, skew };
  bool coordinate = true;  ///< otherwise array: all values, column after column
  Field field = Field::real;
  Symmetry symmetry = Symmetry::general;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t entries = 0;  ///< coordinate: lines that follow; array: rows · columns
  std::uint64_t offset = 0;   ///< where the entries begin
  std::uint64_t lines = 0;    ///< lines before them
};

/// Reads the header through peek(), so that nothing is consumed. Sizes are only checked against the limits of the
/// indices (2^32 − 2), and nothing is allocated by them. Throws data_error with the place; complex and Hermitian
/// matrices are refused by name.
MatrixMarketHeader read_matrix_market_header(InputFile& file);

/// Throws data_error when the number of entries read differs from the header's.
void check_matrix_market_entries(const InputFile& file, const MatrixMarketHeader& header, std::uint64_t found);

}  // namespace orrery
