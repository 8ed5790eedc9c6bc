// `orrery data info`: what a data set is, in figures.
#pragma once

#include <optional>
#include <string>

#include "engine/data/format.h"
#include "engine/data/parallel_for.h"

namespace orrery {

struct InfoOptions {
  ReadOptions read;
  std::optional<DataFormat> format;
  std::string label;            ///< dense data, see DenseOptions
  std::string vocabulary_path;  ///< corpora
};

struct DataInfo {
  std::string json;  ///< one object: format, gzip, shape, counts, density, values, skew, checksum, warnings
  std::string text;  ///< the same for people, a line each
};

/// Reads the whole file with its strict reader, so that what info accepts train accepts. Skew is given of the counts in
/// rows and columns (ratings of a user, …): smallest, median, mean, largest, the share that the top 1 % have, and the
/// Gini coefficient. Cost: that of reading, plus one pass and a sort of the row and column counts.
DataInfo data_info(const std::string& path, const InfoOptions& options = {});

}  // namespace orrery
