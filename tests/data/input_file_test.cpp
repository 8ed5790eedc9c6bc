// Input as bytes: gzip in all its shapes, and every way in which a file can fail to be one.
#include "engine/data/input_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/data/ratings.h"
#include "tests/data/data_test_support.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;

class InputFiles : public DataTest {
 protected:
  static std::string all_of(InputFile& input, std::size_t step) {
    std::string all, part(step, '\0');
    while (const std::size_t got = input.read(part)) all.append(part, 0, got);
    return all;
  }
};

std::string long_text() {
  std::string text;
  for (int i = 0; i < 30000; ++i) text += std::to_string(i * 7919 % 1000003) + (i % 11 == 0 ? "\n" : " ");
  return text;
}

TEST_F(InputFiles, undoes_gzip_whatever_its_members_and_the_steps_of_reading) {
  const std::string text = long_text();
  const std::string spellings[] = {text, gzip(text), gzip(text.substr(0, 1000)) + gzip(text.substr(1000)),
                                   gzip("") + gzip(text) + gzip("") + std::string(1000, '\0')};
  for (const std::string& spelling : spellings) {
    for (const std::size_t step : {std::size_t{1000}, std::size_t{1} << 20}) {
      InputFile input(file("f", spelling));
      EXPECT_EQ(input.peek(10).substr(0, 10), text.substr(0, 10));
      EXPECT_EQ(input.peek(5000).substr(0, 5000), text.substr(0, 5000)) << "peeking again sees more";
      EXPECT_EQ(all_of(input, step), text);
    }
  }
}

TEST_F(InputFiles, begins_behind_a_utf_8_byte_order_mark) {
  const std::string text = long_text(), mark = "\xEF\xBB\xBF";
  for (const std::string& spelling : {mark + text, gzip(mark + text), gzip(mark) + gzip(text)}) {
    InputFile input(file("f", spelling));
    EXPECT_EQ(input.peek(10).substr(0, 10), text.substr(0, 10));
    EXPECT_EQ(all_of(input, 1000), text);
  }
  const InputFile input(file("f", mark + text));
  std::string part(20, '\0');
  EXPECT_EQ(input.content_bytes(), text.size());
  EXPECT_EQ(input.read_at(text.size() - 10, part), 10U);
  EXPECT_EQ(part.substr(0, 10), text.substr(text.size() - 10));
  EXPECT_EQ(InputFile(file("f", mark)).peek(10), "");
  EXPECT_EQ(InputFile(file("f", "\xEF\xBB")).peek(10), "\xEF\xBB") << "half a mark is none";
}

TEST_F(InputFiles, is_never_utf_16) {
  const std::string low_first{"\xFF\xFE\x31\x00", 4}, high_first{"\xFE\xFF\x00\x31", 4};
  for (const std::string& spelling : {low_first, gzip(low_first)}) {
    EXPECT_EQ(error_of([&] { InputFile input(file("f", spelling)); }),
              path("f") + ": expected UTF-8 or ASCII text, got UTF-16 (byte order mark FF FE)");
  }
  EXPECT_THAT(error_of([&] { InputFile input(file("f", high_first)); }), HasSubstr("FE FF"));
}

TEST_F(InputFiles, hands_out_everything_before_the_place_where_gzip_data_is_cut) {
  const std::string text = long_text(), packed = gzip(text);
  for (const std::size_t keep :
       {std::size_t{3}, std::size_t{12}, packed.size() / 2, packed.size() - 9, packed.size() - 1}) {
    std::string all, part(999, '\0');
    const std::string message = error_of([&] {
      InputFile input(file("f", packed.substr(0, keep)));
      while (const std::size_t got = input.read(part)) all.append(part, 0, got);
    });
    EXPECT_THAT(message, HasSubstr("truncated")) << keep;
    EXPECT_TRUE(text.starts_with(all));
    EXPECT_THAT(message, HasSubstr("after " + std::to_string(all.size()) + " bytes"));
  }
}

TEST_F(InputFiles, finds_damage_in_gzip_data) {
  const std::string text = long_text();
  std::string packed = gzip(text);
  packed[packed.size() - 6] ^= 1;  // the check sum
  EXPECT_THAT(error_of([&] {
                InputFile input(file("f", packed));
                all_of(input, 4096);
              }),
              HasSubstr("damaged"));
  EXPECT_THAT(error_of([&] {
                InputFile input(file("f", gzip(text) + "rest"));
                all_of(input, 4096);
              }),
              HasSubstr("not gzip data after the end"));
}

TEST_F(InputFiles, reports_a_bad_line_before_the_cut_and_the_cut_before_a_half_line) {
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += std::to_string(i * 7919 % 1009) + " " + std::to_string(i) + " 3\n";
  const std::string packed = gzip(lines), bad = gzip("1 2 x\n" + lines);
  const auto message = [&](const std::string& content) { return error_of([&] { read_ratings(file("f", content)); }); };
  EXPECT_THAT(message(packed.substr(0, packed.size() / 2)), HasSubstr("truncated"));
  EXPECT_THAT(message(bad.substr(0, bad.size() / 2)), HasSubstr(":1:5: expected a rating, got 'x'"));
}

TEST_F(InputFiles, refuses_what_is_no_readable_file) {
  EXPECT_EQ(error_of([&] { InputFile input(path("missing")); }),
            path("missing") + ": cannot read: No such file or directory");
  EXPECT_EQ(error_of([&] { InputFile input(directory_.string()); }),
            directory_.string() + ": expected a file, got a directory");
  EXPECT_THAT(error_of([&] { InputFile input("/dev/null"); }), HasSubstr("a device"));
  const std::string locked = file("locked", "1 2 3\n");
  ::chmod(locked.c_str(), 0);
  const uid_t self = ::geteuid();
  if (self == 0) {
    ASSERT_EQ(::seteuid(65534), 0) << "root may read everything, so be nobody for a moment";
  }
  const std::string message = error_of([&] { InputFile input(locked); });
  if (self == 0) {
    ASSERT_EQ(::seteuid(self), 0);
  }
  EXPECT_EQ(message, locked + ": cannot read: Permission denied");
}

TEST_F(InputFiles, reads_a_pipe) {
  for (const bool packed : {false, true}) {
    const std::string text = long_text(), pipe = path(packed ? "pipe.gz" : "pipe");
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    std::jthread writer([&] { std::ofstream(pipe, std::ios::binary) << (packed ? gzip(text) : text); });
    InputFile input(pipe);
    EXPECT_FALSE(input.seekable());
    EXPECT_EQ(input.peek(70000).substr(0, 70000), text.substr(0, 70000));
    EXPECT_EQ(all_of(input, 12345), text);
  }
}

}  // namespace
}  // namespace orrery::testing
