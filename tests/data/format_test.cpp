// What the content of a file tells about its format, on every spelling and on real data.
#include "engine/data/format.h"

#include <gmock/gmock.h>

#include "engine/data/ratings.h"
#include "tests/data/data_test_support.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;

class Formats : public DataTest {
 protected:
  std::string detected(const std::string& content, const std::vector<DataFormat>& allowed = {}) {
    InputFile input(file("f", content));
    return std::string{format_name(detect_format(input, allowed).format)};
  }
};

TEST_F(Formats, are_recognised_from_the_content) {
  EXPECT_EQ(detected("1 2 3.5\n4 5 2\n"), "ratings");
  EXPECT_EQ(detected("1::2::5::978300760\n"), "ratings");
  EXPECT_EQ(detected("userId,movieId,rating\n1,2,3\n"), "ratings");
  EXPECT_EQ(detected("alice,the film,3\n"), "ratings");
  EXPECT_EQ(detected("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n"), "matrix-market");
  EXPECT_EQ(detected("+1 1:0.5 7:2\n-1\n"), "svmlight");
  EXPECT_EQ(detected("2\n3\n2\n1 1 1\n2 1 1\n"), "docword");
  EXPECT_EQ(detected("# SNAP\n0\t11\n3\t4\n"), "edges");
  EXPECT_EQ(detected("5.1,3.5,1.4,0.2,0\n4.9,3.0,1.4,0.2,0\n"), "csv");
  EXPECT_EQ(detected("5.1,3.5,1.4\n4.9,3.0,1.4\n"), "csv") << "ids are integers or words";
  EXPECT_EQ(detected("x,y,z,w,label\n1,2,3,4,5\n"), "csv");
  EXPECT_EQ(detected("the quick brown fox\njumps over the lazy dog\n"), "text");
  EXPECT_EQ(detected(std::string("\x93NUMPY\x01\x00", 8)), "npy");
  EXPECT_EQ(detected(gzip("+1 1:0.5 7:2\n")), "svmlight");
}

TEST_F(Formats, depend_on_what_makes_sense_to_the_caller) {
  EXPECT_EQ(detected("1 2 3\n4 5 6\n", {DataFormat::csv}), "csv");
  EXPECT_EQ(detected("1 2 3\n4 5 6\n", {DataFormat::text}), "text");
  EXPECT_THAT(error_of([&] {
                detected("the fox\n", {DataFormat::csv, DataFormat::npy});
              }),
              HasSubstr("the content is in none of the formats csv, npy"));
  EXPECT_THAT(error_of([&] { detected(""); }), HasSubstr("expected data, got an empty file"));
}

TEST_F(Formats, have_names_that_options_take) {
  for (const char* name : {"ratings", "matrix-market", "svmlight", "docword", "text", "edges", "csv", "npy"}) {
    EXPECT_EQ(format_name(parse_format(name)), name);
    EXPECT_THAT(format_names(), HasSubstr(name));
  }
  EXPECT_THAT(error_of([] { parse_format("excel"); }, ErrorKind::usage), HasSubstr("'excel'; known are ratings, "));
}

TEST_F(Formats, say_what_was_recognised) {
  EXPECT_EQ(read_ratings(file("f", "a,b,rating\n1,2,3\n")).recognised.describe(),
            "ratings (separated by commas, header line)");
  EXPECT_EQ(read_ratings(file("f", gzip("1::2::3\n"))).recognised.describe(),
            "ratings (separated by double colons, gzip)");
}

TEST_F(Formats, take_the_separator_that_makes_three_columns) {
  const auto separator = [](const char* text) { return recognise_rating_columns(text, 3).separator; };
  EXPECT_EQ(separator("John Smith\tToy Story, The\t5\n"), Separator::tab);
  EXPECT_EQ(separator("1,5 7 3\n"), Separator::blanks) << "an id may hold a comma";
  EXPECT_EQ(separator("a;b,c;3\n"), Separator::semicolon);
  EXPECT_EQ(separator("1, 2, 3\n"), Separator::comma);
  EXPECT_FALSE(recognise_rating_columns("1,2,x\n1,2,3\n", 3).header) << "a line with numbers is data";
  EXPECT_TRUE(recognise_rating_columns("u,i,r\n1,2,3\n", 3).header);
  EXPECT_FALSE(recognise_rating_columns("u,i,r\nv,i,r\n", 3).header) << "nothing tells it from data";
}

TEST_F(Formats, of_the_bundled_ratings_are_recognised_and_read) {
  const RatingsData data = read_ratings(std::string(ORRERY_SOURCE_DIR) + "/tests/data/real/anime.test.txt.gz");
  EXPECT_TRUE(data.recognised.gzip);
  EXPECT_GT(data.ratings.size(), 40000U);
  EXPECT_EQ(data.lowest, 1);
  EXPECT_EQ(data.highest, 10);
  EXPECT_EQ(count_duplicates(data.ratings), 0U);
}

}  // namespace
}  // namespace orrery::testing
