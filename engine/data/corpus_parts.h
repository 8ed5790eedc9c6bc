// Inner steps of the corpus reader, shared by its spellings.
#pragma once

#include "engine/data/corpus.h"
#include "engine/data/input_file.h"

namespace orrery {

/// One cell before documents are put together.
struct CorpusCell {
  std::uint32_t document;
  std::uint32_t word;
  std::uint32_t count;
};

/// Builds the corpus from cells in any order: words ascend within a document, doubled cells are added up. Returns how
/// many cells were doubled. Throws data_error when a sum passes 2^32 − 1.
std::uint64_t build_corpus(const InputFile& file, const std::vector<CorpusCell>& cells, std::uint32_t documents,
                           Corpus& corpus);

void read_docword(InputFile& file, const CorpusOptions& options, CorpusData& data);
void read_text_corpus(InputFile& file, const CorpusOptions& options, CorpusData& data);
void read_svmlight_corpus(InputFile& file, const CorpusOptions& options, CorpusData& data);

}  // namespace orrery
