#include "engine/scratch_file.h"

#include <gtest/gtest.h>

#include "engine/types.h"
#include "tests/engine/files.h"

namespace orrery {
namespace {

using test::expect_error;
using test::names_in;
using test::TemporaryDirectory;

TEST(ScratchFile, keeps_what_is_written_and_has_no_name) {
  const TemporaryDirectory directory;
  ScratchFile file(directory.path(), 100000);
  EXPECT_EQ(file.size(), 100000U);
  EXPECT_TRUE(names_in(directory.path()).empty());
  std::vector<std::byte> bytes(5000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  file.write(91234, bytes);
  file.write(10, std::span(bytes).first(3));
  std::vector<std::byte> back(5000);
  file.read(91234, back);
  EXPECT_EQ(back, bytes);
  file.read(10, std::span(back).first(3));
  EXPECT_EQ(back[2], bytes[2]);
}

TEST(ScratchFile, says_where_there_is_no_room) {
  const TemporaryDirectory directory;
  expect_error(ErrorKind::output, {"working space of 1152921504606846976 bytes in", directory.path().string()},
               [&] { ScratchFile(directory.path(), std::uint64_t{1} << 60); });
  expect_error(ErrorKind::output, {"cannot write working space"},
               [&] { ScratchFile(directory.path() / "missing", 10); });
}

}  // namespace
}  // namespace orrery
