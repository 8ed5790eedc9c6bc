// Readers of corpora: docword, text and word counts give the same documents, and a docword's header must be true.
#include "engine/data/corpus.h"

#include <gmock/gmock.h>

#include "tests/data/data_test_support.h"

namespace orrery::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Corpora : public DataTest {
 protected:
  CorpusData from(const std::string& content, const CorpusOptions& options = {}) {
    return read_corpus(file("c", content), options);
  }
  std::string fault(const std::string& content, const CorpusOptions& options = {}) {
    const std::string message = error_of([&] { from(content, options); }), prefix = path("c") + ":";
    EXPECT_TRUE(message.starts_with(prefix)) << message;
    return message.substr(std::min(message.size(), prefix.size()));
  }
};

TEST_F(Corpora, mean_the_same_in_every_spelling) {
  const CorpusData docword = from("3\n4\n4\n1 1 2\n1 2 1\n3 2 1\n3 4 5\n");
  EXPECT_THAT(docword.corpus.starts, ElementsAre(0U, 2U, 2U, 4U));
  EXPECT_THAT(docword.corpus.words, ElementsAre(0U, 1U, 1U, 3U));
  EXPECT_THAT(docword.corpus.counts, ElementsAre(2U, 1U, 1U, 5U));
  EXPECT_EQ(docword.corpus.word_count, 4U);
  EXPECT_EQ(docword.corpus.tokens, 9U);
  EXPECT_EQ(from("3\r\n4\n\n4\n3 4 5\n1 2 1\n3 2 1\n1 1 2").checksum, docword.checksum) << "in any order";
  EXPECT_EQ(from("0 1:2 2:1\n0\n0 2:1 4:5\n").checksum, docword.checksum);
  EXPECT_EQ(from(gzip("3\n4\n4\n1 1 2\n1 2 1\n3 2 1\n3 4 5\n")).checksum, docword.checksum);
  CorpusOptions options;
  options.vocabulary_path = file("v", "a\nb\nc\nd\n");
  const CorpusData text = from("A b a\n\nd b d d d d\n", options);
  EXPECT_EQ(text.corpus.words, docword.corpus.words);
  EXPECT_EQ(text.corpus.counts, docword.corpus.counts);
  EXPECT_EQ(text.corpus.starts, docword.corpus.starts);
  EXPECT_THAT(text.warnings, IsEmpty());
}

TEST_F(Corpora, of_text_number_words_by_first_appearance_and_lower_them) {
  const CorpusData data = from("The cat\tthe dog \n\ncat  CAT\r\n");
  EXPECT_THAT(data.corpus.vocabulary, ElementsAre("the", "cat", "dog"));
  EXPECT_EQ(data.corpus.documents(), 3U);
  EXPECT_EQ(data.corpus.tokens, 6U);
  CorpusOptions options;
  options.keep_case = true;
  EXPECT_THAT(from("The the\n", options).corpus.vocabulary, ElementsAre("The", "the"));
  const std::vector<std::string> known = {"cat", "bird"};
  CorpusOptions fixed;
  fixed.vocabulary = &known;
  const CorpusData seen = from("a cat and a bird cat\n", fixed);
  EXPECT_EQ(seen.unknown_tokens, 3U);
  EXPECT_THAT(seen.corpus.words, ElementsAre(0U, 1U));
  EXPECT_THAT(seen.corpus.counts, ElementsAre(2U, 1U));
  EXPECT_THAT(seen.warnings, ElementsAre(HasSubstr("3 of 6 tokens are not in the vocabulary")));
}

TEST_F(Corpora, are_the_same_whatever_the_pieces_and_threads) {
  std::string text, docword;
  std::mt19937 random(4);
  std::size_t cells = 0;
  for (int d = 1; d <= 60; ++d) {
    for (std::uint64_t w = 1; w <= 30; w += 1 + random() % 5) {
      docword += std::to_string(d) + " " + std::to_string(w) + " " + std::to_string(1 + random() % 9) + "\n";
      text += "word" + std::to_string(random() % 200) + (random() % 6 == 0 ? "\n" : " ");
      ++cells;
    }
  }
  docword = "60\n30\n" + std::to_string(cells) + "\n" + docword;
  for (const std::string& content : {text, docword, gzip(text), gzip(docword)}) {
    const CorpusData one = from(content);
    for (const ReadOptions& way : ways_to_read()) {
      CorpusOptions options;
      options.read = way;
      const CorpusData data = from(content, options);
      ASSERT_EQ(data.checksum, one.checksum);
      ASSERT_EQ(data.corpus.vocabulary, one.corpus.vocabulary);
    }
  }
}

