// SPDX-License-Identifier: Apache-2.0
#include "net/part_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

#include "base/bytes.h"
#include "base/file.h"
#include "support/testing.h"

namespace facet {
namespace {

constexpr const char* kUrl = "http://host/file";

PartFile Opened(const std::string& path) {
  auto part = PartFile::Open(path, kUrl);
  EXPECT_TRUE(part.ok()) << part.error().Message();
  return *std::move(part);
}

const PartOrigin kOrigin{.url = kUrl, .validator = "\"v1\"", .size = 6, .sha256 = "d"};

TEST(PartFile, KeepsWhatCanBeResumed) {
  const std::string path = testing::MakeTempDir() + "/file";
  {
    PartFile part = Opened(path);
    ASSERT_TRUE(part.Begin(kOrigin, false).ok());
    ASSERT_TRUE(part.Add(AsBytes("abc")).ok());
  }
  PartFile part = Opened(path);
  EXPECT_EQ(part.n_bytes(), 3u);
  EXPECT_EQ(part.origin(), kOrigin);
  EXPECT_EQ(part.Sha256Hex(), Sha256Hex("abc"));
  ASSERT_TRUE(part.Begin(kOrigin, true).ok());
  ASSERT_TRUE(part.Add(AsBytes("def")).ok());
  EXPECT_EQ(part.Sha256Hex(), Sha256Hex("abcdef"));
  EXPECT_FALSE(FileExists(path));
  ASSERT_TRUE(part.Commit().ok());
  EXPECT_EQ(testing::ReadOrDie(path), "abcdef");
  EXPECT_FALSE(FileExists(path + ".part"));
  EXPECT_FALSE(FileExists(path + ".part.json"));
}

TEST(PartFile, LeavesNothingBehindThatCannotBeResumed) {
  const std::string path = testing::MakeTempDir() + "/file";
  { const PartFile part = Opened(path); }
  EXPECT_FALSE(FileExists(path + ".part"));
  {
    PartFile part = Opened(path);
    ASSERT_TRUE(part.Begin({.url = kUrl, .validator = "", .size = {}, .sha256 = ""}, false).ok());
    ASSERT_TRUE(part.Add(AsBytes("abc")).ok());
  }
  EXPECT_FALSE(FileExists(path + ".part"));
  EXPECT_FALSE(FileExists(path + ".part.json"));
}

TEST(PartFile, BeginsAnew) {
  const std::string path = testing::MakeTempDir() + "/file";
  PartFile part = Opened(path);
  ASSERT_TRUE(part.Begin(kOrigin, false).ok());
  ASSERT_TRUE(part.Add(AsBytes("abc")).ok());
  PartOrigin other = kOrigin;
  other.validator = "\"v2\"";
  ASSERT_TRUE(part.Begin(other, false).ok());
  EXPECT_EQ(part.n_bytes(), 0u);
  ASSERT_TRUE(part.Add(AsBytes("x")).ok());
  EXPECT_EQ(part.Sha256Hex(), Sha256Hex("x"));
  part.Discard();
  EXPECT_FALSE(FileExists(path + ".part"));
}

TEST(PartFile, BelongsToOneAtATime) {
  const std::string path = testing::MakeTempDir() + "/file";
  {
    const PartFile part = Opened(path);
    EXPECT_EQ(PartFile::Open(path, kUrl).error().Message(),
              path + ": another process is downloading it, wanted to be its only");
  }
  EXPECT_TRUE(PartFile::Open(path, kUrl).ok());
}

TEST(PartFile, WritesThroughNoLink) {
  const std::string folder = testing::MakeTempDir();
  ASSERT_TRUE(WriteFile(folder + "/precious", "data").ok());
  ASSERT_EQ(::symlink((folder + "/precious").c_str(), (folder + "/file.part").c_str()), 0);
  EXPECT_EQ(PartFile::Open(folder + "/file", kUrl).error().Message(),
            folder + "/file.part: cannot create: Too many levels of symbolic links");
  EXPECT_EQ(testing::ReadOrDie(folder + "/precious"), "data");
}

TEST(PartFile, TellsWhenBytesCannotBeWritten) {
  const std::string path = testing::MakeTempDir() + "/file";
  PartFile part = Opened(path);
  EXPECT_GT(*part.FreeBytes(), 0u);
  ASSERT_TRUE(part.Begin(kOrigin, false).ok());
  // A limit on the size of files stands in for a full disk.
  rlimit former{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &former), 0);
  rlimit limit = former;
  limit.rlim_cur = 4;
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Status status = part.Add(AsBytes("abcdef"));
  ::setrlimit(RLIMIT_FSIZE, &former);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().Message(), path + ".part: cannot write: File too large");
  EXPECT_EQ(part.n_bytes(), 4u);
  EXPECT_FALSE(FileExists(path));
}

}  // namespace
}  // namespace facet
