#include "engine/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "tests/engine/files.h"

namespace orrery {
namespace {

using test::expect_error;
using test::read_bytes;
using test::TemporaryDirectory;
using test::write_bytes;

std::string with_header(const std::string& dictionary, const std::string& payload, char version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += version;
  bytes += '\0';
  bytes += static_cast<char>(dictionary.size() & 0xff);
  bytes += static_cast<char>(dictionary.size() >> 8);
  if (version > 1) bytes += std::string(2, '\0');
  return bytes + dictionary + payload;
}

template <class T>
class NpyOf : public testing::Test {};
using Types = testing::Types<float, double, std::int32_t, std::int64_t, std::uint8_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(NpyOf, Types);

TYPED_TEST(NpyOf, ReadsBackTheSameBitsOfEveryShape) {
  const TemporaryDirectory directory;
  for (const NpyShape& shape :
       {NpyShape{}, NpyShape{0}, NpyShape{5}, NpyShape{3, 7}, NpyShape{0, 4}, NpyShape{1000, 33}}) {
    std::vector<TypeParam> values(value_count(shape));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<TypeParam>(i * 37 + 1);
    if (!values.empty()) values[0] = std::numeric_limits<TypeParam>::lowest();
    write_npy(directory / "a.npy", std::span<const TypeParam>{values}, shape);
    NpyReader reader(directory / "a.npy");
    EXPECT_EQ(reader.type(), npy_type_of<TypeParam>());
    EXPECT_EQ(reader.shape(), shape);
    EXPECT_EQ(reader.header().size() % 64, 0U);
    EXPECT_EQ(reader.read_all<TypeParam>(), values);
  }
}

TEST(Npy, HeaderIsWhatNumpyWrites) {
  EXPECT_EQ(npy_header(NpyType::float32, {3, 4}), std::string("\x93NUMPY\x01\x00v\x00", 10) +
                                                      "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }" +
                                                      std::string(58, ' ') + "\n");
  EXPECT_NE(npy_header(NpyType::uint8, {3}).find("'descr': '|u1', 'fortran_order': False, 'shape': (3,), }"),
            std::string::npos);
}

TEST(Npy, PiecesOfAnySizeMakeTheSameFile) {
  const TemporaryDirectory directory;
  std::vector<float> values(1000);
  std::iota(values.begin(), values.end(), 0.5F);
  write_npy(directory / "whole.npy", std::span<const float>{values}, {10, 100});
  write_npy(directory / "pieces.npy", NpyType::float32, {10, 100}, [&](const ByteSink& sink) {
    for (std::size_t at = 0, size = 1; at < 4000; at += size, size = std::min<std::size_t>(size + 13, 4000 - at)) {
      sink(std::as_bytes(std::span{values}).subspan(at, size));
    }
  });
  EXPECT_TRUE(read_bytes(directory / "whole.npy") == read_bytes(directory / "pieces.npy"));
}

TEST(Npy, ASourceThatGivesTooLittleOrTooMuchIsOurFaultAndLeavesNoFile) {
  const TemporaryDirectory directory;
  const std::vector<float> values(10);
  for (const std::uint64_t rows : {9U, 11U}) {
    expect_error(ErrorKind::internal, {"(" + std::to_string(rows) + ",)"},
                 [&] { write_npy(directory / "a.npy", std::span<const float>{values}, {rows}); });
  }
  EXPECT_TRUE(test::names_in(directory.path()).empty());
}

TEST(Npy, AcceptsWhatOthersMayWrite) {
  const TemporaryDirectory directory;
  const std::string payload(24, '\1');
  for (const char* dictionary : {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }\n",
                                 "{'shape': (3,2), 'descr': '<f4', 'fortran_order': False}\n",
                                 "{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (3, 2)}",
                                 "{'descr':'<f4','fortran_order':True,'shape':(6,),}  \n"}) {
    for (const char version : {'\1', '\2', '\3'}) {
      write_bytes(directory / "a.npy", with_header(dictionary, payload, version));
      EXPECT_EQ(NpyReader(directory / "a.npy").payload_bytes(), 24U) << dictionary;
    }
  }
}

TEST(Npy, RefusesWhatItCannotReadWithTheReason) {
  const TemporaryDirectory directory;
  const auto refused = [&](const std::string& bytes, std::string_view why) {
    write_bytes(directory / "a.npy", bytes);
    expect_error(ErrorKind::data, {"a.npy", why}, [&] { NpyReader(directory / "a.npy"); });
  };
  const std::string payload(24, '\1');
  refused("", "not a .npy file");
  refused("PK\3\4 something else that is long enough", "not a .npy file");
  refused(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", payload, '\4'), "version");
  refused(with_header("{'descr': '>f4', 'fortran_order': False, 'shape': (3, 2), }", payload), "'>f4'");
  refused(with_header("{'descr': '<f2', 'fortran_order': False, 'shape': (3, 4), }", payload), "'<f2'");
  refused(with_header("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", payload), "'|O'");
  refused(with_header("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }", payload), "Fortran");
  refused(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 1), }", payload), "2 dimensions");
  refused(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3), }", payload), "array of shape (3, 3)");
  refused(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1), }", payload), "(3, 1)");
  refused(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 2), }", payload), "dictionary");
  refused(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), ", payload), "dictionary");
  refused(with_header("{'descr': '<f4', 'descr': '<f4', 'shape': (3, 2), }", payload), "dictionary");
  refused(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (6), 'x': 1}", payload), "dictionary");
  refused(with_header("{'descr': '<f4', 'shape': (3, 2), }", payload), "dictionary");
}

