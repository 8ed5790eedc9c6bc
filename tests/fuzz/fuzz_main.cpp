// The door for libFuzzer.
#include "tests/fuzz/readers_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  orrery::testing::fuzz_readers({data, size});
  return 0;
}
