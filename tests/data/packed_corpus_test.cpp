// Packed corpora: the same corpus back, any range of it by itself, and no damage that goes unseen.
#include "engine/data/packed_corpus.h"

#include <gmock/gmock.h>

#include "engine/data/convert.h"
#include "engine/data/split.h"
#include "tests/data/data_test_support.h"

namespace orrery::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PackedCorpora : public DataTest {
 protected:
  /// A corpus with empty documents, some of many cells, some of one.
  CorpusData sample() {
    std::string text;
    for (int d = 0; d < 300; ++d) {
      for (int i = 0; i < (d % 7) * (d % 5); ++i) text += "w" + std::to_string((d * 31 + i * i) % 97) + " ";
      text += "\n";
    }
    return read_corpus(file("t", text));
  }
  std::string packed(const CorpusData& data) {
    pack_corpus(data, path("p"));
    return path("p");
  }
  std::string fault(const std::string& content) {
    return error_of([&] { read_corpus(file("bad", content)); });
  }
};

TEST_F(PackedCorpora, are_read_as_what_was_packed) {
  const CorpusData data = sample();
  const CorpusData back = read_corpus(packed(data));
  EXPECT_EQ(back.recognised.describe(), "packed");
  EXPECT_EQ(back.corpus.starts, data.corpus.starts);
  EXPECT_EQ(back.corpus.words, data.corpus.words);
  EXPECT_EQ(back.corpus.counts, data.corpus.counts);
  EXPECT_EQ(back.corpus.vocabulary, data.corpus.vocabulary);
  EXPECT_EQ(back.corpus.tokens, data.corpus.tokens);
  EXPECT_EQ(back.checksum, data.checksum);
  EXPECT_TRUE(back.named);
  EXPECT_EQ(PackedCorpus(path("p")).checksum(), data.checksum);
}

TEST_F(PackedCorpora, keep_how_their_words_were_spelled) {
  const CorpusData numbered = read_corpus(packed(read_corpus(file("d", "2\n3\n2\n1 1 2\n2 3 1\n"))));
  EXPECT_FALSE(numbered.named);
  EXPECT_EQ(numbered.corpus.word_count, 3U);
  EXPECT_TRUE(numbered.corpus.vocabulary.empty());
  CorpusOptions options;
  options.keep_case = true;
  EXPECT_TRUE(read_corpus(packed(read_corpus(file("k", "A a\n"), options))).keep_case);
}

TEST_F(PackedCorpora, give_any_range_of_documents_and_all_of_them_in_pieces_of_any_size) {
  const CorpusData data = sample();
  const PackedCorpus corpus(packed(data));
  const Corpus part = corpus.read(33, 77);
  ASSERT_EQ(part.documents(), 44U);
  for (std::size_t d = 0; d < 44; ++d) {
    ASSERT_EQ(part.starts[d + 1] - part.starts[d], data.corpus.starts[d + 34] - data.corpus.starts[d + 33]);
  }
  EXPECT_TRUE(std::equal(part.words.begin(), part.words.end(),
                         data.corpus.words.begin() + static_cast<std::ptrdiff_t>(data.corpus.starts[33])));
  EXPECT_EQ(corpus.read(300, 300).documents(), 0U);
  for (const std::uint64_t cells : {1U, 40U, 100000U}) {
    std::vector<std::uint32_t> words;
    std::uint64_t documents = 0;
    corpus.visit(
        [&](std::uint64_t first, const Corpus& piece) {
          EXPECT_EQ(first, documents);
          documents += piece.documents();
          words.insert(words.end(), piece.words.begin(), piece.words.end());
        },
        cells);
    EXPECT_EQ(documents, 300U);
    EXPECT_EQ(words, data.corpus.words);
  }
}

TEST_F(PackedCorpora, that_are_cut_short_damaged_or_of_another_version_are_refused) {
  const std::string whole = read(packed(sample()));
  for (std::size_t size : {std::size_t{8}, std::size_t{127}, std::size_t{128}, whole.size() / 2, whole.size() - 1}) {
    EXPECT_THAT(fault(whole.substr(0, size)), HasSubstr("is truncated")) << size;
  }
  EXPECT_THAT(fault(whole + "x"), HasSubstr("is damaged: expected " + std::to_string(whole.size()) + " bytes"));
  std::string other = whole;
  other[8] = 2;
  EXPECT_THAT(fault(other), HasSubstr("expected a packed corpus of version 1, got version 2"));
  // One flipped bit anywhere but in the padding; a prime step, so that every part is hit.
  std::size_t unseen = 0;
  for (std::size_t at = 8; at < whole.size(); at += 37) {
    std::string bad = whole;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    try {
      read_corpus(file("bad", bad));
      ++unseen;
      EXPECT_EQ(whole[at], '\0');
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
    }
  }
  EXPECT_LE(unseen, 4U) << "only the padding may differ unseen";
  EXPECT_THAT(fault(gzip(whole)), HasSubstr("expected a plain file"));
}

TEST_F(PackedCorpora, are_translated_to_the_words_of_a_model) {
  const std::string corpus = packed(read_corpus(file("t", "c a b a\n\nz\n")));
  const std::vector<std::string> known = {"a", "b", "c"};
  CorpusOptions options;
  options.vocabulary = &known;
  const CorpusData data = read_corpus(corpus, options);
  EXPECT_THAT(data.corpus.words, ElementsAre(0U, 1U, 2U));
  EXPECT_THAT(data.corpus.counts, ElementsAre(2U, 1U, 1U));
  EXPECT_EQ(data.corpus.documents(), 3U);
  EXPECT_EQ(data.unknown_tokens, 1U);
  EXPECT_THAT(data.warnings, ElementsAre(HasSubstr("1 of 5 tokens")));
}

TEST_F(PackedCorpora, can_be_unpacked_but_not_split_or_named_anew) {
  const std::string corpus = packed(read_corpus(file("t", "c a b a\n\nz\n")));
  ConvertOptions convert;
  convert.to = DataFormat::docword;
  convert_data(corpus, path("d"), convert);
  EXPECT_EQ(read(path("d")), "3\n4\n4\n1 1 1\n1 2 2\n1 3 1\n3 4 1\n");
  EXPECT_EQ(read(path("d.vocab")), "c\na\nb\nz\n");
  EXPECT_THAT(error_of([&] { split_data(corpus, path("a"), path("b"), {}); }, ErrorKind::usage),
              HasSubstr("split the corpus, then pack"));
  CorpusOptions options;
  options.vocabulary_path = file("v", "a\n");
  EXPECT_THAT(error_of([&] { read_corpus(corpus, options); }, ErrorKind::usage), HasSubstr("--vocab"));
}

}  // namespace
}  // namespace orrery::testing
