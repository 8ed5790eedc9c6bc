#include "engine/model_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/engine/files.h"

namespace orrery {
namespace {

using test::expect_error;
using test::names_in;
using test::read_bytes;
using test::TemporaryDirectory;
using test::write_bytes;
using testing::ElementsAre;

const std::vector<std::string> kIds{"alice", "", "b ö b"};

std::vector<float> numbers(std::size_t count, float start = 0.25F) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), start);
  return values;
}

std::string write_model(const std::filesystem::path& directory, float start = 0.25F,
                        const std::string& metadata = R"({"mean":3.5})") {
  ModelWriter writer(directory);
  writer.add_array("w", std::span<const float>{numbers(12, start)}, {3, 4});
  writer.add_array("bias", std::span<const double>{std::vector<double>{1.5, -2}});
  writer.add_text("users", kIds);
  return writer.finish(metadata);
}

/// What a careful user does with a model: everything is read.
void read_model(const std::filesystem::path& directory) {
  const ModelReader reader(directory);
  reader.verify();
}

TEST(ModelStore, ReadsBackWhatWasWritten) {
  const TemporaryDirectory directory;
  const std::string sum = write_model(directory.path());
  EXPECT_THAT(names_in(directory.path()), ElementsAre("model"));
  for (const auto& where : {directory.path(), directory / "model"}) {
    const ModelReader reader(where);
    EXPECT_EQ(reader.read<float>("w"), numbers(12));
    EXPECT_EQ(reader.entry("w").shape, (NpyShape{3, 4}));
    EXPECT_EQ(reader.read<double>("bias"), (std::vector<double>{1.5, -2}));
    EXPECT_EQ(reader.read_text("users"), kIds);
    EXPECT_EQ(reader.metadata(), R"({"mean":3.5})");
    EXPECT_EQ(reader.model_checksum(), sum);
    EXPECT_THAT(reader.names(), ElementsAre("bias", "users", "w"));
    EXPECT_FALSE(reader.has("v"));
    reader.verify();
  }
}

TEST(ModelStore, ChecksumIsThatOfTheModelAlone) {
  const TemporaryDirectory a;
  const TemporaryDirectory b;
  EXPECT_EQ(write_model(a.path()), write_model(b.path(), 0.25F, R"({"mean":4,"seconds":1})"));
  EXPECT_NE(write_model(a.path()), write_model(b.path(), 0.5F));
  ModelWriter other_order(b.path());
  other_order.add_text("users", kIds);
  other_order.add_array("bias", std::span<const double>{std::vector<double>{1.5, -2}});
  other_order.add_array("w", std::span<const float>{numbers(12)}, {3, 4});
  EXPECT_EQ(other_order.finish("{}"), write_model(a.path()));
}

TEST(ModelStore, ALaterModelReplacesTheOlderAsAWhole) {
  const TemporaryDirectory directory;
  write_model(directory.path());
  ModelWriter writer(directory.path());
  writer.add_array("v", std::span<const float>{numbers(2)});
  read_model(directory.path());
  writer.finish("{}");
  EXPECT_THAT(names_in(directory / "model"), ElementsAre("manifest.json", "v.npy"));
  EXPECT_THAT(names_in(directory.path()), ElementsAre("model"));
}

TEST(ModelStore, AWriterThatIsGivenUpLeavesTheOlderModelAndNoTrace) {
  const TemporaryDirectory directory;
  write_model(directory.path());
  {
    ModelWriter writer(directory.path());
    writer.add_array("v", std::span<const float>{numbers(2)});
  }
  EXPECT_THAT(names_in(directory.path()), ElementsAre("model"));
  read_model(directory.path());
}

TEST(ModelStore, EveryFlippedByteIsFoundOrHarmless) {
  const TemporaryDirectory directory;
  write_model(directory.path());
  for (const std::string& name : names_in(directory / "model")) {
    const std::filesystem::path file = directory / "model" / name;
    const std::string whole = read_bytes(file);
    const std::size_t step = name == "manifest.json" ? 5 : 1;
    std::size_t harmless = 0;
    for (std::size_t i = 0; i < whole.size(); i += step) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ 1);
      write_bytes(file, damaged);
      try {
        read_model(directory.path());
        ++harmless;  // white space between the tokens of the manifest
        EXPECT_TRUE(name == "manifest.json" && (whole[i] == ' ' || whole[i] == '\n')) << name << " byte " << i;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
        EXPECT_NE(std::string_view{error.what()}.find(directory.path().string()), std::string_view::npos);
      }
    }
    EXPECT_TRUE(harmless == 0 || name == "manifest.json");
    write_bytes(file, whole);
  }
  read_model(directory.path());
}

