// `orrery data split`: a training and a test part of a data set, item by item at random.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "engine/data/format.h"
#include "engine/data/parallel_for.h"

namespace orrery {

struct SplitOptions {
  ReadOptions read;
  std::optional<DataFormat> format;
  double fraction = 0.1;  ///< of the items, on average, for the test part; in (0, 1)
  std::uint64_t seed = 1;
};

struct SplitResult {
  Recognised recognised;
  std::uint64_t training = 0;  ///< items
  std::uint64_t test = 0;
};

/// Writes both parts in the format of the input, uncompressed. An item is a line of data (copied as it stands), of a
/// docword file a document (numbered anew in each part), of a .npy a row. Item i goes to the test part when the i-th
/// random number of the seed says so: the split depends on the order of the items and the seed only. A header line goes
/// to both parts, comments to none. Lines are not checked beyond what is needed to cut them. Throws data_error for
/// input that cannot be read, usage_error for a fraction outside (0, 1), for a part that would be empty and for output
/// names in .gz, output_error when a part cannot be written; neither file appears then.
SplitResult split_data(const std::string& input, const std::filesystem::path& training,
                       const std::filesystem::path& test, const SplitOptions& options = {});

}  // namespace orrery
