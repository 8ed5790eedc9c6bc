// Dense tables of numbers: CSV (commas, semicolons, tabs or blanks) and NumPy's .npy.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/data/format.h"
#include "engine/data/labels.h"
#include "engine/data/parallel_for.h"

namespace orrery {

/// A matrix by rows, in double precision.
struct DenseMatrix {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::vector<double> values;

  std::span<const double> row(std::uint64_t r) const {
    return std::span{values}.subspan(static_cast<std::size_t>(r * columns), static_cast<std::size_t>(columns));
  }
};

struct DenseOptions {
  ReadOptions read;
  std::optional<DataFormat> format;  ///< csv or npy instead of what the content says
  /// Takes this column out of the matrix as labels: a name of the header line, or a number from 1, or from −1 for the
  /// last. Empty: no labels.
  std::string label;
};

struct DenseData {
  DenseMatrix matrix;
  std::vector<std::string> column_names;  ///< without the label's; empty when the file names none
  std::vector<double> label_values;
  Labels labels;
  std::uint64_t checksum = 0;
  Recognised recognised;
  std::vector<std::string> warnings;
};

/// Reads a table. CSV: every line as many numbers as the first; the first line is a header when no field of it is a
/// number. Parsed in parallel; the result does not depend on it. Throws data_error with the place for a missing or
/// surplus column, for what is no finite number, for an empty table, for a .npy of another type or rank; usage_error
/// for a label column that does not exist.
DenseData read_dense(const std::string& path, const DenseOptions& options = {});

/// Reads a .npy of rank 1 (a column) or 2: f4, f8, i4, i8, little endian, C or Fortran order, header versions 1 to 3.
/// Memory grows with what the file really holds, never with what its header promises.
DenseMatrix read_npy_matrix(class InputFile& file);

}  // namespace orrery
