// Readers of ratings: every spelling gives the same data, every bad line is named, and nothing depends on how the file
// was cut or who parsed it.
#include "engine/data/ratings.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/data/data_test_support.h"

namespace orrery::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Ratings : public DataTest {
 protected:
  RatingsData from(const std::string& content, const RatingsOptions& options = {}) {
    return read_ratings(file("r", content), options);
  }
  // "FILE:" is left off.
  std::string fault(const std::string& content, const RatingsOptions& options = {}) {
    const std::string message = error_of([&] { from(content, options); });
    const std::string prefix = path("r") + ":";
    EXPECT_TRUE(message.starts_with(prefix)) << message;
    return message.substr(std::min(message.size(), prefix.size()));
  }
};

std::vector<std::string> triples(const RatingsData& data) {
  std::vector<std::string> all;
  for (std::uint64_t i = 0; i < data.ratings.size(); ++i) {
    const Rating& r = data.ratings[i];
    std::ostringstream text;
    text << data.users.text(r.user) << ' ' << data.items.text(r.item) << ' ' << r.value;
    all.push_back(text.str());
  }
  return all;
}

TEST_F(Ratings, shares_of_a_file_are_the_file) {
  const auto lines = [](const char* user, const char* item, std::uint64_t spread, std::uint64_t count = 5000) {
    std::string text;
    for (std::uint64_t i = 0; i < count; ++i) {
      text += user + std::to_string(i * i % 97 * spread) + ' ' + item + std::to_string(i * 7 % 61) + ' ' +
              std::to_string(static_cast<double>(i % 11) / 2) + (i == 3000 ? " 17\n" : "\n");
    }
    return text;
  };
  ReadOptions small_pieces;
  small_pieces.piece_bytes = 4096;
  small_pieces.wave_pieces = 4;
  const std::string contents[] = {lines("", "", 1, RatingStore::kChunk + 1000), lines("u", "", 1),
                                  lines("", "i", 40'000'000), lines("", "", 1) + "late a 1\n" + lines("", "", 1)};
  for (const std::string& content : contents) {
    const std::string path = file("r", content);
    RatingsOptions options;
    options.read = small_pieces;
    const RatingsData whole = read_ratings(path, options);
    const RatingsOutline outline = outline_ratings(path, options);
    EXPECT_EQ(outline.users.texts(), whole.users.texts());
    EXPECT_EQ(outline.items.texts(), whole.items.texts());
    options.known_users = &outline.users;
    options.known_items = &outline.items;
    std::vector<std::uint32_t> user_counts(whole.users.size(), 0), item_counts(whole.items.size(), 0);
    std::vector<bool> keeps[2] = {std::vector<bool>(whole.users.size()), std::vector<bool>(whole.users.size())};
    for (std::size_t u = 0; u < whole.users.size(); ++u) keeps[u % 3 == 0 ? 0 : 1][u] = true;
    RatingsData shares[2];
    for (std::size_t s = 0; s < 2; ++s) {
      shares[s] = read_some_ratings(path, options, outline, keeps[s]);
      EXPECT_EQ(shares[s].checksum, whole.checksum);
      EXPECT_EQ(shares[s].mean, whole.mean);
      EXPECT_EQ(shares[s].variance, whole.variance);
      EXPECT_EQ(shares[s].warnings, whole.warnings);
    }
    std::uint64_t next[2] = {0, 0};
    for (std::uint64_t i = 0; i < whole.ratings.size(); ++i) {
      const Rating& r = whole.ratings[i];
      ++user_counts[r.user];
      ++item_counts[r.item];
      const std::size_t s = r.user % 3 == 0 ? 0 : 1;
      const Rating& kept = shares[s].ratings[next[s]++];
      ASSERT_EQ(std::tie(kept.user, kept.item, kept.value), std::tie(r.user, r.item, r.value)) << i;
    }
    EXPECT_EQ(next[0] + next[1], shares[0].ratings.size() + shares[1].ratings.size());
    EXPECT_EQ(outline.user_counts, user_counts);
    EXPECT_EQ(outline.item_counts, item_counts);
  }
}