TEST_F(Corpora, whose_docword_header_disagrees_with_the_body_are_refused) {
  CorpusOptions options;
  options.format = DataFormat::docword;
  const auto bad = [&](const std::string& content) { return fault(content, options); };
  EXPECT_EQ(bad("2\n3\n3\n1 1 1\n2 3 1\n"),
            "3:1: expected a header that agrees with the body, which has 2 entries, got '3 entries'");
  EXPECT_EQ(bad("2\n3\n1\n1 1 1\n2 3 1\n"),
            "3:1: expected a header that agrees with the body, which has 2 entries, got '1 entries'");
  EXPECT_EQ(bad("1\n3\n2\n1 1 1\n2 3 1\n"), "5:1: expected a document from 1 to 1, got '2'");
  EXPECT_EQ(bad("2\n2\n2\n1 1 1\n2 3 1\n"), "5:3: expected a word from 1 to 2, got '3'");
  EXPECT_EQ(bad("2\n3\n2\n1 1 1\n2 0 1\n"), "5:3: expected a word from 1 to 3, got '0'");
  EXPECT_EQ(bad("2\n3\n2\n1 1 1\n2 1 0\n"), "5:5: expected a count from 1 to 4294967295, got '0'");
  EXPECT_EQ(bad("2\n3\n2\n1 1 1\n2 1 4294967296\n"), "5:5: expected a count from 1 to 4294967295, got '4294967296'");
  EXPECT_EQ(bad("2\n3\n2\n1 1 1\n2 1\n"), "5:4: expected a count from 1 to 4294967295, got nothing");
  EXPECT_EQ(bad("2\n3\n2\n1 1 1\n2 1 1 1\n"), "5:7: expected the end of the line after 3 columns, got '1'");
  EXPECT_EQ(bad("2\n3\n2\n1 1 1\n2 1 x\n"), "5:5: expected a count from 1 to 4294967295, got 'x'");
  EXPECT_EQ(bad("2\n3 4\n2\n"), "2:1: expected the number of words alone in its line, got '3 4'");
  EXPECT_EQ(bad("2\n-3\n2\n"), "2:1: expected the number of words alone in its line, got '-3'");
  EXPECT_EQ(bad("2\n3\n"), "3:1: expected the number of document-word pairs, got nothing");
  EXPECT_EQ(bad(""), " expected a corpus, got an empty file");
  EXPECT_EQ(bad("2\n3\n0\n"), " expected a corpus, got a file without any word");
}

TEST_F(Corpora, cannot_claim_sizes_that_the_file_does_not_justify) {
  EXPECT_EQ(fault("4294967294\n3\n1\n1 1 1\n"),
            "1:1: expected a number of documents that the body justifies (at most 65536), got '4294967294'");
  EXPECT_EQ(fault("4294967294\n3\n1\n4294967294 1 1\n"),
            "1:1: expected a number of documents that the body justifies (at most 65536), got '4294967294'");
  EXPECT_EQ(fault("1\n4294967294\n1\n1 4294967294 1\n"),
            "2:1: expected a number of words that the body justifies (at most 1048576), got '4294967294'");
  EXPECT_EQ(from("60000\n3\n1\n1 1 1\n").corpus.documents(), 60000U) << "empty documents are fine";
}

TEST_F(Corpora, add_doubled_pairs_up_and_say_so) {
  const CorpusData data = from("1\n3\n3\n1 2 4\n1 1 1\n1 2 5\n");
  EXPECT_THAT(data.corpus.counts, ElementsAre(1U, 9U));
  EXPECT_THAT(data.warnings, ElementsAre(HasSubstr("1 entries repeat a pair")));
  EXPECT_THAT(fault("1\n3\n2\n1 2 4294967295\n1 2 1\n"), HasSubstr("add up to more than 2^32 - 1"));
}

TEST_F(Corpora, need_a_vocabulary_that_fits) {
  CorpusOptions options;
  options.vocabulary_path = file("v", "one\r\ntwo\r\n");
  EXPECT_THAT(from("1\n2\n1\n1 1 1\n", options).corpus.vocabulary, ElementsAre("one", "two"));
  EXPECT_EQ(fault("1\n3\n1\n1 1 1\n", options), " the corpus has 3 words, the vocabulary only 2");
  EXPECT_THAT(error_of([&] { read_vocabulary(file("w", "a\nb\na\n")); }),
              HasSubstr(":3:1: expected an id that did not occur before"));
  EXPECT_THAT(error_of([&] { read_vocabulary(file("w", "")); }), HasSubstr("empty file"));
}

TEST_F(Corpora, warn_of_a_vocabulary_that_is_longer_than_the_header_says) {
  CorpusOptions options;
  options.vocabulary_path = file("v", "one\ntwo\nthree\n");
  EXPECT_THAT(from("1\n2\n1\n1 1 1\n", options).warnings, ElementsAre(HasSubstr("promises 2 words")));
}

TEST_F(Corpora, of_text_hold_text) {
  using namespace std::string_literals;
  CorpusOptions options;
  options.format = DataFormat::text;
  const auto bad = [&](const std::string& text) { return fault(text, options); };
  EXPECT_THAT(bad("a b\nc \0d\n"s), HasSubstr("2:3: expected text in UTF-8 without NUL"));
  for (const char* bytes :
       {"\xFF", "\x80", "\xC3", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF8"}) {
    EXPECT_THAT(bad("fine\n\nx" + std::string(bytes) + " y\n"), HasSubstr("3:2: expected text in UTF-8 without NUL"));
  }
  EXPECT_EQ(from("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80\n", options).corpus.tokens, 3U);
}

TEST_F(Corpora, of_counts_take_whole_counts_only) {
  EXPECT_EQ(fault("0 1:2 2:1.5\n"), " row 1, word 2: expected a count of words, got 1.500000");
  EXPECT_EQ(fault("0 1:2\n0 2:-1\n"), " row 2, word 2: expected a count of words, got -1.000000");
  EXPECT_EQ(fault(" \n\n"), " the content is in none of the formats packed, docword, svmlight, text");
}

}  // namespace
}  // namespace orrery::testing
