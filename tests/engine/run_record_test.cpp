#include "engine/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/json.h"
#include "tests/engine/files.h"

namespace orrery {
namespace {

using test::expect_error;
using test::TemporaryDirectory;
using test::write_bytes;

RunRecord some_record() {
  RunRecord record;
  record.command = {"orrery", "train", "mf", "a file"};
  record.algorithm = "mf";
  record.parameters_json = R"({"rank":16,"reg":0.1})";
  record.data_json = R"({"users":3,"checksum":"00"})";
  record.topology_json = R"({"domains":1})";
  record.threads = 2;
  record.workers = 16;
  record.consistency = "bsp";
  record.schedule = "rotation";
  record.simd = "avx2";
  record.seed = ~std::uint64_t{0};
  record.format = "ratings";
  record.add_warning("one domain");
  record.more_json.emplace_back("plan", R"({"rows":7})");
  return record;
}

RunResult some_result() {
  return {.iterations = 20,
          .seconds = 1.25,
          .seconds_loading = 0.1,
          .metric = "rmse",
          .value = 1.0 / 3.0,
          .stopped_by = "iterations",
          .peak_rss_bytes = 123456789,
          .model_checksum = "00112233",
          .more = {{"mae", 0.7}, {"best_iteration", std::int64_t{18}}, {"note", std::string{"x"}}, {"exact", true}}};
}

TEST(RunRecord, HasTheKeysThatOthersRelyOnInTheirOrder) {
  RunRecord record = some_record();
  record.result = some_result();
  const Json json = parse_json(to_json(record));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_THAT(keys, testing::ElementsAre("orrery", "command", "algorithm", "parameters", "data", "topology", "threads",
                                         "workers", "ranks", "consistency", "staleness", "schedule", "simd", "seed",
                                         "format", "warnings", "plan", "result"));
  keys.clear();
  for (const auto& [key, value] : json["result"].items()) keys.push_back(key);
  EXPECT_THAT(keys, testing::ElementsAre("iterations", "seconds", "seconds_loading", "metric", "value", "stopped_by",
                                         "peak_rss_bytes", "model_checksum", "mae", "best_iteration", "note", "exact"));
  EXPECT_TRUE(json["parameters"].is_object());
  EXPECT_EQ(json["orrery"], orrery_version());
}

TEST(RunRecord, ReadsBackTheSame) {
  const TemporaryDirectory directory;
  RunRecord record = some_record();
  for (const bool done : {false, true}) {
    if (done) record.result = some_result();
    write_run_record(directory / "run.json", record);
    const RunRecord read = read_run_record(directory / "run.json");
    EXPECT_EQ(to_json(read), to_json(record));
    EXPECT_EQ(read.finished(), done);
  }
  EXPECT_EQ(read_run_record(directory / "run.json").result->value, 1.0 / 3.0);
}

TEST(RunRecord, AnInterruptedRunIsNotFinished) {
  RunRecord record = some_record();
  record.result = some_result();
  record.result->stopped_by = "interrupt";
  EXPECT_FALSE(record.finished());
}

TEST(RunRecord, KeepsEachWarningOnce) {
  RunRecord record = some_record();
  record.add_warning("two");
  record.add_warning("one domain");
  EXPECT_THAT(record.warnings, testing::ElementsAre("one domain", "two"));
}

TEST(RunRecord, ANumberThatIsNoneIsNull) {
  const TemporaryDirectory directory;
  RunRecord record = some_record();
  record.result = some_result();
  record.result->value = std::nan("");
  write_run_record(directory / "run.json", record);
  EXPECT_TRUE(std::isnan(*read_run_record(directory / "run.json").result->value));
}

TEST(RunRecord, ArgumentsThatAreNoUtf8AreRecordedAllTheSame) {
  RunRecord record = some_record();
  record.command.emplace_back("na\xefve");
  EXPECT_TRUE(parse_json(to_json(record)).is_object());
}

TEST(RunRecord, WhatIsNoRecordIsADataError) {
  const TemporaryDirectory directory;
  expect_error(ErrorKind::data, {"cannot be read"}, [&] { read_run_record(directory / "run.json"); });
  const std::string whole = to_json(some_record());
  for (std::size_t size = 0; size + 2 < whole.size(); size += 5) {
    write_bytes(directory / "run.json", whole.substr(0, size));
    expect_error(ErrorKind::data, {"run.json", "no run record"}, [&] { read_run_record(directory / "run.json"); });
  }
  for (const char* bad : {"[]", "{}", R"({"orrery":1})", "null"}) {
    write_bytes(directory / "run.json", bad);
    expect_error(ErrorKind::data, {"run.json", "no run record"}, [&] { read_run_record(directory / "run.json"); });
  }
}

TEST(RunRecord, AFieldThatHoldsNoJsonIsOurFault) {
  RunRecord record = some_record();
  record.data_json = "{";
  expect_error(ErrorKind::internal, {"'data'"}, [&] { to_json(record); });
}

}  // namespace
}  // namespace orrery