TEST_F(Ratings, means_the_same_in_every_spelling) {
  const std::string lines = "3 7 4.5\n1 7 2\n3 9 -1e1\n";
  const RatingsData plain = from(lines);
  EXPECT_THAT(triples(plain), ElementsAre("3 7 4.5", "1 7 2", "3 9 -10"));
  EXPECT_THAT(plain.warnings, IsEmpty());
  EXPECT_EQ(plain.lowest, -10);
  EXPECT_EQ(plain.highest, 4.5F);
  EXPECT_NEAR(plain.mean, -3.5 / 3, 1e-12);
  EXPECT_NEAR(plain.variance, 124.25 / 3 - 12.25 / 9, 1e-12);
  const std::string spellings[] = {
      "3\t7\t4.5\n1\t7\t2\n3\t9\t-1e1\n",
      "  3   7 \t 4.5  \n\n1 7 2\n# a comment\n3 9 -1e1\n",
      "3,7,4.5\n1,7,2\n3,9,-1e1\n",
      "3, 7 ,+4.5,978300760\n1,7,2,1\n3 ,9,-10.0,1\n",
      "3;7;4.5\n1;7;2\n3;9;-1e1\n",
      "3::7::4.5::12\n1::7::2::12\n3::9::-1e1::12\n",
      "userId,movieId,rating,timestamp\n3,7,4.5,1\n1,7,2,1\n3,9,-1e1,1\n",
      "\"user\",\"item\",\"rating\"\n\"3\",\"7\",\"4.5\"\n\"1\",7,2\n3,9,-1e1\n",
      "user item rating\n3 7 4.5\n1 7 2\n3 9 -1e1\n",
      "\xEF\xBB\xBF"
      "3 7 4.5\n1 7 2\n3 9 -1e1\n",
      "%%MatrixMarket matrix coordinate real general\n% by hand\n3 9 3\n3 7 4.5\n1 7 2\n3 9 -1e1\n",
      gzip(lines),
      gzip("3 7 4.5\n1 7") + gzip(" 2\n3 9 -1e1\n") + std::string(512, '\0'),
  };
  for (const std::string& spelling : spellings) {
    const RatingsData data = from(spelling);
    EXPECT_EQ(triples(data), triples(plain)) << spelling;
    EXPECT_EQ(data.checksum, plain.checksum) << spelling;
    EXPECT_EQ(data.mean, plain.mean);
    EXPECT_EQ(data.variance, plain.variance);
  }
}

TEST_F(Ratings, gives_the_same_whatever_the_pieces_and_threads) {
  std::string numbers, mixed;
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    const auto user = random() % 40 + 1, item = random() % 30 + 100, value = random() % 50;
    const std::string rest = " " + std::to_string(item) + " " + std::to_string(value) + "\n";
    numbers += std::to_string(user) + rest;
    mixed += (i > 100 && user % 3 == 0 ? "name" : "") + std::to_string(user) + rest;
    if (i % 17 == 0) mixed += "# a comment that is longer than a piece of seven bytes\n\n";
  }
  for (const std::string& content : {numbers, mixed, gzip(mixed)}) {
    const RatingsData one = from(content);
    for (const ReadOptions& way : ways_to_read()) {
      RatingsOptions options;
      options.read = way;
      const RatingsData data = from(content, options);
      ASSERT_EQ(data.checksum, one.checksum);
      ASSERT_EQ(triples(data), triples(one));
    }
  }
}

TEST_F(Ratings, reports_the_first_error_of_the_file_whatever_the_pieces_and_threads) {
  std::string content;
  for (int i = 0; i < 60; ++i) content += "1 2 3\n";
  content += "1 2 x\n";
  for (int i = 0; i < 60; ++i) content += "1 2 3\n";
  content += "1 oops\n1 2 nan\n";
  for (const std::string& spelling : {content, gzip(content)}) {
    for (const ReadOptions& way : ways_to_read()) {
      RatingsOptions options;
      options.read = way;
      ASSERT_EQ(fault(spelling, options), "61:5: expected a rating, got 'x'");
    }
  }
}

TEST_F(Ratings, numbers_integer_ids_by_value_and_strings_by_first_appearance) {
  EXPECT_THAT(from("30 5 1\n4 70 1\n100 5 1\n").users.texts(), ElementsAre("4", "30", "100"));
  EXPECT_THAT(from("30 5 1\nx 70 1\n4 5 1\n").users.texts(), ElementsAre("30", "x", "4"));
  // Above 32 bits, and spread too widely for a table.
  EXPECT_THAT(from("18446744073709551615 5 1\n7 5 1\n").users.texts(), ElementsAre("7", "18446744073709551615"));
  EXPECT_THAT(from("4000000000 5 1\n7 5 1\n").users.texts(), ElementsAre("7", "4000000000"));
  EXPECT_THAT(from("4294967295 5 1\n7 5 1\n").users.texts(), ElementsAre("7", "4294967295"));
  // 07 is another id than 7, so this column holds strings.
  EXPECT_THAT(from("9 5 1\n07 5 1\n7 5 1\n").users.texts(), ElementsAre("9", "07", "7"));
  EXPECT_THAT(from("-1 5 1\n-2 5 1\n").users.texts(), ElementsAre("-1", "-2"));
  EXPECT_THAT(from("\"a, \"\"b\"\"\",5,1\n").users.texts(), ElementsAre("a, \"b\""));
}

