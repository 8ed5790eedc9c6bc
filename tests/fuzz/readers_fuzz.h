// One input of the reader fuzzer: the first byte picks a reader, the rest is the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace orrery::testing {

/// Reads `input` twice, in one piece and in tiny ones, and checks what must hold for any bytes: only an Error of the
/// caller's kinds comes out, and both ways give the same data or the same message. Stops the program when it does not.
void fuzz_readers(std::span<const std::uint8_t> input);

}  // namespace orrery::testing
