#include "engine/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "engine/atomic_file.h"
#include "tests/engine/files.h"

namespace orrery {
namespace {

using test::expect_error;
using test::names_in;
using test::TemporaryDirectory;
using test::write_bytes;
using testing::ElementsAre;
using testing::IsEmpty;

void write_run(const std::filesystem::path& directory, const std::string& stopped_by) {
  std::filesystem::create_directories(directory / "model");
  std::filesystem::create_directories(directory / "checkpoint");
  write_bytes(directory / "metrics.jsonl", "{}\n");
  write_bytes(directory / "model/manifest.json", "{}");
  RunRecord record;
  if (!stopped_by.empty()) record.result = RunResult{.iterations = 7, .stopped_by = stopped_by};
  write_run_record(directory / "run.json", record);
}

TEST(RunDirectory, IsMadeWithItsParentsAndVanishesWhenNothingCameOfIt) {
  const TemporaryDirectory directory;
  {
    RunDirectory run(directory / "a/b/c", ExistingRun::refuse);
    EXPECT_TRUE(std::filesystem::is_directory(directory / "a/b/c"));
    EXPECT_EQ(run.begin(), 0U);
  }
  EXPECT_THAT(names_in(directory.path()), IsEmpty());
  {
    RunDirectory run(directory / "a/b/", ExistingRun::refuse);
    write_file(run.record_file(), "{}");
  }
  EXPECT_THAT(names_in(directory / "a/b"), ElementsAre("run.json"));
  std::filesystem::create_directory(directory / "mine");
  { RunDirectory run(directory / "mine", ExistingRun::refuse); }
  EXPECT_TRUE(std::filesystem::exists(directory / "mine")) << "it was there before";
}

TEST(RunDirectory, ARunIsRefusedUnlessItIsToBeReplaced) {
  for (const char* left : {"run.json", "model", "checkpoint"}) {
    const TemporaryDirectory directory;
    std::filesystem::create_directory(directory / left);
    expect_error(ErrorKind::usage, {directory.path().string(), "holds a run", "--resume", "--overwrite"},
                 [&] { RunDirectory(directory.path(), ExistingRun::refuse); });
    EXPECT_THAT(names_in(directory.path()), ElementsAre(left));
    RunDirectory run(directory.path(), ExistingRun::overwrite);
    EXPECT_TRUE(std::filesystem::exists(directory / left)) << "nothing is lost before the run begins";
    run.begin();
    EXPECT_FALSE(std::filesystem::exists(directory / left));
  }
}

TEST(RunDirectory, WhatARunThatCameToNothingLeftIsReplaced) {
  for (const char* stopped_by : {"", "interrupt"}) {
    const TemporaryDirectory directory;
    write_run(directory.path(), stopped_by);
    std::filesystem::remove_all(directory / "model");
    write_bytes(directory / "checkpoint/.clock-3.ckpt.tmp-1-0", "half");
    write_bytes(directory / "notes.txt", "mine");
    RunDirectory run(directory.path(), ExistingRun::refuse);
    EXPECT_TRUE(run.holds_remains());
    EXPECT_TRUE(std::filesystem::exists(run.metrics_file())) << "nothing is lost before the run begins";
    run.begin();
    EXPECT_THAT(names_in(directory.path()), ElementsAre(".lock", "notes.txt"));
  }
}

TEST(RunDirectory, ARecordAloneIsARunWhenItIsFinishedOrCannotBeReadOrHasACheckpoint) {
  const auto refused = [](const std::string& stopped_by, const char* file, const char* content) {
    const TemporaryDirectory directory;
    write_run(directory.path(), stopped_by);
    std::filesystem::remove_all(directory / "model");
    write_bytes(directory / file, content);
    expect_error(ErrorKind::usage, {"holds a run"}, [&] { RunDirectory(directory.path(), ExistingRun::refuse); });
  };
  refused("iterations", "metrics.jsonl", "");
  refused("", "run.json", "{");
  refused("", "checkpoint/clock-3.ckpt", "whole");
}

TEST(RunDirectory, OverwritingRemovesTheRunAndNothingElse) {
  const TemporaryDirectory directory;
  write_run(directory.path(), "iterations");
  write_bytes(directory / "notes.txt", "mine");
  RunDirectory run(directory.path(), ExistingRun::overwrite);
  run.begin();
  EXPECT_THAT(names_in(directory.path()), ElementsAre(".lock", "notes.txt"));
}

TEST(RunDirectory, UnfinishedAndInterruptedRunsCanBeResumed) {
  for (const char* stopped_by : {"", "interrupt"}) {
    const TemporaryDirectory directory;
    write_run(directory.path(), stopped_by);
    RunDirectory run(directory.path(), ExistingRun::resume);
    ASSERT_TRUE(run.resumed());
    run.begin();
    EXPECT_TRUE(std::filesystem::exists(run.metrics_file()));
    EXPECT_TRUE(std::filesystem::exists(run.checkpoint_directory()));
  }
}

TEST(RunDirectory, AFinishedRunIsNotResumed) {
  const TemporaryDirectory directory;
  write_run(directory.path(), "tolerance");
  expect_error(ErrorKind::usage, {"finished", "7 iterations"},
               [&] { RunDirectory(directory.path(), ExistingRun::resume); });
}

TEST(RunDirectory, ResumingNothingStartsAnew) {
  const TemporaryDirectory directory;
  const RunDirectory run(directory / "new", ExistingRun::resume);
  EXPECT_FALSE(run.resumed());
}

TEST(RunDirectory, ResumingWithoutOrWithADamagedRecordIsRefused) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "model");
  expect_error(ErrorKind::usage, {"no run.json"}, [&] { RunDirectory(directory.path(), ExistingRun::resume); });
  write_bytes(directory / "run.json", "{");
  expect_error(ErrorKind::data, {"run.json"}, [&] { RunDirectory(directory.path(), ExistingRun::resume); });
  EXPECT_THAT(names_in(directory.path()), ElementsAre("model", "run.json"));
}

