// Buffers: alignment, zeros, ownership; remarks where placement is not possible; and reports whose parts add up. That
// pages really lie where they were asked for is tested in a guest with several nodes (tests/guest).
#include "numa/memory.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>

#include "tests/numa/support.h"

namespace orrery::test {
namespace {

constexpr std::size_t kHuge = Buffer::kHugePage;

std::uint64_t sum(const PageReport& report) {
  std::uint64_t all = report.not_present + report.unknown;
  for (const auto& [node, bytes] : report.nodes) all += bytes;
  return all;
}

std::vector<Buffer> buffers_of(std::size_t bytes, const Topology& topology) {
  std::vector<Buffer> buffers;
  for (const Domain& domain : topology.domains()) buffers.push_back(Buffer::local(bytes, domain.id, topology));
  buffers.push_back(Buffer::interleaved(bytes, topology));
  return buffers;
}

TEST(Buffer, IsAlignedZeroAndWritableAtEverySize) {
  for (const Topology& topology : {Topology::detect(), Topology::synthetic("numa:2 core:1 pu:1")}) {
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{63}, std::size_t{4096}, kHuge - 1, kHuge, kHuge + 1, 3 * kHuge}) {
      for (Buffer& buffer : buffers_of(bytes, topology)) {
        ASSERT_EQ(buffer.size(), bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % (bytes >= kHuge ? kHuge : Buffer::kAlignment), 0U);
        const std::span<unsigned char> all = buffer.as<unsigned char>();
        EXPECT_TRUE(std::all_of(all.begin(), all.end(), [](unsigned char c) { return c == 0; }));
        std::fill(all.begin(), all.end(), static_cast<unsigned char>(0xa5));
        EXPECT_EQ(all.back(), 0xa5);
      }
    }
  }
}

TEST(Buffer, ViewsHoldWholeElementsOnly) {
  Buffer buffer = Buffer::local(25, 0, Topology::detect());
  EXPECT_EQ(buffer.as<double>().size(), 3U);
  EXPECT_EQ(std::as_const(buffer).as<char>().size(), 25U);
}

TEST(Buffer, NothingIsAlsoABuffer) {
  const Topology topology = Topology::detect();
  for (Buffer& buffer : buffers_of(0, topology)) {
    EXPECT_TRUE(buffer.empty());
    EXPECT_EQ(buffer.as<double>().size(), 0U);
    buffer.populate();
    buffer.release();
  }
  Buffer none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.data(), nullptr);
}

TEST(Buffer, MovesWithoutMovingTheMemory) {
  const Topology topology = Topology::detect();
  Buffer a = Buffer::local(kHuge, 0, topology);
  a.as<int>()[7] = 42;
  std::byte* const data = a.data();
  Buffer b = std::move(a);
  EXPECT_EQ(b.data(), data);
  Buffer c = Buffer::interleaved(100, topology);
  c = std::move(b);
  EXPECT_EQ(c.data(), data);
  EXPECT_EQ(c.as<int>()[7], 42);
  EXPECT_EQ(c.placement(), Placement::local);
}

TEST(Buffer, GivesTheMemoryBack) {
  const Topology topology = Topology::detect();
  Buffer buffer = Buffer::local(kHuge, 0, topology);
  buffer.populate();
  void* const start = buffer.data();
  buffer.release();
  EXPECT_TRUE(buffer.empty());
  EXPECT_NE(msync(start, kHuge, MS_ASYNC), 0) << "the stretch is still mapped";
}

TEST(Buffer, PopulatingChangesNoContent) {
  Buffer buffer = Buffer::local(2 * kHuge, 0, Topology::detect());
  buffer.as<int>()[1000] = 9;
  buffer.populate();
  EXPECT_EQ(buffer.as<int>()[1000], 9);
  EXPECT_EQ(where_pages_are(buffer.data(), buffer.size()).not_present, 0U);
}

TEST(Buffer, RemarksOnlyWhereSomethingWasToBePlaced) {
  const Topology here = Topology::detect();
  if (here.domains().size() == 1 && here.memory_only().empty()) {
    for (const Buffer& buffer : buffers_of(kHuge, here)) EXPECT_EQ(buffer.remark(), "");
  }
  for (const Buffer& buffer : buffers_of(kHuge, Topology::synthetic("core:2 pu:1"))) EXPECT_EQ(buffer.remark(), "");
  for (const Buffer& buffer : buffers_of(kHuge, Topology::synthetic("numa:2 core:1 pu:1"))) {
    EXPECT_THAT(buffer.remark(), testing::HasSubstr("not this machine's"));
  }
}

TEST(Buffer, ImpossibleSizesAreErrorsWithTheNumber) {
  const Topology topology = Topology::detect();
  for (const std::size_t bytes :
       {std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max() - kHuge, std::size_t{1} << 60,
        std::size_t{1} << 48}) {
    try {
      Buffer::local(bytes, 0, topology);
      ADD_FAILURE() << bytes;
    } catch (const MemoryError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(std::to_string(bytes)));
    }
    EXPECT_THROW(Buffer::interleaved(bytes, topology), MemoryError);
  }
}

TEST(Buffer, UnknownDomainIsTheCallersMistake) {
  const Topology topology = Topology::synthetic("numa:2 core:1 pu:1");
  EXPECT_THROW(Buffer::local(10, 2, topology), std::out_of_range);
}

