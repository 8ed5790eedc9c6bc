// Sparse rows with a label each: svmlight / LIBSVM files, and word counts in that spelling.
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

/// Compressed sparse rows. Row r holds the entries [starts[r], starts[r + 1]); columns are 0-based and ascend in a row.
/// 8 bytes an entry, 16 a row.
struct SparseRows {
  std::vector<double> labels;
  std::vector<std::uint64_t> starts{0};
  std::vector<std::uint32_t> columns;
  std::vector<float> values;
  std::uint32_t column_count = 0;  ///< one more than the highest column that occurs

  std::uint64_t rows() const { return labels.size(); }
  std::uint64_t entries() const { return columns.size(); }
};

struct SparseOptions {
  ReadOptions read;
};

struct SparseData {
  SparseRows rows;
  Labels labels;
  std::uint64_t checksum = 0;  ///< of the content, whatever the spelling of numbers
  Recognised recognised;
  std::vector<std::string> warnings;
};

/// Of the content, whatever the spelling of numbers and however it was read.
std::uint64_t checksum_of(const SparseRows& rows);

/// Reads `label index:value … # comment` lines; indices are 1-based in the file, `qid:N` is ignored. Parsed in
/// parallel; the result does not depend on it. Throws data_error with file, line and column for the first bad line: a
/// label or value that is no finite number, index 0, indices that do not ascend, an index above 2^32 − 2; and for a
/// file without rows.
SparseData read_svmlight(const std::string& path, const SparseOptions& options = {});

/// The same rows from an open file, without recognising labels; what a corpus of word counts is read with.
SparseRows read_sparse_rows(class InputFile& file, const ReadOptions& options, std::vector<std::string>& warnings);

}  // namespace orrery
