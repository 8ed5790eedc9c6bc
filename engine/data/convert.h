// `orrery data convert`: a data set in another spelling.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/format.h"
#include "engine/data/parallel_for.h"

namespace orrery {

struct ConvertOptions {
  ReadOptions read;
  std::optional<DataFormat> from;  ///< instead of what the content says
  DataFormat to = DataFormat::csv;
  std::string label;            ///< csv, npy to svmlight: the label column, see DenseOptions; empty: labels 0
  std::string vocabulary_path;  ///< corpora: see CorpusOptions
};

struct ConvertResult {
  Recognised from;
  std::uint64_t items = 0;                        ///< ratings, rows, documents or edges
  std::vector<std::filesystem::path> also_files;  ///< written beside: ids or words that the target cannot hold
  std::vector<std::string> warnings;              ///< of reading
};

/// The targets that make sense for a format, for messages: "csv, npy".
std::string convert_targets(DataFormat from);

/// Converts ratings and matrix-market into each other; csv and npy into each other and into svmlight; svmlight into csv
/// and npy (label last); docword, text and svmlight into docword and svmlight; edges into matrix-market. Ids that are
/// no indices go to OUTPUT.users and OUTPUT.items (OUTPUT.nodes), words of a text to OUTPUT.vocab, an entry a line.
/// Throws usage_error for another pair of formats, naming those that are possible, and for a dense table that would be
/// 100 times larger than its entries; data_error for bad input; output_error when a file cannot be written.
ConvertResult convert_data(const std::string& input, const std::filesystem::path& output,
                           const ConvertOptions& options);

}  // namespace orrery