TEST(Buffer, NodeThatIsNotThereIsARemarkAndNoFailure) {
  // hwloc is told that this machine has nodes that it has not: placing on them is refused by the kernel.
  EXPECT_EQ(in_child([]() -> std::string {
              setenv("HWLOC_SYNTHETIC", "numa:1 core:1 pu:2", 1);
              const bool one_node = Topology::detect().domains().size() == 1;
              setenv("HWLOC_SYNTHETIC", "numa:2(indexes=0,77) core:1 pu:1", 1);
              setenv("HWLOC_THISSYSTEM", "1", 1);
              const Topology topology = Topology::detect();
              if (topology.domains().size() < 2) return one_node ? "" : "shape not taken";
              Buffer buffer = Buffer::local(kHuge, 1, topology);
              if (buffer.remark().find("mbind") == std::string::npos) return "no remark: " + buffer.remark();
              buffer.as<int>()[3] = 1;
              return buffer.as<int>()[3] == 1 ? "" : "cannot be used";
            }),
            "");
}

TEST(Replicated, HasOneCopyForEachDomain) {
  const Topology topology = Topology::synthetic("numa:4 core:1 pu:1");
  Replicated copies(1000, topology);
  ASSERT_EQ(copies.copies(), 4U);
  EXPECT_EQ(copies.size(), 1000U);
  for (unsigned d = 0; d < 4; ++d) {
    EXPECT_EQ(copies.on(d).placement(), Placement::replicated);
    copies.as<int>(d)[0] = static_cast<int>(d);
  }
  for (unsigned d = 0; d < 4; ++d) EXPECT_EQ(copies.as<int>(d)[0], static_cast<int>(d)) << "copies share memory";
  copies.copy_from(2);
  for (unsigned d = 0; d < 4; ++d) EXPECT_EQ(copies.as<int>(d)[0], 2);
  EXPECT_EQ(copies.remarks().size(), 1U) << "each remark once";
  EXPECT_THROW(copies.on(4), std::out_of_range);
  copies.release();
  EXPECT_EQ(copies.copies(), 0U);
}

TEST(PageReport, PartsAddUpForEveryStretchAndSample) {
  const Topology topology = Topology::detect();
  Buffer buffer = Buffer::local(4 * kHuge, 0, topology);
  std::mt19937_64 random(3);
  for (int i = 0; i < 20; ++i) buffer.as<char>()[random() % buffer.size()] = 1;
  for (int round = 0; round < 200; ++round) {
    const std::size_t start = random() % buffer.size(), length = random() % (buffer.size() - start) + 1;
    const std::size_t most = round % 2 == 0 ? 0 : random() % 50 + 1;
    const PageReport report = where_pages_are(buffer.data() + start, length, most);
    EXPECT_EQ(sum(report), length);
    EXPECT_EQ(report.bytes, length);
    if (most != 0) {
      EXPECT_LE(report.pages_asked, most);
    }
    EXPECT_TRUE(std::is_sorted(report.nodes.begin(), report.nodes.end()));
  }
}

TEST(PageReport, TellsTouchedFromUntouched) {
  const Topology topology = Topology::detect();
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  Buffer buffer = Buffer::local(16 * page, 0, topology);
  EXPECT_EQ(where_pages_are(buffer.data(), buffer.size()).not_present, 16 * page);
  EXPECT_EQ(where_pages_are(buffer.data(), buffer.size()).share_on(0), 0.0);
  buffer.as<char>()[3 * page] = 1;
  const PageReport one = where_pages_are(buffer.data(), buffer.size());
  EXPECT_EQ(one.not_present, 15 * page);
  ASSERT_EQ(one.nodes.size(), 1U);
  EXPECT_EQ(one.on_node(one.nodes[0].first), page);
  EXPECT_DOUBLE_EQ(one.share_on(one.nodes[0].first), 1.0);
  EXPECT_EQ(one.on_node(one.nodes[0].first + 1), 0U);
  EXPECT_GE(topology.domain_of_node(one.nodes[0].first), 0);
}

TEST(PageReport, MemoryThatIsNotThereIsNotPresent) {
  const Topology topology = Topology::detect();
  Buffer buffer = Buffer::local(kHuge, 0, topology);
  buffer.populate();
  void* const start = buffer.data();
  buffer.release();
  EXPECT_EQ(where_pages_are(start, kHuge).not_present, kHuge);
  EXPECT_EQ(where_pages_are(nullptr, 0).bytes, 0U);
}

TEST(AvailableMemory, IsPlausible) {
  const AvailableMemory memory = available_memory();
  EXPECT_GT(memory.physical_bytes, 0U);
  EXPECT_LE(memory.available_bytes, memory.physical_bytes);
  EXPECT_LE(memory.usable(), memory.available_bytes);
  EXPECT_GT(memory.usable(), 0U);
  const Topology topology = Topology::detect();
  for (const Domain& domain : topology.domains()) EXPECT_GT(available_memory(topology, domain.id), 0U);
  EXPECT_EQ(available_memory(Topology::synthetic("numa:2 pu:1"), 1), 0U);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(AvailableMemory, KnowsTheLimitOfTheAddressSpace) {
  EXPECT_EQ(in_child([]() -> std::string {
              const rlimit limit{std::size_t{3} << 30, std::size_t{3} << 30};
              if (setrlimit(RLIMIT_AS, &limit) != 0) return "cannot limit";
              const AvailableMemory memory = available_memory();
              if (memory.limited_by != "RLIMIT_AS") return "limited by '" + memory.limited_by + "'";
              if (memory.usable() >= std::size_t{3} << 30 || memory.usable() == 0)
                return std::to_string(memory.usable());
              try {
                Buffer::local(std::size_t{4} << 30, 0, Topology::detect());
              } catch (const MemoryError&) {
                return "";
              }
              return "got more than the limit";
            }),
            "");
}
#endif

}  // namespace
}  // namespace orrery::test
