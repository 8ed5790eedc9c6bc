// Maps of ids: every id is found under its index, and a saved map comes back as it was.
#include "engine/data/id_map.h"

#include <gmock/gmock.h>

#include "tests/data/data_test_support.h"

namespace orrery::testing {
namespace {

class IdMaps : public DataTest {
 protected:
  IdMap saved_and_loaded(const IdMap& map) {
    std::ofstream out(path("ids"));
    map.save(out);
    out.close();
    return IdMap::load(path("ids"));
  }
};

void expect_consistent(const IdMap& map) {
  for (std::uint32_t i = 0; i < map.size(); ++i) ASSERT_EQ(map.find(map.text(i)), i) << map.text(i);
}

IdMap texts(std::initializer_list<const char*> ids) {
  TextIds all;
  for (const char* id : ids) all.insert(id);
  return IdMap::from_texts(std::move(all));
}

TEST_F(IdMaps, finds_every_id_and_no_other) {
  std::vector<std::uint64_t> spread, dense;
  for (std::uint64_t i = 1; i < 2000; ++i) {
    spread.push_back(i * i * i * 1000003);
    dense.push_back(i * 3);
  }
  spread.push_back(~std::uint64_t{0});
  const IdMap maps[] = {IdMap::from_range(5, 100), IdMap::from_integers(spread), IdMap::from_integers(dense),
                        IdMap::from_integers({7, 8, 9}),
                        texts({"a", "longer than eight bytes", "12345678", "123456789", "b"})};
  for (const IdMap& map : maps) {
    expect_consistent(map);
    for (const char* other : {"", "4", "-7", "007", "zz", "99999999999999999999", "longer than eight byteS"}) {
      EXPECT_EQ(map.find(other), IdMap::kUnseen) << other;
    }
    EXPECT_EQ(map.find(std::uint64_t{2}), IdMap::kUnseen);
    EXPECT_EQ(map.find(~std::uint64_t{0} - 1), IdMap::kUnseen);
  }
  EXPECT_EQ(IdMap().find("1"), IdMap::kUnseen);
  EXPECT_EQ(IdMap().find(std::uint64_t{0}), IdMap::kUnseen);
}

TEST_F(IdMaps, comes_back_from_a_file_and_from_lines) {
  for (const IdMap& map : {IdMap::from_range(0, 50), IdMap::from_integers({3, 900, 1000000000000}),
                           texts({"b", "a c", "7"}), texts({"7", "3"})}) {
    for (const IdMap& back : {saved_and_loaded(map), IdMap::from_lines(map.texts())}) {
      EXPECT_EQ(back.texts(), map.texts());
      EXPECT_EQ(back.checksum(), map.checksum());
      EXPECT_EQ(back.integers(), map.integers());
      expect_consistent(back);
    }
  }
  EXPECT_EQ(error_of([&] { IdMap::load(file("f", "a\nb\na\n")); }),
            path("f") + ":3:1: expected an id that did not occur before, got 'a'");
  EXPECT_EQ(error_of([&] { IdMap::load(file("f", "a\n\nb\n")); }), path("f") + ":2:1: expected an id, got nothing");
  const std::vector<std::string> doubled = {"a", "a"};
  EXPECT_THROW(IdMap::from_lines(doubled), std::invalid_argument);
}

TEST_F(IdMaps, takes_only_plain_integers_for_integers) {
  std::uint64_t value = 0;
  for (const char* text : {"0", "7", "18446744073709551615"}) EXPECT_TRUE(plain_integer(text, value)) << text;
  for (const char* text : {"", "-1", "+1", "01", "1.0", " 1", "1 ", "18446744073709551616", "x"}) {
    EXPECT_FALSE(plain_integer(text, value)) << text;
  }
}

TEST_F(IdMaps, numbers_strings_by_first_appearance_through_many_of_them) {
  TextIds ids;
  for (std::uint32_t i = 0; i < 20000; ++i) ASSERT_EQ(ids.insert("id" + std::to_string(i * 2654435761U)), i);
  for (std::uint32_t i = 0; i < 20000; ++i) ASSERT_EQ(ids.insert("id" + std::to_string(i * 2654435761U)), i);
  EXPECT_EQ(ids.find("id"), TextIds::kNone);
  ids.clear();
  EXPECT_EQ(ids.find("id0"), TextIds::kNone);
  EXPECT_EQ(ids.insert(""), 0U) << "the empty string is a string";
  EXPECT_EQ(ids.find(""), 0U);
}

}  // namespace
}  // namespace orrery::testing
