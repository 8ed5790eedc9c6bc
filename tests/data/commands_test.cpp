// split, convert and info: nothing is lost or changed on the way, and what makes no sense is refused without a trace.
#include <gmock/gmock.h>

#include <set>

#include "engine/data/convert.h"
#include "engine/data/corpus.h"
#include "engine/data/data_info.h"
#include "engine/data/dense.h"
#include "engine/data/generate.h"
#include "engine/data/ratings.h"
#include "engine/data/sparse_rows.h"
#include "engine/data/split.h"
#include "engine/json.h"
#include "tests/data/data_test_support.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;

class Commands : public DataTest {
 protected:
  SplitResult split(const std::string& content, double fraction = 0.3, std::uint64_t seed = 1) {
    SplitOptions options;
    options.fraction = fraction;
    options.seed = seed;
    return split_data(file("in", content), path("train"), path("test"), options);
  }
  ConvertResult convert(const std::string& from, DataFormat to, const std::string& name,
                        const std::string& label = "") {
    ConvertOptions options;
    options.to = to;
    options.label = label;
    return convert_data(from, path(name), options);
  }
  Json info(const std::string& name) { return parse_json(data_info(name).json); }
};

std::multiset<std::string> lines_of(const std::string& text) {
  std::multiset<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

TEST_F(Commands, split_puts_every_line_into_exactly_one_part) {
  std::string content;
  for (int i = 0; i < 5000; ++i) content += std::to_string(i) + " " + std::to_string(i % 7) + " 3\n";
  const SplitResult result = split(content);
  EXPECT_EQ(result.training + result.test, 5000U);
  EXPECT_NEAR(static_cast<double>(result.test), 1500, 130);
  EXPECT_EQ(lines_of(read(path("train")) + read(path("test"))), lines_of(content));
  const std::string first = read(path("test"));
  split(content);
  EXPECT_EQ(read(path("test")), first);
  split(content, 0.3, 2);
  EXPECT_NE(read(path("test")), first);
  for (const ReadOptions& way : ways_to_read()) {
    if (way.piece_bytes == 1) continue;
    SplitOptions options;
    options.fraction = 0.3;
    options.read = way;
    split_data(file("in", content), path("train"), path("test"), options);
    ASSERT_EQ(read(path("test")), first);
  }
}

TEST_F(Commands, split_keeps_headers_true_in_every_format) {
  split("user,item,rating\n1,2,3\n2,3,4\n3,4,5\n4,5,1\n5,6,2\n", 0.5);
  EXPECT_TRUE(read(path("train")).starts_with("user,item,rating\n"));
  EXPECT_TRUE(read(path("test")).starts_with("user,item,rating\n"));
  std::string matrix = "%%MatrixMarket matrix coordinate real general\n% c\n60 60 60\n", text;
  for (int i = 1; i <= 60; ++i) matrix += std::to_string(i) + " " + std::to_string(61 - i) + " 1\n";
  const SplitResult result = split(matrix);
  EXPECT_EQ(read_ratings(path("train")).ratings.size(), result.training);
  EXPECT_EQ(read_ratings(path("test")).ratings.size(), result.test);
  write_corpus({.documents = 50, .words = 30, .topics = 3, .mean_length = 10}, path("corpus"));
  const SplitResult documents = split_data(path("corpus"), path("train"), path("test"), {});
  const CorpusData all = read_corpus(path("corpus")), train = read_corpus(path("train")),
                   test = read_corpus(path("test"));
  EXPECT_EQ(train.corpus.documents(), documents.training);
  EXPECT_EQ(train.corpus.tokens + test.corpus.tokens, all.corpus.tokens);
  EXPECT_EQ(test.corpus.word_count, all.corpus.word_count);
  write_dense({.rows = 40, .columns = 3, .nonzero_weights = 1}, path("d.npy"));
  const SplitResult rows = split_data(path("d.npy"), path("train.npy"), path("test.npy"), {});
  EXPECT_EQ(read_dense(path("train.npy")).matrix.rows, rows.training);
  EXPECT_EQ(read_dense(path("test.npy")).matrix.rows, rows.test);
}

TEST_F(Commands, split_leaves_nothing_behind_when_it_refuses) {
  EXPECT_THAT(error_of([&] { split("1 2 3\n", 0.3); }, ErrorKind::usage), HasSubstr("nothing would be left for the"));
  EXPECT_THAT(error_of([&] { split("1 2 3\n", 1.0); }, ErrorKind::usage), HasSubstr("between 0 and 1"));
  EXPECT_THAT(error_of([&] { split_data(path("in"), path("a.gz"), path("b"), {}); }, ErrorKind::usage),
              HasSubstr("not compressed"));
  EXPECT_EQ(files_here(), 1U) << "the input alone";
}

TEST_F(Commands, convert_takes_ratings_to_matrix_market_and_back) {
  const std::string from = file("in", "3::7::4.5::1\n1::9::2::1\n");
  EXPECT_TRUE(convert(from, DataFormat::matrix_market, "m").also_files.empty());
  EXPECT_THAT(read(path("m")), HasSubstr("3 9 2\n3 7 4.5\n1 9 2\n"));
  convert(path("m"), DataFormat::ratings, "back");
  EXPECT_EQ(read(path("back")), "3 7 4.5\n1 9 2\n");
  const ConvertResult named = convert(file("in", "alice,x y,1\nbob,z,2\n"), DataFormat::matrix_market, "n");
  EXPECT_EQ(named.also_files.size(), 2U);
  EXPECT_EQ(read(path("n.users")), "alice\nbob\n");
  EXPECT_EQ(read(path("n.items")), "x y\nz\n");
  EXPECT_THAT(read(path("n")), HasSubstr("2 2 2\n1 1 1\n2 2 2\n"));
  convert(file("in", "alice,\"x, y\",1\nbob,z,2\n"), DataFormat::ratings, "q");
  EXPECT_EQ(read_ratings(path("q")).items.texts(), (std::vector<std::string>{"x, y", "z"}));
  EXPECT_EQ(read_ratings(path("q")).checksum, read_ratings(path("in")).checksum);
}

TEST_F(Commands, convert_keeps_every_bit_of_tables) {
  write_dense({.rows = 60, .columns = 5, .nonzero_weights = 2}, path("a.csv"));
  convert(path("a.csv"), DataFormat::npy, "a.npy");
  convert(path("a.npy"), DataFormat::csv, "b.csv");
  EXPECT_EQ(read_dense(path("b.csv")).checksum, read_dense(path("a.csv")).checksum);
  EXPECT_EQ(read_dense(path("a.npy")).checksum, read_dense(path("a.csv")).checksum);
  convert(file("s.csv", "a,y,b\n0,1,2.5\n3,-1,0\n"), DataFormat::svmlight, "s", "y");
  EXPECT_EQ(read(path("s")), "1 2:2.5\n-1 1:3\n");
  convert(path("s"), DataFormat::csv, "dense.csv");
  EXPECT_EQ(read(path("dense.csv")), "0,2.5,1\n3,0,-1\n");
}

TEST_F(Commands, convert_takes_text_to_word_counts_and_keeps_the_words) {
  const ConvertResult result = convert(file("in", "b a b\n\nc\n"), DataFormat::docword, "d");
  EXPECT_EQ(read(path("d")), "3\n3\n3\n1 1 2\n1 2 1\n3 3 1\n");
  EXPECT_EQ(read(path("d.vocab")), "b\na\nc\n");
  EXPECT_EQ(result.items, 3U);
  convert(path("d"), DataFormat::svmlight, "s");
  EXPECT_EQ(read(path("s")), "0 1:2 2:1\n0\n0 3:1\n");
  convert(path("s"), DataFormat::docword, "again");
  EXPECT_EQ(read(path("again")), read(path("d")));
  convert(file("g", "10 20\n20 10\n"), DataFormat::matrix_market, "gm");
  EXPECT_EQ(read(path("gm")), "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n2 1\n");
}

TEST_F(Commands, convert_refuses_what_makes_no_sense_and_writes_nothing) {
  const std::string ratings = file("in", "alice film 3\n");
  EXPECT_THAT(error_of([&] { convert(ratings, DataFormat::npy, "o"); }, ErrorKind::usage),
              HasSubstr("ratings cannot be converted to npy; possible are ratings, matrix-market"));
  EXPECT_THAT(error_of([&] { convert(file("s", "1 4294967294:1\n"), DataFormat::csv, "o"); }, ErrorKind::usage),
              HasSubstr("more than 100 times"));
  EXPECT_THAT(error_of([&] { convert(file("b", "1 2 3\n1 2 x\n"), DataFormat::matrix_market, "o"); }),
              HasSubstr("2:5"));
  EXPECT_FALSE(std::filesystem::exists(path("o")));
  EXPECT_THAT(error_of([&] { convert(ratings, DataFormat::matrix_market, "no/such/directory"); }, ErrorKind::output),
              HasSubstr("cannot write"));
}

TEST_F(Commands, info_counts_what_is_there) {
  const Json ratings = info(file("in", "1 7 4\r\n1 8 2\n2 7 3\n1 7 5\n"));
  EXPECT_EQ(ratings["kind"], "ratings");
  EXPECT_EQ(ratings["users"], 2);
  EXPECT_EQ(ratings["items"], 2);
  EXPECT_EQ(ratings["ratings"], 4);
  EXPECT_EQ(ratings["duplicates"], 1);
  EXPECT_EQ(ratings["density"], 1.0);
  EXPECT_EQ(ratings["values"]["lowest"], 2);
  EXPECT_EQ(ratings["values"]["highest"], 5);
  EXPECT_EQ(ratings["values"]["mean"], 3.5);
  EXPECT_EQ(ratings["ratings_of_a_user"]["largest"], 3);
  EXPECT_EQ(ratings["warnings"].size(), 2U);
  EXPECT_EQ(info(file("in", "1 1:2 3:4\n-1 2:1\n"))["labels"]["kind"], "-1/1");
  EXPECT_EQ(info(file("in", "2\n3\n2\n1 1 4\n2 3 1\n"))["tokens"], 5);
  EXPECT_EQ(info(file("in", "1 2\n2 1\n2 2\n"))["self_loops"], 1);
  EXPECT_EQ(info(file("in", "1,2,3,4,0\n4,5,6,7,0\n"))["density"], 0.8);
  EXPECT_EQ(info(file("in", "the cat\nthe dog\n"))["words"], 3);
  EXPECT_THAT(data_info(path("in")).text, HasSubstr("documents: 2\n"));
  EXPECT_THAT(error_of([&] { info(file("in", "1 2 3\n4 5 x\n")); }), HasSubstr("2:5: expected a rating, got 'x'"));
}

TEST_F(Commands, info_measures_skew) {
  std::string even, skewed;
  for (int i = 1; i <= 200; ++i) {
    even += std::to_string(i) + " " + std::to_string(i) + " 1\n";
    skewed += (i <= 101 ? "1 " : std::to_string(i) + " ") + std::to_string(i) + " 1\n";
  }
  EXPECT_NEAR(info(file("in", even))["ratings_of_a_user"]["gini"].get<double>(), 0, 1e-12);
  EXPECT_NEAR(info(file("in", skewed))["ratings_of_a_user"]["top_1_percent_share"].get<double>(), 101.0 / 200, 1e-12);
}

}  // namespace
}  // namespace orrery::testing
