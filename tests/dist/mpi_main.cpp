// main() of the MPI tests: every rank runs every test; a failure of one rank fails the job and is printed with its
// rank.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/dist/mpi_test.h"

namespace orrery::test {
namespace {

MpiProcess* the_process = nullptr;

/// Nobody may wait for a rank that has left its test in the middle.
class RankReporter final : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "[rank %u] %s:%d: %s\n", process().rank(),
                 result.file_name() != nullptr ? result.file_name() : "?", result.line_number(), result.summary());
    if (result.fatally_failed()) std::_Exit(1);
  }
};

std::size_t size_from(const char* variable, std::size_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<std::size_t>(std::atoll(text));
}

int run(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  MpiOptions options;
  options.piece_bytes = size_from("ORRERY_TEST_PIECE", options.piece_bytes);
  options.inline_bytes = size_from("ORRERY_TEST_INLINE", options.inline_bytes);
  MpiProcess process(options);
  the_process = &process;
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (process.rank() != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new RankReporter);
  const int code = RUN_ALL_TESTS();
  int worst = 0;
  for (const auto& farewell : process.close({.failed = code != 0, .exit_code = code, .text = "a test failed"})) {
    worst = std::max(worst, farewell ? farewell->exit_code : 1);
  }
  return worst;
}

}  // namespace

MpiProcess& process() { return *the_process; }

}  // namespace orrery::test

int main(int argc, char** argv) { return orrery::test::run(argc, argv); }
