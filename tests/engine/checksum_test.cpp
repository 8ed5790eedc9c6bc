#include "engine/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "engine/random.h"

namespace orrery {
namespace {

TEST(Checksum, IsXxh64OfThePublishedVectors) {
  EXPECT_EQ(checksum(std::string_view{}), 0xef46db3751d8e999U);
  EXPECT_EQ(checksum("a"), 0xd24ec4f1a98c6e5bU);
  EXPECT_EQ(checksum("abc"), 0x44bc2cf5ad770999U);
  EXPECT_EQ(checksum("Nobody inspects the spammish repetition"), 0xfbcea83c8a378bf1U);
}

TEST(Checksum, IsTheSameHoweverTheBytesAreCut) {
  std::string text;
  RandomStream draws = Random(1, Purpose::test).stream(0, 0);
  for (std::size_t i = 0; i < 1000; ++i) text += static_cast<char>(draws.below(256));
  for (std::size_t length : {0U, 1U, 31U, 32U, 33U, 64U, 100U, 1000U}) {
    const std::uint64_t whole = checksum(std::string_view{text}.substr(0, length));
    for (int round = 0; round < 20; ++round) {
      Checksum pieces;
      for (std::size_t at = 0; at < length;) {
        const std::size_t size = std::min<std::size_t>(length - at, 1 + draws.below(40));
        pieces.update(std::string_view{text}.substr(at, size));
        at += size;
      }
      EXPECT_EQ(pieces.value(), whole);
      EXPECT_EQ(pieces.value(), whole) << "asking must not change the state";
    }
  }
}

TEST(Checksum, EveryFlippedBitIsSeen) {
  std::string text = "a text of some length, longer than one block of 32";
  const std::uint64_t good = checksum(text);
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(checksum(text), good);
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
  }
}

TEST(Checksum, TextHasSixteenDigitsAndReadsBack) {
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1}, 0xfbcea83c8a378bf1U}) {
    EXPECT_EQ(checksum_text(value).size(), 16U);
    EXPECT_EQ(parse_checksum(checksum_text(value)), value);
  }
  for (const char* bad : {"", "12", "fbcea83c8a378bfg", "FBCEA83C8A378BF1", "fbcea83c8a378bf1 ", "+bcea83c8a378bf1"}) {
    EXPECT_FALSE(parse_checksum(bad)) << bad;
  }
}

}  // namespace
}  // namespace orrery
