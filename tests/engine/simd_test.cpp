#include "engine/simd.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/engine/files.h"

namespace orrery {
namespace {

TEST(Simd, NamesAndLevelsAreEachOthersInverse) {
  for (const SimdLevel level : {SimdLevel::portable, SimdLevel::avx2, SimdLevel::avx512}) {
    EXPECT_EQ(parse_simd(to_string(level)), level);
  }
  EXPECT_FALSE(parse_simd("auto"));
  EXPECT_FALSE(parse_simd("AVX2"));
}

TEST(Simd, LevelsAreOrderedSoThatRanksCanAgreeOnTheLowest) {
  EXPECT_LT(SimdLevel::portable, SimdLevel::avx2);
  EXPECT_LT(SimdLevel::avx2, SimdLevel::avx512);
}

TEST(Simd, WhatTheMachineHasCanBeAskedForAndWhatItLacksIsRefused) {
  EXPECT_EQ(resolve_simd("auto"), detect_simd());
  EXPECT_EQ(resolve_simd("portable"), SimdLevel::portable);
  for (const SimdLevel level : {SimdLevel::avx2, SimdLevel::avx512}) {
    const std::string name{to_string(level)};
    if (level <= detect_simd()) {
      EXPECT_EQ(resolve_simd(name), level);
    } else {
      test::expect_error(ErrorKind::usage, {"--simd", name, to_string(detect_simd())}, [&] { resolve_simd(name); });
    }
  }
}

TEST(Simd, UnknownLevelIsRefusedWithTheKnownOnes) {
  test::expect_error(ErrorKind::usage, {"portable", "avx2", "avx512", "'sse9'"}, [] { resolve_simd("sse9"); });
}

}  // namespace
}  // namespace orrery