TEST_F(Ratings, names_the_place_and_the_reason_of_every_bad_line) {
  EXPECT_EQ(fault("1 2 3\n1 2\n"), "2:4: expected a rating in column 3, got nothing");
  EXPECT_EQ(fault("1 2 3\n1\n"), "2:2: expected an item id in column 2, got nothing");
  EXPECT_EQ(fault("1 2 3\n1 2 3 4 5\n"), "2:9: expected the end of the line after 4 columns, got '5'");
  EXPECT_EQ(fault("1,2,3\n1,2,3,4,5\n"), "2:9: expected the end of the line after 4 columns, got '5'");
  EXPECT_EQ(fault("1,2,3\n1,,3\n"), "2:3: expected an item id, got nothing");
  EXPECT_EQ(fault("1,2,3\n1,2\n"), "2:4: expected a rating in column 3, got nothing");
  EXPECT_EQ(fault("1::2::3\n1::2:3\n"), "2:7: expected a rating in column 3, got nothing");
  EXPECT_EQ(fault("1 2 3\n1 2 four\n"), "2:5: expected a rating, got 'four'");
  EXPECT_EQ(fault("1 2 3\n1 2 4x\n"), "2:5: expected a rating, got '4x'");
  EXPECT_EQ(fault("1 2 3\n1 2 4..5\n"), "2:5: expected a rating, got '4..5'");
  EXPECT_EQ(fault("1 2 nan\n"), "1:5: expected a rating that is finite, got 'nan'");
  EXPECT_EQ(fault("1 2 -inf\n"), "1:5: expected a rating that is finite, got '-inf'");
  EXPECT_EQ(fault("1 2 1e39\n"), "1:5: expected a rating that the number type can hold, got '1e39'");
  EXPECT_EQ(fault("18446744073709551616 2 3\n"), "1:1: expected a user id below 2^64, got '18446744073709551616'");
  EXPECT_EQ(fault("1 2 3\nx 99999999999999999999999 3\n"),
            "2:3: expected an item id below 2^64, got '99999999999999999999999'");
  EXPECT_EQ(fault("# one\n\n \t1 2 x"), "3:7: expected a rating, got 'x'");
  EXPECT_EQ(fault("1,\"2,3\n"), "1:3: expected a closing quote, got '\"2,3'");
  EXPECT_EQ(fault("alice bob x\nalice bob 3\n"), "1:11: expected a rating, got 'x'") << "a name is no header";
  EXPECT_THAT(fault(std::string("1 2 3\n\0\0\0\n", 10)), HasSubstr("2:4: expected an item id in column 2"));
}

TEST_F(Ratings, refuses_files_without_any_rating) {
  EXPECT_EQ(fault(""), " expected ratings, got an empty file");
  EXPECT_EQ(fault(gzip("")), " expected ratings, got an empty file");
  EXPECT_EQ(fault("# nothing\n\n  \n# here\n"), " expected ratings, got only comments and blank lines");
}

