// The fuzzer's seeds and a fixed set of mutations of them, in every build: no libFuzzer needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/readers_fuzz.h"

namespace orrery::testing {
namespace {

std::vector<std::string> seeds() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(ORRERY_SOURCE_DIR) + "/tests/fuzz/seeds")) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> all;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    all.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return all;
}

void run(const std::string& input) {
  fuzz_readers({reinterpret_cast<const std::uint8_t*>(input.data()), input.size()});
}

// The kinds of damage that find faults in parsers: bits, cuts, doublings, and numbers at the edges.
std::string mutated(std::string text, std::mt19937& random) {
  static const char* const kWords[] = {"0",
                                       "-1",
                                       "4294967295",
                                       "18446744073709551615",
                                       "99999999999999999999",
                                       "nan",
                                       "1e999",
                                       "\r\n",
                                       "\n",
                                       "\"",
                                       "::",
                                       ",",
                                       "#",
                                       "%",
                                       " ",
                                       "\t"};
  for (unsigned left = 1 + random() % 4; left > 0 && text.size() > 1; --left) {
    const std::size_t at = 1 + random() % (text.size() - 1);
    switch (random() % 5) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, 1 + random() % 8);
        break;
      case 2:
        text.insert(at, text.substr(1 + random() % (text.size() - 1), 20));
        break;
      case 3:
        text.insert(at, kWords[random() % std::size(kWords)]);
        break;
      default:
        text[at] = static_cast<char>(text[at] ^ (1 << (random() % 8)));
    }
  }
  return text;
}

TEST(Fuzz, seeds_hold_what_must_hold_for_any_bytes) {
  const std::vector<std::string> all = seeds();
  ASSERT_GE(all.size(), 20U);
  for (const std::string& seed : all) run(seed);
}

TEST(Fuzz, mutations_of_seeds_hold_what_must_hold_for_any_bytes) {
  std::mt19937 random(20261129);
  for (const std::string& seed : seeds()) {
    for (int i = 0; i < 100; ++i) run(mutated(seed, random));
  }
}

TEST(Fuzz, every_prefix_of_a_seed_holds_what_must_hold_for_any_bytes) {
  for (const std::string& seed : seeds()) {
    for (std::size_t length = 0; length < std::min<std::size_t>(seed.size(), 200); ++length)
      run(seed.substr(0, length));
  }
}

}  // namespace
}  // namespace orrery::testing
