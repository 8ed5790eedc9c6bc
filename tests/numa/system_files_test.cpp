// Limits of control groups, read from made-up file trees: version 1 and 2, nested, in containers, malformed.
#include "numa/system_files.h"

#include "tests/numa/support.h"

namespace orrery::test {
namespace {

using detail::cpu_list;
using detail::figure;
using detail::group_cpu_quota;
using detail::group_memory_limit;

constexpr const char* kMountV2 = "30 22 0:27 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw\n";
constexpr const char* kMountV1 =
    "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "31 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    "34 30 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";

TEST(SystemFiles, FiguresAreFoundByTheirWholeName) {
  const std::string text = "MemTotal:       1000 kB\nMemFree:  20 kB\nNode 0 Active(file): 7 kB\nSum 5\n";
  EXPECT_EQ(figure(text, "MemTotal"), 1000U * 1024);
  EXPECT_EQ(figure(text, "Active(file)"), 7U * 1024);
  EXPECT_EQ(figure(text, "Sum"), 5U);
  EXPECT_FALSE(figure(text, "Mem"));
  EXPECT_FALSE(figure(text, "Absent"));
  EXPECT_FALSE(figure("", "MemTotal"));
  EXPECT_FALSE(figure("MemTotal: many", "MemTotal"));
}

TEST(SystemFiles, CpuListsAreReadAndBrokenOnesDoNoHarm) {
  EXPECT_EQ(cpu_list("0-3,8,10-11\n"), (std::vector<unsigned>{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(cpu_list("5"), std::vector<unsigned>{5});
  EXPECT_TRUE(cpu_list("").empty());
  EXPECT_TRUE(cpu_list("\n").empty());
  EXPECT_LE(cpu_list("0-4294967295").size(), 1U << 16);
  EXPECT_TRUE(cpu_list("3-1").empty());
  EXPECT_TRUE(cpu_list("x-y").empty());
}

TEST(ControlGroup, NoneMeansNoLimit) {
  const TemporaryFolder root;
  EXPECT_FALSE(group_memory_limit(root.path()));
  EXPECT_FALSE(group_cpu_quota(root.path()));
  root.write("proc/self/mountinfo", kMountV2);
  root.write("proc/self/cgroup", "0::/\n");
  EXPECT_FALSE(group_memory_limit(root.path()));
}

TEST(ControlGroup, Version2TakesTheTightestOfTheGroupsAbove) {
  const TemporaryFolder root;
  root.write("proc/self/mountinfo", kMountV2);
  root.write("proc/self/cgroup", "0::/system/app\n");
  root.write("sys/fs/cgroup/system/app/memory.max", "max\n");
  root.write("sys/fs/cgroup/system/app/cpu.max", "max 100000\n");
  root.write("sys/fs/cgroup/system/memory.max", "1000000\n");
  root.write("sys/fs/cgroup/system/memory.current", "400000\n");
  root.write("sys/fs/cgroup/system/memory.stat", "anon 1\ninactive_file 100000\n");
  root.write("sys/fs/cgroup/system/cpu.max", "150000 100000\n");
  root.write("sys/fs/cgroup/memory.max", "9000000\n");
  const auto limit = group_memory_limit(root.path());
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->limit_bytes, 1000000U);
  EXPECT_EQ(limit->left_bytes, 700000U) << "file cache that can be dropped is left, too";
  EXPECT_EQ(limit->group, root.path() + "/sys/fs/cgroup/system");
  EXPECT_DOUBLE_EQ(group_cpu_quota(root.path()).value_or(0), 1.5);
}

TEST(ControlGroup, Version1HasOneTreeForEachController) {
  const TemporaryFolder root;
  root.write("proc/self/mountinfo", kMountV1);
  root.write("proc/self/cgroup", "4:memory:/job\n1:cpu,cpuacct:/job2\n0::/\n");
  root.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000\n");
  root.write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "6000\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/job2/cpu.cfs_quota_us", "50000\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/job2/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  ASSERT_TRUE(group_memory_limit(root.path()));
  EXPECT_EQ(group_memory_limit(root.path())->limit_bytes, 5000U);
  EXPECT_EQ(group_memory_limit(root.path())->left_bytes, 0U) << "used more than allowed";
  EXPECT_DOUBLE_EQ(group_cpu_quota(root.path()).value_or(0), 0.5);
}

TEST(ControlGroup, ContainersSeeTheirGroupAsTheRoot) {
  const TemporaryFolder root;
  root.write("proc/self/mountinfo", "30 22 0:27 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  root.write("sys/fs/cgroup/memory.max", "777\n");
  for (const char* path : {"0::/docker/abc\n", "0::/\n", "0::/../other\n"}) {
    root.write("proc/self/cgroup", path);
    ASSERT_TRUE(group_memory_limit(root.path())) << path;
    EXPECT_EQ(group_memory_limit(root.path())->limit_bytes, 777U);
  }
  root.write("proc/self/cgroup", "0::/docker/abc/inner\n");
  root.write("sys/fs/cgroup/inner/memory.max", "77\n");
  EXPECT_EQ(group_memory_limit(root.path())->limit_bytes, 77U);
}

TEST(ControlGroup, MountPointsMayHaveBlanks) {
  const TemporaryFolder root;
  root.write("proc/self/mountinfo", "30 22 0:27 / /my\\040groups rw - cgroup2 cgroup2 rw\n");
  root.write("proc/self/cgroup", "0::/\n");
  root.write("my groups/memory.max", "123\n");
  ASSERT_TRUE(group_memory_limit(root.path()));
  EXPECT_EQ(group_memory_limit(root.path())->limit_bytes, 123U);
}

TEST(ControlGroup, MalformedFilesMeanNoLimit) {
  const TemporaryFolder root;
  root.write("proc/self/mountinfo", std::string("\n- - -\n1 2 3\n") + kMountV2);
  root.write("proc/self/cgroup", "\nx\n:\n0::/a\n");
  root.write("sys/fs/cgroup/a/memory.max", "much\n");
  root.write("sys/fs/cgroup/a/cpu.max", "1000 0\n");
  EXPECT_FALSE(group_memory_limit(root.path()));
  EXPECT_FALSE(group_cpu_quota(root.path()));
}

TEST(NodeMemory, FreeAndHalfOfTheCache) {
  const TemporaryFolder root;
  root.write(
      "sys/devices/system/node/node3/meminfo",
      "Node 3 MemTotal: 1000 kB\nNode 3 MemFree: 100 kB\nNode 3 Active(file): 40 kB\nNode 3 Inactive(file): 60 kB\n");
  EXPECT_EQ(detail::node_available_bytes(root.path(), 3), 150U * 1024);
  EXPECT_FALSE(detail::node_available_bytes(root.path(), 4));
}

}  // namespace
}  // namespace orrery::test