TEST_F(Ratings, checks_a_matrix_market_file_against_its_header) {
  const std::string banner = "%%MatrixMarket matrix coordinate real general\n";
  EXPECT_EQ(fault(banner + "2 2 2\n1 1 5\n3 1 5\n"), "4:1: expected a row index from 1 to 2, got '3'");
  EXPECT_EQ(fault(banner + "2 2 2\n1 1 5\n1 0 5\n"), "4:3: expected a column index from 1 to 2, got '0'");
  EXPECT_EQ(fault(banner + "2 2 2\n1 1 5\n1 a 5\n"), "4:3: expected a column index from 1 to 2, got 'a'");
  EXPECT_EQ(fault(banner + "2 2 2\n1 1 5 7\n"), "3:7: expected the end of the line after 3 columns, got '7'");
  EXPECT_EQ(fault(banner + "2 2 3\n1 1 5\n2 2 5\n"),
            "2:1: expected a header that agrees with the body, which has 2 entries, got '3 entries'");
  EXPECT_EQ(
      fault(banner + "4294967294 4294967294 18446744073709551615\n1 1 5\n"),
      "2:1: expected a header that agrees with the body, which has 1 entries, got '18446744073709551615 entries'");
  EXPECT_EQ(fault(banner + "2 2\n1 1 5\n"), "2:4: expected the number of entries, got nothing");
  EXPECT_EQ(fault(banner + "2 4294967295 1\n1 1 5\n"),
            "2:3: expected the number of columns (at most 4294967294), got '4294967295'");
  EXPECT_EQ(fault(banner), "2:1: expected the line of sizes, got nothing");
  EXPECT_THAT(fault("%%MatrixMarket matrix coordinate complex general\n"), HasSubstr("got 'complex'"));
  EXPECT_THAT(fault("%%MatrixMarket matrix coordinate real hermitian\n"), HasSubstr("got 'hermitian'"));
  EXPECT_THAT(fault("%%MatrixMarket tensor coordinate real general\n"),
              HasSubstr("1:16: expected the object 'matrix'"));
  const RatingsData pattern = from("%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 1\n2 2\n");
  EXPECT_THAT(triples(pattern), ElementsAre("1 1 1", "2 2 1"));
}

TEST_F(Ratings, reads_every_value_of_a_matrix_market_array) {
  const std::string banner = "%%MatrixMarket matrix array real general\n";
  const RatingsData data = from(banner + "2 3\n1\n2\n3\n4\n5\n6\n");
  EXPECT_THAT(triples(data), ElementsAre("1 1 1", "2 1 2", "1 2 3", "2 2 4", "1 3 5", "2 3 6"));
  EXPECT_EQ(fault(banner + "2 3\n1\n2\n3\n4\n5\n"),
            "2:1: expected a header that agrees with the body, which has 5 entries, got '6 entries'");
  EXPECT_EQ(fault(banner + "2 2\n1\n2 3\n"), "4:3: expected the end of the line after 1 columns, got '3'");
  EXPECT_EQ(
      fault(banner + "4294967294 4294967294\n1\n"),
      "2:1: expected a header that agrees with the body, which has 1 entries, got '18446744056529682436 entries'");
}

TEST_F(Ratings, accepts_oddities_with_a_counted_warning) {
  const RatingsData crlf = from("1 2 3\r\n2 2 3\r\n1 3 4\n");
  ASSERT_EQ(crlf.warnings.size(), 1U);
  EXPECT_THAT(crlf.warnings[0], HasSubstr("2 of 3 lines end in CR LF"));
  const RatingsData cut = from("1 2 3\n1 3 4");
  EXPECT_EQ(cut.ratings.size(), 2U);
  ASSERT_EQ(cut.warnings.size(), 1U);
  EXPECT_THAT(cut.warnings[0], HasSubstr("no newline"));
  EXPECT_EQ(from(gzip("1 2 3\n1 3 4")).warnings, cut.warnings);
  const RatingsData some_times = from("1 2 3\n1 3 4 978300760\n");
  ASSERT_EQ(some_times.warnings.size(), 1U);
  EXPECT_THAT(some_times.warnings[0], HasSubstr("1 of 2 ratings have a fourth column"));
  EXPECT_EQ(from("5 6 7\n").ratings.size(), 1U) << "one user, one item";
}

TEST_F(Ratings, counts_duplicates_and_keeps_them) {
  const RatingsData data = from("1 2 3\n2 2 3\n1 2 5\n1 3 3\n1 2 3\n2 2 1\n");
  EXPECT_EQ(data.ratings.size(), 6U);
  EXPECT_EQ(count_duplicates(data.ratings), 3U);
  EXPECT_THAT(duplicates_warning(3), HasSubstr("3 ratings repeat a pair"));
  EXPECT_EQ(duplicates_warning(0), "");
}