TEST(RunDirectory, TwoRunsInOneDirectoryAreRefusedWithTheHolder) {
  const TemporaryDirectory directory;
  {
    RunDirectory run(directory / "r", ExistingRun::refuse);
    expect_error(ErrorKind::usage, {"in use by process " + std::to_string(::getpid())},
                 [&] { RunDirectory(directory / "r", ExistingRun::refuse); });
    EXPECT_EQ(test::exit_code_of_child([&] {
                RunDirectory other(directory / "r", ExistingRun::overwrite);
                return 0;
              }),
              2);
  }
  RunDirectory again(directory / "r", ExistingRun::refuse);
}

TEST(RunDirectory, AKilledRunHoldsNoLockAndItsTemporariesGo) {
  const TemporaryDirectory directory;
  test::run_and_kill(
      [&](auto ready) {
        RunDirectory run(directory / "r", ExistingRun::refuse);
        run.begin();
        std::filesystem::create_directory(run.checkpoint_directory());
        AtomicFile one(run.path() / "half");
        AtomicFile two(run.checkpoint_directory() / "half");
        AtomicDirectory three(run.model_directory());
        ready();
        for (;;) ::pause();
      },
      0);
  RunDirectory run(directory / "r", ExistingRun::overwrite);
  std::filesystem::create_directory(run.checkpoint_directory().parent_path() / "x");
  EXPECT_EQ(run.begin(), 2U) << "the third lay in the overwritten run's checkpoint directory";
  EXPECT_THAT(names_in(directory / "r"), ElementsAre(".lock", "x"));
}

TEST(RunDirectory, ManyContendersOneHolderAtATime) {
  const TemporaryDirectory directory;
  std::atomic<int> inside{0};
  std::atomic<int> held{0};
  const auto contend = [&] {
    for (int i = 0; i < 300; ++i) {
      try {
        RunDirectory run(directory / "r", ExistingRun::refuse);
        EXPECT_EQ(inside.fetch_add(1), 0);
        held.fetch_add(1);
        inside.fetch_sub(1);
      } catch (const Error& error) {
        // The directory itself comes and goes with its holder, so an attempt may also find it gone.
        EXPECT_TRUE(error.kind() == ErrorKind::usage || error.kind() == ErrorKind::output) << error.what();
      }
    }
  };
  std::thread other(contend);
  contend();
  other.join();
  EXPECT_GT(held.load(), 0);
}

TEST(RunDirectory, AFileInTheWayAndNoPermissionAreOutputErrors) {
  const TemporaryDirectory directory;
  write_bytes(directory / "file", "x");
  expect_error(ErrorKind::output, {"file", "Not a directory"},
               [&] { RunDirectory(directory / "file", ExistingRun::refuse); });
  expect_error(ErrorKind::output, {"file/r", "Not a directory"},
               [&] { RunDirectory(directory / "file/r", ExistingRun::refuse); });
  std::filesystem::permissions(directory.path(), std::filesystem::perms::owner_all);
  for (const char* name : {"", "new"}) {
    EXPECT_EQ(test::exit_code_of_child([&] {
                if (!test::become_nobody() || ::access(directory.path().c_str(), W_OK) == 0) return test::kNotPermitted;
                RunDirectory run(directory / name, ExistingRun::refuse);
                return 0;
              }),
              5);
  }
  expect_error(ErrorKind::usage, {"--out"}, [] { RunDirectory("", ExistingRun::refuse); });
}

}  // namespace
}  // namespace orrery