TEST(Npy, AHostileShapeAllocatesNothing) {
  const TemporaryDirectory directory;
  for (const char* shape : {"(4611686018427387904, 4)", "(18446744073709551615,)", "(99999999999999999999999,)",
                            "(1000000000000,)", "(4294967296, 4294967296)"}) {
    write_bytes(directory / "a.npy",
                with_header("{'descr': '<f4', 'fortran_order': False, 'shape': " + std::string{shape} + ", }", "abcd"));
    expect_error(ErrorKind::data, {"a.npy"}, [&] { NpyReader(directory / "a.npy"); });
  }
  std::string huge = with_header("", "");
  huge[6] = 2;
  huge += std::string("\xff\xff\xff", 3);
  write_bytes(directory / "a.npy", huge);
  expect_error(ErrorKind::data, {"a.npy", "header"}, [&] { NpyReader(directory / "a.npy"); });
}

TEST(Npy, EveryTruncationIsRefused) {
  const TemporaryDirectory directory;
  write_npy(directory / "a.npy", std::span<const double>{std::vector<double>(3)}, {3});
  const std::string whole = read_bytes(directory / "a.npy");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_bytes(directory / "b.npy", whole.substr(0, size));
    expect_error(ErrorKind::data, {"b.npy"}, [&] { NpyReader(directory / "b.npy"); });
  }
  write_bytes(directory / "b.npy", whole + "x");
  expect_error(ErrorKind::data, {"b.npy", "expected 152 bytes", "got 153"}, [&] { NpyReader(directory / "b.npy"); });
}

TEST(Npy, MissingFilesDirectoriesAndOtherTypesAreDataErrors) {
  const TemporaryDirectory directory;
  expect_error(ErrorKind::data, {"no.npy", "No such file"}, [&] { NpyReader(directory / "no.npy"); });
  expect_error(ErrorKind::data, {"cannot be read"}, [&] { NpyReader reader(directory.path()); });
  write_npy(directory / "a.npy", std::span<const float>{std::vector<float>(3)}, {3});
  NpyReader reader(directory / "a.npy");
  expect_error(ErrorKind::data, {"a.npy", "<f8", "<f4"}, [&] { reader.read_all<double>(); });
}

}  // namespace
}  // namespace orrery
