// Arenas: every index once, exceptions come home, never more threads than asked for.
#include "engine/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "engine/block_store.h"
#include "engine/reduce.h"
#include "tests/engine/toy_programs.h"

namespace orrery {
namespace {

TEST(Arenas, parallel_for_runs_every_index_exactly_once) {
  for (const char* topology : {"", "numa:2 core:2 pu:1", "numa:4 core:2 pu:1"}) {
    for (const unsigned threads : {1U, 2U, 3U, 8U}) {
      Engine engine(toy::options_with(threads, 0, topology));
      std::vector<std::atomic<int>> ran(1000);
      engine.parallel_for(ran.size(), [&](std::size_t i) { ++ran[i]; });
      for (const auto& count : ran) EXPECT_EQ(count.load(), 1);
      engine.parallel_for(0, [](std::size_t) { FAIL(); });
    }
  }
}

TEST(Arenas, never_more_threads_than_asked_for_run_at_once) {
  for (const char* topology : {"", "numa:2 core:2 pu:1"}) {
    for (const unsigned threads : {1U, 2U, 3U}) {
      Engine engine(toy::options_with(threads, 0, topology));
      std::atomic<unsigned> running{0}, most{0};
      engine.parallel_for(3000, [&](std::size_t) {
        const unsigned now = ++running;
        unsigned seen = most.load();
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        --running;
      });
      EXPECT_LE(most.load(), threads);
    }
  }
}

TEST(Arenas, the_first_exception_comes_back_and_the_rest_is_dropped) {
  Engine engine(toy::options_with(2));
  std::atomic<int> ran{0};
  EXPECT_THROW(engine.parallel_for(1'000'000,
                                   [&](std::size_t i) {
                                     ++ran;
                                     if (i == 10) throw std::runtime_error("planted");
                                   }),
               std::runtime_error);
  EXPECT_LT(ran.load(), 1'000'000);
  engine.parallel_for(10, [&](std::size_t) { ++ran; });
}

TEST(Arenas, every_domain_has_a_lane_and_threads_are_dealt_over_lanes) {
  Engine engine(toy::options_with(5, 0, "numa:2 core:4 pu:1"));
  ASSERT_EQ(engine.arenas().lanes().size(), 2U);
  EXPECT_EQ(engine.arenas().lanes()[0].threads + engine.arenas().lanes()[1].threads, 5U);
  Engine few(toy::options_with(1, 0, "numa:4 core:1 pu:1"));
  ASSERT_EQ(few.arenas().lanes().size(), 1U);
  EXPECT_EQ(few.arenas().lanes()[0].domains.size(), 4U);
}

TEST(BlockStore, a_block_keeps_its_bytes_wherever_it_goes) {
  const Topology topology = Topology::synthetic("numa:3 core:1 pu:1");
  const std::vector<std::size_t> sizes{100, 0, 64, 1000};
  BlockStore store(topology, sizes);
  for (BlockId b = 0; b < store.size(); ++b) {
    ASSERT_EQ(store.view(b).size(), sizes[b]);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(store.view(b).data()) % 64, 0U);
    for (auto& byte : store.acquire(b, b % 3)) byte = static_cast<std::byte>(b + 1);
  }
  for (DomainId d = 0; d < 3; ++d) {
    for (BlockId b = 0; b < store.size(); ++b) {
      for (const auto byte : store.acquire(b, d)) EXPECT_EQ(byte, static_cast<std::byte>(b + 1));
    }
  }
  EXPECT_GT(store.bytes_moved(), 0U);
}

TEST(BlockStore, nothing_moves_on_one_domain) {
  BlockStore store(Topology::synthetic("numa:1 core:2 pu:1"), std::vector<std::size_t>{256, 256});
  store.acquire(0, 0);
  store.acquire(1, 0);
  EXPECT_EQ(store.bytes_moved(), 0U);
}

TEST(Reduce, an_aligned_range_of_ids_is_a_subtree) {
  std::vector<double> values(37);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0 / static_cast<double>(3 * i + 1);
  auto all = values;
  const double whole = tree_sum(std::span<double>{all});
  std::vector<double> parts;
  for (std::size_t begin = 0; begin < values.size(); begin += 8) {
    auto part = std::vector<double>(values.begin() + static_cast<std::ptrdiff_t>(begin),
                                    values.begin() + static_cast<std::ptrdiff_t>(std::min(begin + 8, values.size())));
    parts.push_back(tree_sum(std::span<double>{part}));
  }
  EXPECT_EQ(tree_sum(std::span<double>{parts}), whole) << "bitwise";
  std::vector<double> none;
  EXPECT_EQ(tree_sum(std::span<double>{none}), 0.0);
}

}  // namespace
}  // namespace orrery
