// Data sets back to files, each in one spelling: what split and convert write with. All go through AtomicFile; numbers
// are spelled so that reading them gives the same bits.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/data/corpus.h"
#include "engine/data/dense.h"
#include "engine/data/edges.h"
#include "engine/data/ratings.h"
#include "engine/data/sparse_rows.h"
#include "engine/data/text_writer.h"

namespace orrery {

/// Throws usage_error for a name that promises compression.
void refuse_compressed_output(const std::filesystem::path& path);

/// `user item rating` lines with the ids of the maps. Values that are missing are left out.
void put_ratings(TextWriter& out, const RatingsData& data);
/// MatrixMarket coordinate. With `ids` the integer ids are the indices (they must start at 1 or above), otherwise the
/// dense indices + 1.
void put_matrix_market(TextWriter& out, const RatingsData& data, bool ids);
void put_matrix_market(TextWriter& out, const EdgeData& data);
void put_svmlight(TextWriter& out, const SparseRows& rows);
/// Label 0 and word counts.
void put_svmlight(TextWriter& out, const Corpus& corpus);
/// The documents of a corpus whose number is in `documents`, numbered anew.
void put_docword(TextWriter& out, const Corpus& corpus, std::span<const std::uint64_t> documents);
/// Rows of a table; names go into a header line when there are as many as columns.
void put_csv(TextWriter& out, const DenseMatrix& matrix, std::span<const std::string> names);
/// All documents of a corpus.
std::vector<std::uint64_t> all_documents(const Corpus& corpus);

}  // namespace orrery