TEST(ModelStore, EveryTruncationAndEveryMissingFileIsFound) {
  const TemporaryDirectory directory;
  write_model(directory.path());
  for (const std::string& name : names_in(directory / "model")) {
    const std::filesystem::path file = directory / "model" / name;
    const std::string whole = read_bytes(file);
    const std::size_t step = name == "manifest.json" ? 5 : 1;
    for (std::size_t size = 0; size + 1 < whole.size();
         size += step) {  // without its last line feed JSON is still whole
      write_bytes(file, whole.substr(0, size));
      expect_error(ErrorKind::data, {directory.path().string()}, [&] { read_model(directory.path()); });
    }
    std::filesystem::remove(file);
    expect_error(ErrorKind::data, {directory.path().string()}, [&] { read_model(directory.path()); });
    write_bytes(file, whole);
  }
}

TEST(ModelStore, WhatIsNoModelIsSaidSo) {
  const TemporaryDirectory directory;
  expect_error(ErrorKind::data, {"holds no model"}, [&] { ModelReader(directory.path()); });
  expect_error(ErrorKind::data, {"holds no model"}, [&] { ModelReader(directory / "no"); });
  write_bytes(directory / "manifest.json", R"({"format":"something else"})");
  expect_error(ErrorKind::data, {"manifest.json", "not the manifest"}, [&] { ModelReader(directory.path()); });
  write_bytes(directory / "manifest.json", R"({"format":"orrery-model","format_version":2})");
  expect_error(ErrorKind::data, {"version 1", "2"}, [&] { ModelReader(directory.path()); });
}

TEST(ModelStore, AManifestCannotLeadOutOfItsDirectory) {
  const TemporaryDirectory directory;
  write_model(directory.path());
  std::string manifest = read_bytes(directory / "model/manifest.json");
  const std::size_t at = manifest.find("\"w.npy\"");
  ASSERT_NE(at, std::string::npos);
  manifest.replace(at, 7, "\"../../w.npy\"");
  write_bytes(directory / "model/manifest.json", manifest);
  expect_error(ErrorKind::data, {"manifest.json"}, [&] { ModelReader(directory.path()); });
}

TEST(ModelStore, WrongTypeSizeOrNameIsADataError) {
  const TemporaryDirectory directory;
  write_model(directory.path());
  const ModelReader reader(directory.path());
  expect_error(ErrorKind::data, {"no 'v'"}, [&] { reader.read<float>("v"); });
  expect_error(ErrorKind::data, {"w.npy", "<f8", "<f4"}, [&] { reader.read<double>("w"); });
  expect_error(ErrorKind::data, {"text"}, [&] { reader.read<float>("users"); });
  expect_error(ErrorKind::data, {"array"}, [&] { reader.read_text("w"); });
  std::vector<float> small(11);
  expect_error(ErrorKind::data, {"expected 11", "got 12"}, [&] { reader.read("w", std::span<float>{small}); });
}

TEST(ModelStore, UnusableNamesTextsAndMetadataAreOurFault) {
  const TemporaryDirectory directory;
  ModelWriter writer(directory.path());
  writer.add_array("w", std::span<const float>{numbers(1)});
  for (const char* name : {"w", "", "a/b", "..", "W"}) {
    expect_error(ErrorKind::internal, {"name"}, [&] { writer.add_array(name, std::span<const float>{numbers(1)}); });
  }
  const std::vector<std::string> torn{"a\nb"};
  expect_error(ErrorKind::internal, {"line feed"}, [&] { writer.add_text("t", torn); });
  expect_error(ErrorKind::internal, {"JSON"}, [&] { writer.finish("[]"); });
}

TEST(ModelStore, FullDiskIsAnOutputErrorAndTheOlderModelStays) {
  const TemporaryDirectory directory;
  write_model(directory.path());
  for (const rlim_t limit : {rlim_t{10}, rlim_t{200}, rlim_t{50000}}) {
    EXPECT_EQ(test::exit_code_of_child([&] {
                test::limit_file_size(limit);
                ModelWriter writer(directory.path());
                writer.add_array("w", std::span<const float>{numbers(limit < 200 ? 1 : 20000)});
                writer.add_text("t", std::vector<std::string>(20000, "text"));
                writer.finish("{}");
                return 0;
              }),
              5);
  }
  read_model(directory.path());
  EXPECT_THAT(names_in(directory.path()), ElementsAre("model"));
}

TEST(ModelStore, KilledAtAnyMomentLeavesAWholeModel) {
  const TemporaryDirectory directory;
  for (unsigned round = 0; round < 20; ++round) {
    test::run_and_kill(
        [&](auto ready) {
          for (float start = 0;; ++start) {
            write_model(directory.path(), start);
            if (start == 0) ready();
          }
        },
        round * 211);
    read_model(directory.path());
    remove_orphans(directory.path());
    ASSERT_THAT(names_in(directory.path()), ElementsAre("model"));
  }
}

}  // namespace
}  // namespace orrery
