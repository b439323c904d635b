// SPDX-License-Identifier: Apache-2.0
#include "compute/cpu_count.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/file.h"
#include "support/testing.h"

namespace facet {
namespace {

// A made-up machine: files below a fresh folder.
class CountCoresTest : public ::testing::Test {
 protected:
  void Put(const std::string& path, const std::string& text) {
    const std::string full = root_ + path;
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    const Status status = WriteFile(full, text);
    ASSERT_TRUE(status.ok()) << status.error().Message();
  }
  void PutCpu(int cpu, int package, int core) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    Put(folder + "core_id", std::to_string(core) + "\n");
    Put(folder + "physical_package_id", std::to_string(package) + "\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string root_ = testing::MakeTempDir();
};

TEST_F(CountCoresTest, CountsThreadsOfOneCoreOnce) {
  PutCpu(0, 0, 0);
  PutCpu(1, 0, 1);
  PutCpu(2, 0, 0);
  PutCpu(3, 0, 1);
  PutCpu(4, 1, 0);
  EXPECT_EQ(CountCores(root_, {0, 1, 2, 3}), 2);
  EXPECT_EQ(CountCores(root_, {0, 2}), 1);
  EXPECT_EQ(CountCores(root_, {0, 1, 4}), 3);  // core 0 of another package is another core
}

TEST_F(CountCoresTest, CountsProcessorsWithoutTopology) {
  EXPECT_EQ(CountCores(root_, {0, 1, 2}), 3);
  EXPECT_EQ(CountCores(root_, {}), 1);
}

TEST_F(CountCoresTest, RespectsTheQuotaOfVersion2AndOfGroupsAbove) {
  Put("/proc/self/cgroup", "0::/a/b\n");
  Put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(CountCores(root_, {0, 1, 2, 3}), 4);
  Put("/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
  EXPECT_EQ(CountCores(root_, {0, 1, 2, 3}), 2);
  Put("/sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(CountCores(root_, {0, 1, 2, 3}), 1);
}

TEST_F(CountCoresTest, RespectsTheQuotaOfVersion1) {
  Put("/proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/x\n");
  Put("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "300000\n");
  Put("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CountCores(root_, {0, 1, 2, 3}), 3);
  Put("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
  Put("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CountCores(root_, {0, 1, 2, 3}), 3);
}

TEST_F(CountCoresTest, IgnoresWhatItCannotRead) {
  Put("/proc/self/cgroup", "nonsense\n0:\n:::\n0::/a\n");
  Put("/sys/fs/cgroup/a/cpu.max", "many few\n");
  EXPECT_EQ(CountCores(root_, {0, 1}), 2);
}

}  // namespace
}  // namespace facet