TEST_F(Ratings, looks_ids_up_in_the_maps_of_a_model) {
  const RatingsData train = from("1 a 3\n5 b 3\n9 c 3\n");
  RatingsOptions options;
  options.known_users = &train.users;
  options.known_items = &train.items;
  const RatingsData held = from("9 b 2\n2 c 1\n5 zzz 4\nx a 1\n99999999999 a 1\n", options);
  ASSERT_EQ(held.ratings.size(), 5U);
  const auto user = [&](std::size_t i) { return held.ratings[i].user; };
  const auto item = [&](std::size_t i) { return held.ratings[i].item; };
  EXPECT_EQ(user(0), 2U);
  EXPECT_EQ(item(0), 1U);
  EXPECT_EQ(user(1), IdMap::kUnseen);
  EXPECT_EQ(item(2), IdMap::kUnseen);
  EXPECT_EQ(user(3), IdMap::kUnseen);
  EXPECT_EQ(user(4), IdMap::kUnseen);
  EXPECT_EQ(held.unseen_users, 3U);
  EXPECT_EQ(held.unseen_items, 1U);
  EXPECT_TRUE(held.users.empty());
  options.known_users = nullptr;  // new users on known items: what infer needs
  EXPECT_THAT(from("x a 1\ny b 1\n", options).users.texts(), ElementsAre("x", "y"));
}

TEST_F(Ratings, reads_pairs_without_values_when_told_so) {
  RatingsOptions options;
  options.pairs = true;
  const RatingsData data = from("1 2\n3 4 5\n6 7 8 9\n1,2 x\n", options);
  ASSERT_EQ(data.ratings.size(), 4U);
  EXPECT_TRUE(std::isnan(data.ratings[0].value));
  EXPECT_EQ(data.values, 2U);
  EXPECT_EQ(data.mean, 6.5);
  EXPECT_EQ(from("1,2\r\n3,4\r\n", options).ratings.size(), 2U);
  EXPECT_EQ(fault("1\n", options), "1:2: expected an item id in column 2, got nothing");
  EXPECT_EQ(fault("1 2\n1 2 3 4 5\n", options), "2:9: expected the end of the line after 4 columns, got '5'");
  EXPECT_EQ(fault("1 2\n"), "1:4: expected a rating in column 3, got nothing") << "only when told so";
}

TEST_F(Ratings, obeys_a_format_that_was_given) {
  RatingsOptions options;
  options.format = DataFormat::matrix_market;
  EXPECT_EQ(fault("1 2 3\n", options), "1:1: expected %%MatrixMarket, got '1'");
  options.format = DataFormat::npy;
  EXPECT_THAT(error_of([&] { from("1 2 3\n", options); }, ErrorKind::usage), HasSubstr("not from npy"));
}

TEST_F(Ratings, parses_every_number_to_the_nearest_float) {
  std::mt19937_64 random(3);
  std::string content;
  std::vector<float> expected;
  for (int i = 0; i < 2000; ++i) {
    char text[64];
    const double value =
        (static_cast<double>(random() % 2000001) - 1e6) * std::pow(10.0, static_cast<int>(random() % 12) - 6);
    std::snprintf(text, sizeof text, i % 3 == 0 ? "%.*e" : "%.*f", static_cast<int>(random() % 11), value);
    expected.push_back(std::strtof(text, nullptr));
    content += "1 2 " + std::string(text) + "\n";
  }
  content += "1 2 1e-60\n1 2 .5\n1 2 5.\n1 2 -0\n1 2 1e-40\n";
  expected.insert(expected.end(), {0.0F, 0.5F, 5.0F, -0.0F, 1e-40F});
  const RatingsData data = from(content);
  ASSERT_EQ(data.ratings.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(data.ratings[i].value, expected[i]) << i;
}

TEST_F(Ratings, keeps_chunks_that_can_be_given_back_one_by_one) {
  RatingStore store;
  store.grow(2 * RatingStore::kChunk + 5);
  EXPECT_EQ(store.chunks(), 3U);
  store.chunk(1)[7] = {1, 2, 3};
  store.release(0);
  EXPECT_TRUE(store.chunk(0).empty());
  EXPECT_EQ(store.chunk(2).size(), 5U);
  EXPECT_EQ(store[RatingStore::kChunk + 7].item, 2U);
  RatingStore other = std::move(store);
  EXPECT_EQ(other.size(), 2 * RatingStore::kChunk + 5);
  EXPECT_EQ(store.size(), 0U);  // NOLINT: moved from is empty
}

TEST_F(Ratings, changes_the_checksum_with_any_change_of_the_content) {
  const std::uint64_t checksum = from("1 2 3\n2 3 4\n").checksum;
  EXPECT_EQ(from("# x\n1,2,3.0\n2,3,4\n").checksum, checksum);
  for (const char* other : {"2 3 4\n1 2 3\n", "1 2 3\n2 3 5\n", "1 2 3\n2 4 4\n", "1 2 3\n", "1 2 3\n2 3 4\n2 3 4\n"}) {
    EXPECT_NE(from(other).checksum, checksum) << other;
  }
}

}  // namespace
}  // namespace orrery::testing
