// A pool under threads: blocks are aligned, do not overlap, keep what is in them, and may be given back anywhere.
#include "numa/domain_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/numa/support.h"

namespace orrery::test {
namespace {

struct Block {
  unsigned char* memory;
  std::size_t bytes, alignment;
  unsigned char mark;
};

bool is_whole(const Block& block) {
  for (std::size_t i = 0; i < block.bytes; ++i) {
    if (block.memory[i] != block.mark) return false;
  }
  return reinterpret_cast<std::uintptr_t>(block.memory) % block.alignment == 0;
}

TEST(DomainPool, KeepsBlocksApartWhileThreadsTakeAndGiveBack) {
  const Topology topology = Topology::synthetic("numa:2 core:1 pu:1");
  DomainPool pool(1, topology);
  std::mutex mutex;
  std::vector<Block> held;
  const auto work = [&](unsigned seed) {
    std::mt19937 draw(seed);
    for (int i = 0; i < 3000; ++i) {
      const std::size_t bytes = std::size_t{1} << (draw() % 18);
      Block mine{nullptr, bytes - draw() % bytes, std::size_t{8} << (draw() % 4), static_cast<unsigned char>(draw())};
      mine.memory = static_cast<unsigned char*>(pool.allocate(mine.bytes, mine.alignment));
      std::memset(mine.memory, mine.mark, mine.bytes);
      Block other{};
      {
        const std::lock_guard lock(mutex);
        held.push_back(mine);
        std::swap(held[draw() % held.size()], held.back());
        if (held.size() > 100) {
          other = held.back();
          held.pop_back();
        }
      }
      if (other.memory == nullptr) continue;
      ASSERT_TRUE(is_whole(other));
      pool.deallocate(other.memory, other.bytes, other.alignment);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  for (const Block& block : held) EXPECT_TRUE(is_whole(block));
}

}  // namespace
}  // namespace orrery::test
